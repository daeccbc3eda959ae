"""
How often our own hook held the turn.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..transcripts import Session
from .records import record_of

HOOK = "/home/dev/.local/bin/turngate-hook"
FILE = "/opt/v/bin/python -I -S /opt/v/lib/python3.11/site-packages/turngate/stopgate/__main__.py"
"""As `turngate install` writes it."""


def hold(session: Session, command: str = HOOK, event: str = "Stop") -> None:
    session.prompt("Stop hook feedback:\nno", isMeta=True)
    session.attachment(
        "hook_blocking_error", hookEvent=event, blockingError={"blockingError": "no", "command": command}
    )


def answered(session: Session, stdout: str, command: str = HOOK, event: str = "Stop") -> None:
    """
    What client 2.1.328 writes of a hook that answered without a block.
    """
    session.attachment("hook_success", hookEvent=event, stdout=stdout, exitCode=0, command=command)


def context(text: str = "no", event: str = "Stop") -> str:
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


@pytest.mark.parametrize(
    ("stops", "holds"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([[HOOK]], 1, id="once"),
        pytest.param([[HOOK], [HOOK]], 2, id="twice"),
        pytest.param([[FILE], [FILE]], 2, id="twice by the hook's file"),
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


@pytest.mark.parametrize(
    ("answers", "holds"),
    [
        pytest.param([context()], 1, id="once"),
        pytest.param([context(), context()], 2, id="twice"),
        pytest.param([context(), '{"systemMessage": "turngate: held twice"}'], 1, id="a message alone is none"),
        pytest.param([context("")], 0, id="no text"),
        pytest.param(["{}", "", "turngate-hook", "[1]", "null", '{"hookSpecificOutput": 1}'], 0, id="other answers"),
    ],
)
def test_holds_by_context_are_counted_too(answers: list[str], holds: int, tmp_path: Path) -> None:
    """
    The client calls them a success; what the hook wrote tells that the turn went on.
    """
    session = Session()
    session.prompt("go")
    for answer in answers:
        session.says("Done.")
        answered(session, answer)

    assert record_of(session, tmp_path).own_holds == holds


def test_of_two_styles_at_one_stop_one_hold_is_counted(tmp_path: Path) -> None:
    """
    Two installs with two settings; others' context, and that of another event, is none of ours.
    """
    session = Session()
    session.prompt("go")
    session.says("Done.")
    answered(session, context())
    hold(session)
    session.says("Done.")
    answered(session, context(), "other-hook")
    answered(session, context(event="PreToolUse"), event="PreToolUse")
    session.says("Done.")
    answered(session, context(event="SubagentStop"), event="SubagentStop")

    assert record_of(session, tmp_path).own_holds == 2
