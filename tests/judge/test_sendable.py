"""
What of a turn leaves the machine for a team's service.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.judge.sendable import sendable
from turngate.judge.service.limits import MAX_BODY_BYTES
from turngate.judge.service.wire import read_request, write_request
from turngate.rubric.library import load
from turngate.rubric.render import render
from turngate.rubric.turn import Check, Facts, ToolCall, Turn, as_json

SECRET = "sk-ant-api03-0123456789abcdefghij"
RUBRIC = load()
EMPTY = Turn("", "")


@pytest.mark.parametrize(
    "turn",
    [
        pytest.param(EMPTY._replace(request=SECRET), id="request"),
        pytest.param(EMPTY._replace(reply=SECRET), id="reply"),
        pytest.param(EMPTY._replace(previous_reply=SECRET), id="previous-reply"),
        pytest.param(EMPTY._replace(later_prompts=("a", SECRET)), id="later-prompt"),
        pytest.param(EMPTY._replace(tool_calls=(ToolCall("Bash", SECRET),)), id="tool-line"),
        pytest.param(EMPTY._replace(tool_calls=(ToolCall(SECRET, ""),)), id="tool-name"),
        pytest.param(EMPTY._replace(facts=Facts(edited_files=(SECRET,))), id="edited-file"),
        pytest.param(EMPTY._replace(facts=Facts(checks=(Check(SECRET, None),))), id="check"),
        pytest.param(EMPTY._replace(facts=Facts(uncollected_background=(SECRET,))), id="background"),
        pytest.param(EMPTY._replace(facts=Facts(wakeups=(SECRET,))), id="wake-up"),
        pytest.param(EMPTY._replace(facts=Facts(holds=(SECRET,))), id="hold"),
        pytest.param(EMPTY._replace(reply="x " * 66_645 + SECRET + " x" * 150_000), id="where-the-text-is-cut"),
    ],
)
def test_no_secret_leaves_the_machine(turn: Turn) -> None:
    """
    Whoever built the turn, it is masked before it is cut and sent.
    """
    assert SECRET[:14] in as_json(turn)

    assert SECRET[:14] not in as_json(sendable(turn))


@pytest.mark.parametrize(
    "turn",
    [
        pytest.param(
            Turn(
                "Write retry.ts.",
                "Done. All tests pass.",
                tool_calls=tuple(ToolCall("Bash", f"Bash: make {number} -> ok", "check") for number in range(250)),
                facts=Facts(checks=(Check("make", passed=True),), holds=("The reply says done.",)),
            ),
            id="a-turn-of-250-calls",
        ),
        pytest.param(
            Turn("word " * 60_000, "réponse " * 30_000, later_prompts=("and test it",)), id="the-longest-kept"
        ),
    ],
)
def test_what_real_turns_hold_is_sent_whole(turn: Turn) -> None:
    """
    The service's judge is asked exactly what a judge of this machine would be asked.
    """
    sent = read_request(write_request(sendable(turn), 5), "application/json").asked()

    assert sent == turn
    assert render(RUBRIC, sent, tag="tag7q") == render(RUBRIC, turn, tag="tag7q")


@pytest.mark.parametrize("letter", ["x", '"', "\n", "é", "\U0001f600"])
@pytest.mark.parametrize("calls", [0, 3_000])
def test_a_turn_of_any_size_is_one_that_the_service_takes(letter: str, calls: int) -> None:
    """
    However long it is and whatever it is made of, the request is within the limits of the wire.
    """
    text = letter * 410_000
    turn = Turn(
        text,
        text,
        later_prompts=(text[:100_000],) * 4,
        tool_calls=(ToolCall("Bash", text[:500], "check", failed=True),) * calls,
        facts=Facts(holds=(text[:3_000],) * 600),
    )

    body = write_request(sendable(turn), 5)

    assert len(body) <= MAX_BODY_BYTES
    assert read_request(body, "application/json").asked().reply


def test_of_thousands_of_calls_those_that_are_only_named_are_left_out() -> None:
    """
    What has a line of its own is what the judge may see.
    """
    named, told = ToolCall("Read", "Read", "read"), ToolCall("Bash", "Bash: pytest -> exit 1", "check", failed=True)

    sent = sendable(Turn("a", "b", tool_calls=(told, *[named] * 5_000, told)))

    assert sent.tool_calls == (told, told)


@given(st.text(st.characters(), max_size=50))
def test_no_text_breaks_the_request(text: str) -> None:
    """
    Control characters and lone surrogates do not arrive.
    """
    turn = Turn(text, text, text, (text,), (ToolCall(text, text),), Facts((text,), (Check(text, None),), holds=(text,)))

    sent = read_request(write_request(sendable(turn), 5), "application/json").asked()

    assert not any(0xD800 <= ord(letter) < 0xE000 or letter == "\x00" for letter in sent.reply)
