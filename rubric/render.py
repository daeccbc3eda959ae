"""
The request that asks a judge about one turn: a rubric that is the same for every turn, and the turn as fenced data.

Whatever stands in the turn, the request stays under its ceiling: each part has a share, and what one part leaves over is the others'.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple

from .library import Rubric
from .masking import clean, cut, mask
from .tokens import estimate
from .turn import Check, Facts, ToolCall, Turn


class Request(NamedTuple):
    """
    What goes to a model.
    """

    system: str
    """The same bytes for every turn."""
    user: str
    schema: dict[str, Any]
    """The JSON schema of the answer, for endpoints that take one."""
    estimated_tokens: int
    """At most so many input tokens, the schema included."""


class CeilingTooLow(ValueError):
    """
    The rubric leaves too little of the whole request's tokens for a turn that can be judged.
    """


QUESTION: Final = "Which faults does that reply show?"

_SCHEMA_TOKENS: Final = 180
"""Allowance for the schema and the message's frame, which an endpoint puts into words of its own."""
_LEAST_TURN_TOKENS: Final = 600
_LEAST_REPLY_TOKENS: Final = 300
"""As long as that is no more than half of the room."""
_MOST_CHARACTERS_PER_TOKEN: Final = 12
_MOST_TOOL_LINES: Final = 60
_FIRST_TOOL_LINES: Final = 10
_LAST_TOOL_LINES: Final = 45
_FOREMOST_CHECKS: Final = 5
"""The newest checks outrank every failure: a few failing searches must not push out the only test run."""
_FOREMOST_FAILURES: Final = 10
_LINE_LENGTHS: Final = (300, 180, 110)
"""A line is cut before a call is left out."""
_LONGEST_NAME: Final = 70
_MOST_NAMES: Final = 6

_Keep = Literal["start", "end", "both"]
_PartName = Literal["previous reply", "request", "later prompts", "tool calls", "facts", "reply"]
_SHARES: Final[dict[_PartName, float]] = {
    # In the order in which what is left over is given away. Without its evidence a reply cannot be judged: calls and facts are no rest.
    "facts": 0.20,
    "reply": 0.34,
    "tool calls": 0.28,
    "request": 0.10,
    "later prompts": 0.04,
    "previous reply": 0.04,
}
_ORDER: Final[tuple[_PartName, ...]] = ("previous reply", "request", "later prompts", "tool calls", "facts", "reply")


def render(rubric: Rubric, turn: Turn, *, max_input_tokens: int = 2500, tag: str | None = None) -> Request:
    """
    Return the request that asks about the turn, of at most `max_input_tokens` by `tokens.estimate`.

    `tag` opens and closes the parts; one that stands in the turn is replaced by another. Raises `CeilingTooLow`.
    """
    fixed = (rubric.tokens or estimate(rubric.system)) + _SCHEMA_TOKENS
    room = max_input_tokens - fixed
    if room < _LEAST_TURN_TOKENS:
        raise CeilingTooLow(
            f"max_input_tokens {max_input_tokens}: rubric {rubric.label} needs at least {fixed + _LEAST_TURN_TOKENS}"
        )

    turn = _safe(turn)
    tag = _unguessed(tag, turn)
    user = _user_message(turn, tag, room)
    return Request(rubric.system, user, _schema(rubric.faults), fixed + estimate(user))


def _user_message(turn: Turn, tag: str, room: int) -> str:
    parts = _parts(turn)
    budget = room - estimate(_joined(dict.fromkeys(parts, ""), tag)) - len(parts)
    while budget > 0:
        user = _joined(_fitted(parts, budget), tag)
        if (excess := estimate(user) - room) <= 0:
            return user
        budget -= excess
    raise CeilingTooLow(f"max_input_tokens leaves {room} tokens for the turn: too few")


def _joined(parts: dict[_PartName, str], tag: str) -> str:
    lines = [line for name in _ORDER if name in parts for line in (f"[{tag} {name}]", parts[name])]
    return "\n".join((*lines, f"[{tag} end]", QUESTION))


class _Part(NamedTuple):
    whole: str
    fit: Callable[[int], str]
    """Gives the part in at most so many tokens."""


def _parts(turn: Turn) -> dict[_PartName, _Part]:
    parts: dict[_PartName, _Part] = {
        "previous reply": _text_part(turn.previous_reply, "end"),
        "request": _text_part(turn.request, "both"),
        "later prompts": _text_part("\n".join(turn.later_prompts), "both"),
        "tool calls": _Part(_tool_lines(turn.tool_calls, sys.maxsize), partial(_tool_lines, turn.tool_calls)),
        "facts": _text_part("\n".join(fact_lines(turn)), "start"),
        "reply": _text_part(turn.reply, "both"),
    }
    return {name: part for name, part in parts.items() if part.whole}


