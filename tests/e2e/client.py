"""
The real client, run headless in a home and a project of its own, with nothing of this machine's environment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

from .processes import kill_all_with, processes_with

Json = dict[str, Any]

BINARY = os.environ.get("TURNGATE_TEST_CLIENT", "")
FAKE_KEY = "sk-ant-api03-not-a-key-not-a-key"
HOOK = Path(sysconfig.get_path("scripts"), "turngate-hook")
TURNGATE = Path(sysconfig.get_path("scripts"), "turngate")

needs_client = pytest.mark.skipif(not BINARY, reason="needs the real client: tests/e2e/install-client prints its path")

_LONGEST_RUN_S = 150.0
_ALLOWED_TOOLS = "Bash,Write,Edit,Read,Agent,TaskStop,TaskOutput"


class Run(NamedTuple):
    """
    What one run of the client left behind.
    """

    result: Json
    """The client's own account of the run."""
    stderr: str
    wall_s: float
    transcript: list[Json]
    agent_transcripts: list[list[Json]]
    debug_log: str
    left_processes: list[str]
    """Command lines of processes that outlived the client, with its environment. A service has one of its own."""

    @property
    def stop_summaries(self) -> list[Json]:
        """
        The client's entry about the hooks of each stop of the main agent.
        """
        return [e for e in self.transcript if e.get("subtype") == "stop_hook_summary"]

    @property
    def hook_attachments(self) -> list[Json]:
        """
        What the client noted about hooks that said something, main agent and subagents.
        """
        entries = [*self.transcript, *(e for t in self.agent_transcripts for e in t)]
        attachments = [cast("Json", e["attachment"]) for e in entries if e.get("type") == "attachment"]
        return [a for a in attachments if str(a["type"]).startswith("hook_")]


class Client:
    """
    A client with a home and a project under `folder`. `environ` comes on top of the least that it needs.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self.home = folder / "home"
        self.project = folder / "project"
        self._debug_log = folder / "debug.log"
        self._mark = f"CLIENT_MARK={uuid.uuid4().hex}"
        self.environ = {
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TMPDIR": str(folder / "tmp"),
            "ANTHROPIC_API_KEY": FAKE_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            **dict([self._mark.split("=")]),
            **environ,
        }
        for place in (self.home / ".claude", self.project, folder / "tmp"):
            place.mkdir(parents=True, exist_ok=True)

    def use_hooks(self, commands: Sequence[str]) -> None:
        """
        Write the user's settings: each command is a hook of its own at Stop and at SubagentStop.
        """
        entries = [{"hooks": [{"type": "command", "command": command, "timeout": 60}]} for command in commands]
        settings = {"hooks": {"Stop": entries, "SubagentStop": entries}}
        (self.home / ".claude" / "settings.json").write_text(json.dumps(settings))

    def run(self, prompt: str, *, main_loop_url: str, resume: bool, options: Sequence[str] = ()) -> Run:
        """
        Run one prompt to its end; with `resume` in the session of the last run, with more `options` of the client.

        A run that takes too long is killed with all that it started, and fails.
        """
        began = time.monotonic()
        process = subprocess.Popen(
            [
                *(BINARY, "-p", prompt, "--output-format", "json", "--debug-file", str(self._debug_log)),
                # `bypassPermissions` is refused to root.
                *("--permission-mode", "acceptEdits", "--allowedTools", _ALLOWED_TOOLS),
                *(["--continue"] if resume else []),
                *options,
            ],
            cwd=self.project,
            env={**self.environ, "ANTHROPIC_BASE_URL": main_loop_url},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            # Returns when the client has ended, and nobody holds its channels any more.
            stdout, stderr = process.communicate(timeout=_LONGEST_RUN_S)
        except subprocess.TimeoutExpired:
            self._kill(process)
            pytest.fail(f"the client ran for over {_LONGEST_RUN_S:.0f} s")
        wall_s = time.monotonic() - began

        assert process.returncode == 0, f"the client failed: {stderr or stdout}"
        main, agents = self._transcripts()
        log = self._debug_log.read_text(errors="replace")
        return Run(json.loads(stdout), stderr, wall_s, main, agents, log, self._left_processes())

    def _kill(self, process: subprocess.Popen[str]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        kill_all_with(self._mark)
        process.communicate()

    def _transcripts(self) -> tuple[list[Json], list[list[Json]]]:
        projects = self.home / ".claude" / "projects"
        (main,) = projects.glob("*/*.jsonl")
        agents = sorted(projects.glob("*/*/subagents/*.jsonl"), key=lambda path: path.stat().st_ctime_ns)
        return _entries(main), [_entries(path) for path in agents]

    def _left_processes(self) -> list[str]:
        # A process that ends with the client may take a moment to do so.
        give_up_at = time.monotonic() + 3
        while (left := processes_with(self._mark)) and time.monotonic() < give_up_at:
            time.sleep(0.05)
        kill_all_with(self._mark)
        return [process.command for process in left]


def _entries(transcript: Path) -> list[Json]:
    return [json.loads(line) for line in transcript.read_bytes().split(b"\n") if line]
