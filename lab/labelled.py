"""
Hand-labelled turns as public collections give them, made into cases.

Two forms: a coding agent's turn with `tool_calls {name, summary, ok, result_tail?}`, and a push-back pair of question, answer,
disagreement and reply. What the gate would have seen of a call is told from its name, its summary and its outcome, as `evidence` words it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from ..costing.screen import one_line
from ..rubric.masking import clean, mask
from ..rubric.turn import Check, Facts, ToolCall, Turn
from ..stopgate.evidence.checks import checks_in
from .cases import Case, new_case
from .errors import LabError

_READS: Final = frozenset({"Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "NotebookRead"})
_EDITS: Final = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_LONGEST_SUMMARY: Final = 220
_LONGEST_RESULT: Final = 160
_NEEDED_OF_TURN: Final = ("prompt", "reply", "tool_calls", "label")
_MORE_OF_TURN: Final = ("previous_reply_tail", "tool_calls_total")
_NEEDED_OF_PAIR: Final = ("previous_reply", "user", "reply", "label")
_MORE_OF_PAIR: Final = ("question", "basis")
_OF_CASE: Final = (
    *("source", "licence", "client_version", "model", "confidence", "disputed", "rationale"),
    *("session", "tags", "split", "sample"),
)
"""Taken as they are; null stands for what is not said."""
_NEEDED_OF_CALL: Final = ("name", "summary", "ok")


def is_labelled_line(fields: Mapping[str, Any]) -> bool:
    """
    Say whether a line has one of the two forms.
    """
    return "turn" not in fields and ("tool_calls" in fields or "user" in fields)


def labelled_case(fields: Mapping[str, Any]) -> Case:
    """
    Make the case. Raises `LabError` with a line that names the key.
    """
    common = {key: fields[key] for key in _OF_CASE if fields.get(key) is not None}
    if "tool_calls" in fields:
        _check_keys(fields, _NEEDED_OF_TURN, ("id", *_MORE_OF_TURN, *_OF_CASE))
        turn = _turn(fields)
        common.setdefault("session", _text(fields, "source").partition("#")[0])
    else:
        _check_keys(fields, _NEEDED_OF_PAIR, ("id", *_MORE_OF_PAIR, *_OF_CASE))
        turn = Turn(
            request=_text(fields, "user"),
            reply=_text(fields, "reply"),
            previous_reply=_text(fields, "previous_reply"),
        )
        common["rationale"] = "; ".join(filter(None, (_text(fields, "rationale"), _text(fields, "basis"))))
        # All replies to one question, by whatever model, resemble each other.
        common.setdefault("session", _text(fields, "question"))
    case_id = _text(fields, "id")
    if not case_id:
        raise LabError("id: missing")
    return new_case(case_id, _masked(turn), labels=_labels(fields["label"]), **common)


def _check_keys(fields: Mapping[str, Any], needed: Sequence[str], more: Sequence[str], place: str = "") -> None:
    if unknown := [key for key in fields if key not in needed and key not in more]:
        raise LabError(f"{place}{one_line(unknown[0])[:60]}: unknown key")
    if missing := [key for key in needed if key not in fields]:
        raise LabError(f"{place}{missing[0]}: missing")


def _turn(fields: Mapping[str, Any]) -> Turn:
    given = fields["tool_calls"]
    if not isinstance(given, list):
        raise LabError("tool_calls: expected a list")

    calls: list[ToolCall] = []
    checks: list[Check] = []
    edited: dict[str, None] = {}
    edited_at = checked_at = -1
    for number, entry in enumerate(cast("list[object]", given)):
        name, summary, ok, result = _given_call(entry, f"tool_calls[{number}]")
        ran = checks_in(summary, ()) if name == "Bash" else []
        if name in _EDITS and ok:
            edited[summary.partition(" ")[0]] = None
            edited_at = number
        if ran:
            checked_at = number
            checks += [Check(check.command[:120], ok) for check in ran]
        calls.append(_call(name, summary, ok, result, is_check=bool(ran)))

    facts = Facts(
        edited_files=tuple(edited),
        checks=tuple(checks),
        edited_after_last_check=edited_at > checked_at if edited_at >= 0 and checked_at >= 0 else None,
        calls_out_of_reach=_total(fields) > len(calls),
    )
    return Turn(
        request=_text(fields, "prompt"),
        reply=_text(fields, "reply"),
        previous_reply=_text(fields, "previous_reply_tail"),
        tool_calls=tuple(calls),
        facts=facts,
    )


class _Given(NamedTuple):
    name: str
    summary: str
    ok: bool | None
    """None as long as there is no result."""
    result: str


def _given_call(entry: object, place: str) -> _Given:
    if not isinstance(entry, dict):
        raise LabError(f"{place}: expected an object")
    call = cast("dict[str, Any]", entry)
    place += "."
    _check_keys(call, _NEEDED_OF_CALL, ("result_tail",), place)
    ok: object = call["ok"]
    if ok is not None and not isinstance(ok, bool):
        raise LabError(f"{place}ok: expected true, false or null")
    summary = mask(clean(_text(call, "summary", place)))
    return _Given(_text(call, "name", place), summary, ok, _text(call, "result_tail", place))


def _total(fields: Mapping[str, Any]) -> int:
    total = fields.get("tool_calls_total") or 0
    if not isinstance(total, int):
        raise LabError(f"tool_calls_total: expected a whole number, found {total!r}")
    return total


def _call(name: str, summary: str, ok: bool | None, result: str, *, is_check: bool) -> ToolCall:
    kind = "check" if is_check else "edit" if name in _EDITS else "read" if name in _READS else "other"
    tail = "" if kind == "read" else " ".join(mask(clean(result)).split())[-_LONGEST_RESULT:]
    line = f"{name}: {summary}"[:_LONGEST_SUMMARY] + f" -> {_state(name, ok, kind)}" + (f": {tail}" if tail else "")
    return ToolCall(name, " ".join(line.split()), kind, failed=ok is False)


def _state(name: str, ok: bool | None, kind: str) -> str:
    if ok is None:
        return "no result yet"
    if not ok:
        return "error"
    return "ok, read-only" if kind == "read" else "exit 0" if name == "Bash" else "ok"


def _labels(value: object) -> list[str] | None:
    if value is None:
        return None  # not labelled yet
    if value == "none":
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [str(label) for label in cast("list[object]", value)]
    raise LabError(f"label: expected a fault, a list of faults or 'none', found {value!r}")


def _masked(turn: Turn) -> Turn:
    return turn._replace(
        request=mask(clean(turn.request)),
        reply=mask(clean(turn.reply)),
        previous_reply=mask(clean(turn.previous_reply)),
    )


def _text(fields: Mapping[str, Any], key: str, place: str = "") -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise LabError(f"{place}{key}: expected a text")
    return value
