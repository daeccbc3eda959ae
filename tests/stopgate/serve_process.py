"""
`turngate serve` as a process of its own, for tests of what a person or another machine meets.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TURNGATE = (sys.executable, "-I", str(Path(sysconfig.get_path("scripts")) / "turngate"))


class Said(NamedTuple):
    """
    How a command ended.
    """

    code: int
    out: str
    err: str


class Person:
    """
    Somebody at a terminal, with a home and a state directory of their own.
    """

    def __init__(self, folder: Path, **environ: str) -> None:
        folder.mkdir(exist_ok=True)
        self.state = folder / "state"
        self.environ = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "TURNGATE_STATE_DIR": str(self.state),
            **environ,
        }

    def run(self, *arguments: str, environ: Mapping[str, str] | None = None) -> Said:
        """
        Run a command to its end.
        """
        ran = subprocess.run(
            (*TURNGATE, *arguments),
            env={**self.environ, **(environ or {})},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Said(ran.returncode, ran.stdout, ran.stderr)

    @contextmanager
    def serving(self, **environ: str) -> Generator[subprocess.Popen[str]]:
        """
        Serve in the foreground while the block runs; the first line of what it says is read, and hooks can connect.
        """
        process = subprocess.Popen(
            (*TURNGATE, "serve"),
            env={**self.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stdout
            assert process.stdout.readline().startswith("turngate "), process.stderr and process.stderr.read()
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=60)
