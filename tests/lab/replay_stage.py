"""
Sessions of the past, and the command that plays their stops again.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from turngate.lab.commands.replay import add
from turngate.stopgate.console import Parser

from ..stopgate.transcripts import Session, notification

START = datetime(2026, 11, 29, 23, 50, tzinfo=UTC)

PRICES = """
[[price]]
model = "judge-model"
input = 1000
output = 0
cache_write_5m = 1250
cache_read = 100
"""
"""In USD per million tokens: a token of plain input is a tenth of a cent."""


class Past:
    """
    One session of the past; minutes are counted from `START`.
    """

    def __init__(self, name: str, *, cwd: str = "/home/dev/demo") -> None:
        self.name = name
        self.session = Session(cwd=cwd)
        self._prompts = 0

    def turn(self, minute: float, reply: str = "Done.", *, launches: str = "", prompt: str = "Go on") -> None:
        """
        A turn of a person's prompt, at most a task that is launched, and a reply.
        """
        self._prompts += 1
        fields = self._fields(minute)
        self.session.prompt(f"{prompt} {self._prompts}", prompt_id=f"p{self._prompts}", **fields)
        if launches:
            self._launch(launches, fields)
        self._says(reply, fields)

    def ended(self, minute: float, task: str, reply: str = "It is done.", *, launches: str = "") -> None:
        """
        A task's notification, which wakes the agent; it may launch the next one.
        """
        fields = self._fields(minute)
        self.session.prompt(notification(task), origin={"kind": "task-notification"}, **fields)
        if launches:
            self._launch(launches, fields)
        self._says(reply, fields)

    def write(self, folder: Path) -> Path:
        """
        Write the file, as the client names it.
        """
        folder.mkdir(parents=True, exist_ok=True)
        return Path(self.session.write(folder, f"{self.name}.jsonl"))

    def _fields(self, minute: float) -> dict[str, Any]:
        at = START + timedelta(minutes=minute)
        return {"timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "sessionId": self.name}

    def _says(self, reply: str, fields: dict[str, Any]) -> None:
        # No two messages of an API have one id.
        self.session.says(reply, message=f"msg_{self.name}_{len(self.session.lines)}", **fields)

    def _launch(self, task: str, fields: dict[str, Any]) -> None:
        call = f"toolu_{task}"
        block = {
            "type": "tool_use",
            "id": call,
            "name": "Bash",
            "input": {"command": "make all", "description": "Build it", "run_in_background": True},
        }
        self.session.block(block, stop="tool_use", **fields)
        text = f"Command running in background with ID: {task}. Output is being written to: /tmp/{task}.output"
        self.session.result(call, text, details={"backgroundTaskId": task, "stdout": "", "stderr": ""}, **fields)


def replay(capsys: pytest.CaptureFixture[str], environ: dict[str, str], *arguments: str | Path) -> tuple[str, str]:
    """
    Run the command in this process; give what it prints and what it complains of.
    """
    parser = Parser(prog="turngate lab")
    add(parser.add_subparsers())
    asked = parser.parse_args(["replay", "--jobs", "1", *map(str, arguments)])
    assert asked.command(asked, environ) == 0
    said = capsys.readouterr()
    return said.out, said.err


def replay_json(capsys: pytest.CaptureFixture[str], environ: dict[str, str], *arguments: str | Path) -> dict[str, Any]:
    """
    Run the command in this process; give the figures.
    """
    return json.loads(replay(capsys, environ, "--json", *arguments)[0])
