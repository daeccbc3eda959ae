"""
A person's home with the client's settings in it, and the commands run there.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from turngate.stopgate.cli import main

PROGRAM = Path(sys.executable).with_name("turngate")
EVENTS = ["Stop", "SubagentStop", "SessionStart", "PreToolUse"]


class Ran(NamedTuple):
    """
    How a command ended.
    """

    returncode: int
    stdout: str
    stderr: str


class Home:
    """
    A home, and a project in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "person"
        self.client = self.folder / ".claude"
        self.settings = self.client / "settings.json"
        self.project = self.folder / "project"
        self.state = self.folder / ".local/state/turngate"
        self.config = self.folder / ".config/turngate/config.toml"
        self.project.mkdir(parents=True)
        self.client.mkdir()
        self.environ = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin", "TURNGATE_SERVICE_AUTOSTART": "off"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """
        Start a command in the project.
        """
        return subprocess.Popen(
            [PROGRAM, *arguments],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> Ran:
        """
        Run a command in this process, in the project, with nothing but the home's environment.
        """
        out, err = io.StringIO(), io.StringIO()
        with chdir(self.project), redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(arguments, self.environ)
            except SystemExit as exc:
                code = int(exc.code or 0)
        return Ran(code, out.getvalue(), err.getvalue())

    def hooks(self) -> dict[str, Any]:
        """
        Give the hooks in the user's settings.
        """
        return json.loads(self.settings.read_bytes().decode("utf-8-sig")).get("hooks", {})

    def left(self) -> list[str]:
        """
        Name what lies in the client's folder.
        """
        return sorted(path.name for path in self.client.iterdir())
