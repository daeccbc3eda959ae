"""
What of a turn goes to a team's service: masked once more, and no more than the wire takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final, TypeVar

from ..rubric.masking import clean, cut, mask
from ..rubric.turn import Facts, ToolCall, Turn, as_json
from .service.limits import MAX_BODY_BYTES
from .service.wire import LONGEST_LINE, LONGEST_TEXT, MOST_CALLS, MOST_LINES

T = TypeVar("T")

_FRAME_BYTES: Final = 1_000
"""Room for what stands around the turn."""


def sendable(turn: Turn) -> Turn:
    """
    Give the turn as it may leave this machine, in at most `MAX_BODY_BYTES`.

    No real session came near these limits. What is over them is cut; of calls, those that are only named go first, then the oldest.
    """
    safe = _masked(turn._replace(tool_calls=_last_told(turn.tool_calls, MOST_CALLS)))
    sizes = (_within(safe, halvings) for halvings in count())
    return next(turn for turn in sizes if len(as_json(turn).encode()) <= MAX_BODY_BYTES - _FRAME_BYTES)


def _masked(turn: Turn) -> Turn:
    facts = turn.facts
    return Turn(
        request=_text(turn.request),
        reply=_text(turn.reply),
        previous_reply=_text(turn.previous_reply),
        later_prompts=_texts(turn.later_prompts),
        tool_calls=tuple(call._replace(tool=_text(call.tool), line=_text(call.line)) for call in turn.tool_calls),
        facts=Facts(
            edited_files=_texts(facts.edited_files),
            checks=tuple(check._replace(command=_text(check.command)) for check in facts.checks),
            edited_after_last_check=facts.edited_after_last_check,
            uncollected_background=_texts(facts.uncollected_background),
            wakeups=_texts(facts.wakeups),
            plan_mode=facts.plan_mode,
            holds=_texts(facts.holds),
            calls_out_of_reach=facts.calls_out_of_reach,
        ),
        subagent=turn.subagent,
    )


def _text(text: str) -> str:
    return mask(clean(text))


def _texts(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(_text, texts))


def _within(turn: Turn, halvings: int) -> Turn:
    """
    Cut a turn to the limits of the wire, or to a half, a quarter, ... of each of them.
    """
    longest, longest_line, most = LONGEST_TEXT >> halvings, LONGEST_LINE >> halvings, MOST_LINES >> halvings

    def line(text: str) -> str:
        return cut(text, longest_line, keep="both")

    def lines(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(line, _last(texts, most)))

    facts, calls = turn.facts, _last_told(turn.tool_calls, MOST_CALLS >> halvings)
    return turn._replace(
        request=cut(turn.request, longest, keep="both"),
        reply=cut(turn.reply, longest, keep="both"),
        previous_reply=cut(turn.previous_reply, longest, keep="end"),
        later_prompts=tuple(cut(prompt, longest, keep="both") for prompt in _last(turn.later_prompts, most)),
        tool_calls=tuple(call._replace(tool=line(call.tool), line=line(call.line)) for call in calls),
        facts=facts._replace(
            edited_files=lines(facts.edited_files),
            checks=tuple(check._replace(command=line(check.command)) for check in _last(facts.checks, most)),
            uncollected_background=lines(facts.uncollected_background),
            wakeups=lines(facts.wakeups),
            holds=lines(facts.holds),
        ),
    )


def _last_told(calls: Sequence[ToolCall], most: int) -> Sequence[ToolCall]:
    if len(calls) <= most:
        return calls
    return _last([call for call in calls if call.line != call.tool], most)


def _last(items: Sequence[T], most: int) -> Sequence[T]:
    return items[max(0, len(items) - most) :]