def _text_part(text: str, keep: _Keep) -> _Part:
    return _Part(text, partial(_fit, text, keep))


def _fitted(parts: dict[_PartName, _Part], budget: int) -> dict[_PartName, str]:
    needs = {name: estimate(part.whole) for name, part in parts.items()}
    reply = max(int(_SHARES["reply"] * budget), min(_LEAST_REPLY_TOKENS, budget // 2))
    rest = (budget - reply) / (1 - _SHARES["reply"])
    shares = {name: int(share * rest) for name, share in _SHARES.items()} | {"reply": reply}
    grants = {name: min(needs[name], shares[name]) for name in parts}
    left = budget - sum(grants.values())
    for name in filter(parts.__contains__, _SHARES):
        more = min(needs[name] - grants[name], left)
        grants[name] += more
        left -= more

    fitted: dict[_PartName, str] = {}
    for name, part in parts.items():
        if text := part.whole if needs[name] <= grants[name] else part.fit(grants[name]):
            fitted[name] = text
    return fitted


def _fit(text: str, keep: _Keep, tokens: int) -> str:
    most = min(len(text), _MOST_CHARACTERS_PER_TOKEN * tokens)
    return cut(text, _largest(lambda size: estimate(cut(text, size, keep=keep)) <= tokens, most), keep=keep)


def _tool_lines(calls: Sequence[ToolCall], tokens: int) -> str:
    ranked = _ranked(calls)[:_MOST_TOOL_LINES]
    for length in _LINE_LENGTHS:
        lines = _kept_lines(calls, ranked, length)
        if estimate(lines) <= tokens:
            return lines

    shortest = _LINE_LENGTHS[-1]
    kept = _largest(lambda size: estimate(_kept_lines(calls, ranked[:size], shortest)) <= tokens, len(ranked))
    lines = _kept_lines(calls, ranked[:kept], shortest)
    return lines if estimate(lines) <= tokens else f"left out: {len(calls)} calls"


def _largest(fits: Callable[[int], bool], most: int) -> int:
    fewest = 0
    while fewest < most:
        middle = (fewest + most + 1) // 2
        if fits(middle):
            fewest = middle
        else:
            most = middle - 1
    return fewest


def _ranked(calls: Sequence[ToolCall]) -> list[int]:
    checks = [index for index, call in enumerate(calls) if call.kind == "check"]
    failures = [index for index, call in enumerate(calls) if call.failed and call.kind != "check"]
    foremost = dict.fromkeys((*checks, *failures[-_FOREMOST_FAILURES:]), 1)
    foremost |= dict.fromkeys(checks[-_FOREMOST_CHECKS:], 0)
    return sorted(range(len(calls)), key=lambda index: (foremost.get(index, _ordinary_rank(calls, index)), -index))


def _ordinary_rank(calls: Sequence[ToolCall], index: int) -> int:
    near = index < _FIRST_TOOL_LINES or index >= len(calls) - _LAST_TOOL_LINES
    if calls[index].kind == "read":
        return 3 if near else 5
    return 2 if near else 4


def _kept_lines(calls: Sequence[ToolCall], kept: Sequence[int], length: int) -> str:
    shown = (
        (index - position, _shortened_call(calls[index].line, length)) for position, index in enumerate(sorted(kept))
    )
    # Within a run of calls that were made one after the other, index and position grow alike.
    lines = [_repeated(line, len(list(same))) for (_, line), same in groupby(shown)]
    left_out = Counter(call.tool for call in calls)
    left_out.subtract(calls[index].tool for index in kept)
    counts = [(tool, count) for tool, count in left_out.most_common() if count > 0]
    if counts:
        shown = [f"{count} {tool}" for tool, count in counts[:_MOST_NAMES]]
        if rest := sum(count for _, count in counts[_MOST_NAMES:]):
            shown.append(f"{rest} of other tools")
        lines.append(f"left out: {', '.join(shown)}")
    return "\n".join(lines)


def _shortened_call(line: str, characters: int) -> str:
    call, arrow, outcome = line.partition(" -> ")
    if not arrow or len(line) <= characters:
        return _shortened(line, characters)
    room = characters - len(arrow)
    call = _shortened(call, max(room // 2, room - len(outcome)))
    return f"{call}{arrow}{_shortened(outcome, room - len(call))}"


def _repeated(line: str, times: int) -> str:
    return line if times == 1 else f"{line} ({times} times)"


def fact_lines(turn: Turn) -> list[str]:
    """
    Word the facts of a turn as a judge reads them, one line each.
    """
    facts = turn.facts
    lines = [
        _if(turn.subagent, "a subagent's reply; the request is its dispatch prompt"),
        _if(not turn.request, "the request is out of reach"),
        _if(facts.calls_out_of_reach, "the record is cut: what was done before the first call shown is not known"),
        _if(not turn.tool_calls and not facts.calls_out_of_reach, "no tool call in this turn"),
        _checks(turn),
        _if(facts.edited_after_last_check is True, "edited after the last recognised check"),
        _listed("edited", facts.edited_files),
        _listed("background work started and not collected", facts.uncollected_background),
        _listed("scheduled wake-ups", facts.wakeups),
        _if(facts.plan_mode, "plan mode: the agent may not edit yet"),
        _held(facts.holds),
    ]
    return [line for line in lines if line]


def _checks(turn: Turn) -> str:
    checks = turn.facts.checks
    if not checks:
        return _if(bool(turn.tool_calls), "no command recognised as a check")

    last = len(checks) - 1
    ranked = sorted(range(len(checks)), key=lambda index: (index != last, checks[index].passed is not False, -index))
    # An edit after the last check came after all of them, and has a line of its own.
    all_stale = turn.facts.edited_after_last_check is True
    shown = [_told(checks[index], all_stale) for index in sorted(ranked[:_MOST_NAMES])]
    if left_out := Counter(_outcome(checks[index]) for index in ranked[_MOST_NAMES:]):
        counts = ", ".join(f"{count} {outcome}" for outcome, count in left_out.most_common())
        shown.append(f"and {left_out.total()} more: {counts}")
    return f"checks: {'; '.join(shown)}"


def _told(check: Check, all_stale: bool) -> str:
    edited = _if(check.edited_after and not all_stale, ", then files were edited")
    return f"{check.command} {_outcome(check)}{edited}"


def _outcome(check: Check) -> str:
    return "(outcome unknown)" if check.passed is None else "passed" if check.passed else "failed"


def _held(holds: Sequence[str]) -> str:
    if not holds:
        return ""
    times = "once" if len(holds) == 1 else f"{len(holds)} times"
    return f"this turn was held already {times}, last for: {holds[-1]}"


def _listed(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{what}: {', '.join(names[:_MOST_NAMES])}{more}"


def _if(holds: bool, line: str) -> str:
    return line if holds else ""


def _safe(turn: Turn) -> Turn:
    facts = turn.facts
    return Turn(
        request=_text(turn.request),
        reply=_text(turn.reply),
        previous_reply=_text(turn.previous_reply),
        later_prompts=tuple(prompt for prompt in map(_text, turn.later_prompts) if prompt),
        tool_calls=tuple(
            ToolCall(
                _line(call.tool, _LONGEST_NAME),
                _shortened_call(_folded(call.line), _LINE_LENGTHS[0]),
                call.kind,
                call.failed,
            )
            for call in turn.tool_calls
        ),
        facts=Facts(
            edited_files=_lines(facts.edited_files),
            checks=tuple(check._replace(command=_line(check.command, _LONGEST_NAME)) for check in facts.checks),
            edited_after_last_check=facts.edited_after_last_check,
            uncollected_background=_lines(facts.uncollected_background),
            wakeups=_lines(facts.wakeups),
            plan_mode=facts.plan_mode,
            holds=tuple(_line(hold, _LINE_LENGTHS[0]) for hold in facts.holds),
            calls_out_of_reach=facts.calls_out_of_reach,
        ),
        subagent=turn.subagent,
    )


def _text(text: str) -> str:
    return mask(clean(text)).strip()


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(_line(text, _LONGEST_NAME) for text in texts)


def _line(text: str, characters: int) -> str:
    return _shortened(_folded(text), characters)


def _folded(text: str) -> str:
    return " ".join(mask(clean(text)).split())


def _shortened(line: str, characters: int) -> str:
    if len(line) <= characters:
        return line
    start = characters // 2
    return f"{line[:start]}…{line[start + 1 - characters :]}"


_TAG_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"


def _unguessed(tag: str | None, turn: Turn) -> str:
    data = repr(turn)
    while not tag or tag in data:
        tag = "".join(_TAG_LETTERS[byte % 32] for byte in os.urandom(6))
    return tag


def _schema(faults: Sequence[str]) -> dict[str, Any]:
    finding = {
        "type": "object",
        "properties": {
            "fault": {"type": "string", "enum": list(faults)},
            "quote": {"type": "string"},
            "reason": {"type": "string"},
        },
        "required": ["fault", "quote", "reason"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"findings": {"type": "array", "items": finding}},
        "required": ["findings"],
        "additionalProperties": False,
    }
