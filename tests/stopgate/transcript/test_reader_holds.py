"""
How often our own hook held the turn.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ..transcripts import Session
from .records import record_of

HOOK = "/home/dev/.local/bin/turngate-hook"


def hold(session: Session, command: str = HOOK, event: str = "Stop") -> None:
    session.prompt("Stop hook feedback:\nno", isMeta=True)
    session.attachment(
        "hook_blocking_error", hookEvent=event, blockingError={"blockingError": "no", "command": command}
    )


@pytest.mark.parametrize(
    ("stops", "holds"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([[HOOK]], 1, id="once"),
        pytest.param([[HOOK], [HOOK]], 2, id="twice"),
        pytest.param([[HOOK, f"TURNGATE_X=1 {HOOK}"]], 1, id="two installs at one stop"),
        pytest.param([["other-hook", HOOK, "other-hook"], ["other-hook"]], 1, id="beside others"),
        pytest.param([["other-hook"]], 0, id="others alone"),
    ],
)
def test_the_transcript_counts_our_own_holds(stops: list[list[str]], holds: int, tmp_path: Path):
    """
    Once per stop, of this human turn, by the hook's command and not by words.
    """
    session = Session()
    session.prompt("before")
    session.says("Done.")
    hold(session)
    session.prompt("go")
    for commands in stops:
        session.says("Done: turngate-hook.")
        for command in commands:
            hold(session, command)

    assert record_of(session, tmp_path).own_holds == holds


def test_what_our_hook_refuses_before_a_tool_is_no_hold(tmp_path: Path):
    """
    The jobs check is the same command on another event.
    """
    session = Session()
    session.prompt("go")
    hold(session, event="PreToolUse")

    assert record_of(session, tmp_path).own_holds == 0
