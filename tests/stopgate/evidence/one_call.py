"""
The line of a session's only tool call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from turngate.rubric.turn import ToolCall
from turngate.stopgate.evidence.builder import build_turn
from turngate.stopgate.transcript import read

from ..transcripts import Session

CWD = "/home/dev/demo"


def line_of(tool: str, content: object, folder: Path, given: dict[str, Any], **result: Any) -> ToolCall:
    session = Session(cwd=CWD)
    session.prompt("go")
    call = session.calls(tool, **given)
    session.result(call, content, **result)
    return build_turn(read(session.write(folder)), reply="").tool_calls[0]


def bash(command: str) -> dict[str, Any]:
    return {"command": command, "description": "Run it"}
