"""
Sessions that are written to a file and read back as records.
"""

from __future__ import annotations

from pathlib import Path

from turngate.stopgate.transcript import Record, read

from ..transcripts import Session


def record_of(session: Session, folder: Path, *, subagent: bool = False) -> Record:
    return read(session.write(folder), subagent=subagent)


def two_turns() -> Session:
    session = Session()
    session.prompt("first", prompt_id="p1")
    session.says("First reply.")
    session.prompt("second", prompt_id="p2", uuid="human-2")
    session.says("Let me look.", message="m1", stop="tool_use")
    session.runs("Read", "text", file_path="/home/dev/demo/a.py")
    session.says("Second reply.")
    return session
