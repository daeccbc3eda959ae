"""
Hand-labelled turns as public collections give them, made into cases.

Two forms: a coding agent's turn with `tool_calls {name, summary, ok, result_tail?}`, and a push-back pair of question, answer,
disagreement and reply. What the gate would have seen of a call is told from its name, its summary and its outcome, as `evidence` words it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from ..rubric.masking import clean, mask
from ..rubric.turn import Check, Facts, ToolCall, Turn
from ..stopgate.evidence.checks import checks_in
from .cases import Case, new_case
from .errors import LabError

_READS: Final = frozenset({"Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "NotebookRead"})
_EDITS: Final = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_LONGEST_SUMMARY: Final = 220
_LONGEST_RESULT: Final = 160
_TURN_KEYS: Final = frozenset({"prompt", "reply", "tool_calls", "label"})
_PAIR_KEYS: Final = frozenset({"previous_reply", "user", "reply", "label"})


def is_labelled_line(fields: Mapping[str, Any]) -> bool:
    """
    Say whether a line has one of the two forms.
    """
    return "turn" not in fields and (fields.keys() >= _TURN_KEYS or fields.keys() >= _PAIR_KEYS)


def labelled_case(fields: Mapping[str, Any]) -> Case:
    """
    Make the case. Raises `LabError` with a line that names the key.
    """
    case_id = _text(fields, "id")
    if not case_id:
        raise LabError("id: missing")
    common = {
        "labels": _labels(fields.get("label")),
        "source": _text(fields, "source"),
        "licence": _text(fields, "licence"),
        "model": _text(fields, "model"),
    }
    if "tool_calls" not in fields:
        turn = Turn(
            request=_text(fields, "user"),
            reply=_text(fields, "reply"),
            previous_reply=_text(fields, "previous_reply"),
        )
        # All replies to one question, by whatever model, resemble each other.
        return new_case(
            case_id, _masked(turn), rationale=_text(fields, "basis"), session=_text(fields, "question"), **common
        )

    return new_case(
        case_id,
        _masked(_turn(fields)),
        confidence=fields.get("confidence", "high"),
        disputed=fields.get("disputed", False),
        rationale=_text(fields, "rationale"),
        client_version=_text(fields, "client_version"),
        session=_text(fields, "source").partition("#")[0],
        sample=fields.get("sample", "picked"),
        **common,
    )


def _turn(fields: Mapping[str, Any]) -> Turn:
    given = fields["tool_calls"]
    if not isinstance(given, list):
        raise LabError("tool_calls: expected a list")

    calls: list[ToolCall] = []
    checks: list[Check] = []
    edited: dict[str, None] = {}
    edited_at = checked_at = -1
    for number, entry in enumerate(cast("list[object]", given)):
        if not isinstance(entry, dict):
            raise LabError(f"tool_calls[{number}]: expected an object")
        call = cast("dict[str, Any]", entry)
        name, summary, ok = _text(call, "name"), mask(clean(_text(call, "summary"))), call.get("ok")
        ran = checks_in(summary, ()) if name == "Bash" else []
        if name in _EDITS and ok:
            edited[summary.partition(" ")[0]] = None
            edited_at = number
        if ran:
            checked_at = number
            checks += [Check(check.command[:120], None if ok is None else bool(ok)) for check in ran]
        calls.append(_call(name, summary, ok, _text(call, "result_tail"), is_check=bool(ran)))

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


def _total(fields: Mapping[str, Any]) -> int:
    total = fields.get("tool_calls_total") or 0
    if not isinstance(total, int):
        raise LabError(f"tool_calls_total: expected a whole number, found {total!r}")
    return total


def _call(name: str, summary: str, ok: object, result: str, *, is_check: bool) -> ToolCall:
    kind = "check" if is_check else "edit" if name in _EDITS else "read" if name in _READS else "other"
    tail = "" if kind == "read" else " ".join(mask(clean(result)).split())[-_LONGEST_RESULT:]
    line = f"{name}: {summary}"[:_LONGEST_SUMMARY] + f" -> {_state(name, ok, kind)}" + (f": {tail}" if tail else "")
    return ToolCall(name, " ".join(line.split()), kind, failed=ok is False)


def _state(name: str, ok: object, kind: str) -> str:
    if ok is None:
        return "no result yet"
    if not ok:
        return "error"
    return "ok, read-only" if kind == "read" else "exit 0" if name == "Bash" else "ok"


def _labels(value: object) -> list[str]:
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


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise LabError(f"{key}: expected a text")
    return value
