"""
Which text is the last message, which the final reply, and which the reply before the turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..transcripts import Session
from .records import record_of


def test_a_text_not_written_yet_is_not_taken_from_the_turn_before(tmp_path: Path):
    """
    The final message may be missing from the file; then there is no last message, and the previous reply stays what it was.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.prompt("second")

    record = record_of(session, tmp_path)

    assert record.last_message is None
    assert record.final_reply == ""
    assert record.previous_reply == "First reply."


def test_a_message_that_calls_a_tool_is_no_final_reply(tmp_path: Path):
    """
    Text before a tool call comes from the middle of the turn.
    """
    session = Session()
    session.prompt("go")
    session.says("Let me check.", message="m", stop=None)
    session.calls("Bash", message="m", command="ls")

    assert record_of(session, tmp_path).final_reply == ""


def test_the_last_message_is_put_together_from_its_entries(tmp_path: Path):
    """
    One message is several entries of one id, the last of them perhaps a lone thinking block; earlier stops' texts stay out.
    """
    session = Session()
    session.prompt("go")
    session.says("Done. All tests pass.")
    session.held("No test ran.")
    session.says("Part one.", message="m", stop=None)
    session.says("Part two.", message="m", stop="end_turn")
    session.block({"type": "thinking", "thinking": "secret thoughts"}, message="m")

    record = record_of(session, tmp_path)

    assert record.last_message is not None
    assert record.last_message.text == "Part one.\n\nPart two."
    assert record.last_message.stop_reason == "end_turn"


@pytest.mark.parametrize(
    "fields",
    [pytest.param({"isApiErrorMessage": True}, id="flag"), pytest.param({"model": "<synthetic>"}, id="model")],
)
def test_an_api_error_posing_as_a_reply_is_known(fields: dict[str, Any], tmp_path: Path):
    """
    Errors and limits arrive as replies.
    """
    session = Session()
    session.prompt("go")
    session.says("You've hit your limit", stop="stop_sequence", **fields)

    last = record_of(session, tmp_path).last_message

    assert last is not None
    assert last.is_api_error


@pytest.mark.parametrize(
    ("end", "previous"),
    [
        pytest.param(lambda s: s.says("The end."), "The end.", id="text"),
        pytest.param(lambda s: None, "", id="interrupted in front of a call"),
        pytest.param(lambda s: s.calls("Bash", command="ls"), "", id="interrupted at a call"),
        pytest.param(lambda s: s.runs("Bash", "ok", command="ls"), "", id="interrupted behind a call"),
        pytest.param(lambda s: (s.says("The end."), s.held("no")), "The end.", id="held and interrupted"),
        pytest.param(
            lambda s: (s.says("The end."), s.says("No response requested.", model="<synthetic>")),
            "The end.",
            id="the client's filler",
        ),
        pytest.param(
            lambda s: (s.says("The end."), s.says("API Error: 529", isApiErrorMessage=True)), "The end.", id="API error"
        ),
    ],
)
def test_the_previous_reply_is_the_text_that_ended_the_turn_before(end: object, previous: str, tmp_path: Path):
    """
    Not one from the middle of it, and none that the client wrote.
    """
    session = Session()
    session.prompt("first")
    session.says("Let me look.", stop="tool_use")
    end(session)  # type: ignore[operator]
    session.prompt([{"type": "text", "text": "[Request interrupted by user]"}])
    session.prompt("second")
    session.says("Second reply.")

    assert record_of(session, tmp_path).previous_reply == previous


def test_a_turn_without_text_leaves_no_previous_reply(tmp_path: Path):
    """
    A reply from further back answered something else.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.prompt("second")
    session.calls("Bash", command="ls")
    session.prompt("third")

    assert record_of(session, tmp_path).previous_reply == ""


def test_a_prompt_that_nothing_followed_was_no_turn(tmp_path: Path):
    """
    A prompt sent twice, or stopped by a hook, does not hide the reply before it.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.prompt("second")
    session.prompt("Operation stopped by hook: wait")
    session.prompt("second")

    assert record_of(session, tmp_path).previous_reply == "First reply."
