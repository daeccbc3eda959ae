"""
Runs the real hook as the client does: a process of its own, a clean environment, a home and a state directory of its own.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from turngate.stopgate.cli import main

PYTHON = sys.executable
SCRIPT = str(Path(sysconfig.get_path("scripts")) / "turngate-hook")

ISOLATED = (PYTHON, "-I", SCRIPT)
ISOLATED_CODE = (PYTHON, "-I", "-c", "from turngate.stopgate.hook import main; main()")
IMPATIENT = (
    PYTHON,
    "-I",
    "-c",
    "from turngate.stopgate import hook; hook.INPUT_WAIT_S = 0.3; hook.main()",
)
"""The hook, but for the seconds that it waits for its input."""

RUNNING_TASK = {"id": "b1", "type": "shell", "status": "running", "description": "the tests", "command": "make test"}

Event = Mapping[str, object] | bytes


class Ran(NamedTuple):
    """
    How a hook's process ended.
    """

    code: int
    out: bytes
    err: bytes

    @property
    def answer(self) -> dict[str, Any]:
        """
        The answer, empty for a plain pass.
        """
        return json.loads(self.out) if self.out else {}

    @property
    def holds(self) -> bool:
        """
        Whether the turn goes on.
        """
        return self.answer.get("decision") == "block"


class Hook:
    """
    One user's hook. `environ` is all that its processes get.
    """

    def __init__(self, folder: Path, **environ: str) -> None:
        self.home = folder / "user"
        self.state = folder / "state"
        self.work = folder / "work"
        for made in (self.home, self.work):
            made.mkdir()
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "TURNGATE_STATE_DIR": str(self.state)}
        self.environ["TURNGATE_SERVICE_AUTOSTART"] = "off"
        self.environ |= environ

    def start(
        self, command: Sequence[str] = (SCRIPT,), *, cwd: Path | None = None, environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """
        A process that waits for its event.
        """
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or self.work,
            env={**self.environ, **(environ or {})},
        )

    def run(
        self,
        event: Event,
        command: Sequence[str] = (SCRIPT,),
        *,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Ran:
        """
        A process that got the event and ended.
        """
        return ended(self.start(command, cwd=cwd, environ=environ), event)

    def shell(self, event: Event, script: str) -> Ran:
        """
        A shell that starts the hook as `"$@"`, with whatever it does before.
        """
        return self.run(event, ("sh", "-c", script, "sh", SCRIPT))

    def log(self) -> list[dict[str, Any]]:
        """
        What `turngate log --json` prints.
        """
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = main(["log", "--json", "-n", "1000"], self.environ)
        assert code == 0
        return [json.loads(line) for line in printed.getvalue().splitlines()]

    def outcomes(self) -> list[str]:
        """
        The outcome codes in the log, newest last.
        """
        return [line["outcome"] for line in self.log()]

    def script(self, *answers: object) -> None:
        """
        Let the scripted judge say these answers, one after the other.
        """
        self.state.mkdir(exist_ok=True)
        (self.state / "scripted.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
        self.environ["TURNGATE_JUDGE_BACKEND"] = "scripted"

    def stored_bytes(self) -> bytes:
        """
        All that lies in the state directory.
        """
        return b"".join(path.read_bytes() for path in self.state.rglob("*") if path.is_file())


def ended(process: subprocess.Popen[bytes], event: Event) -> Ran:
    """
    Send the event and wait for the end.
    """
    data = event if isinstance(event, bytes) else json.dumps(event).encode()
    out, err = process.communicate(data, timeout=60)
    return Ran(process.returncode, out, err)


def a_stop(**fields: object) -> dict[str, object]:
    """
    The event of a stop; no transcript, no task.
    """
    return {
        "hook_event_name": "Stop",
        "session_id": "session-1",
        "prompt_id": "prompt-1",
        "last_assistant_message": "Done. All tests pass.",
        "background_tasks": [],
    } | fields


def assert_sound(ran: Ran) -> None:
    """
    What holds however the hook is treated: exit 0, a valid answer or nothing, at most one line and no traceback.
    """
    assert ran.code == 0, ran
    assert ran.out == b"" or (ran.out[:1] == b"{" and isinstance(json.loads(ran.out), dict)), ran
    assert ran.err.count(b"\n") <= 1, ran
    assert b"Traceback" not in ran.err, ran
    assert not ran.err or ran.err.startswith(b"turngate: "), ran


HELD = a_stop(background_tasks=[RUNNING_TASK])
"""A stop that is held for free wherever everything works."""

CLAIM = {
    "findings": [
        {"fault": "claim", "quote": "All tests pass.", "reason": "No test ran. Run them, or say that none ran."},
    ]
}
CLEAN: dict[str, object] = {"findings": []}
