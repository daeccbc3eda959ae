"""
The page of one decision: what was judged, where it was recorded; the verdict, and what it took and cost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final, NamedTuple, cast

from ..ledger import Ledger
from ..records import Call, DecisionLine, FindingLine
from ..screen import money
from .marking import found_faults, was_judged
from .rows import Row, row

_LONGEST_TEXT: Final = 100_000
_MOST_LINES: Final = 500


class Judged(NamedTuple):
    """
    The turn as the judge saw it.
    """

    request: str
    later_prompts: tuple[str, ...]
    previous_reply: str
    calls: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    reply: str


class TurnView(NamedTuple):
    """
    All that the page shows.
    """

    row: Row
    facts: tuple[tuple[str, str], ...]
    findings: tuple[FindingLine, ...]
    calls: tuple[tuple[tuple[str, str], ...], ...]
    judged: Judged | None
    is_damaged: bool
    """Something was recorded that cannot be read."""
    may_be_wrong: bool
    found: tuple[str, ...]
    label: str
    note: str
    labelled_at: str


def turn_view(ledger: Ledger, decision_id: str, zone: tzinfo) -> TurnView | None:
    """
    Give what is known of a decision; None where there is none. Raises StoreError.
    """
    decision = ledger.decision(decision_id)
    if decision is None:
        return None
    line = decision.line
    recorded = ledger.recorded_turn(decision_id)
    judged = _judged(recorded)
    labels = ledger.labels(decision_id)
    said = labels[-1] if labels else None
    return TurnView(
        row=row(decision, zone, said.label if said else ""),
        facts=_known(_facts(line)),
        findings=line.findings,
        calls=tuple(_known(_call_facts(call, zone)) for call in decision.calls),
        judged=judged,
        is_damaged=recorded is not None and judged is None,
        may_be_wrong=was_judged(line),
        found=found_faults(line),
        label=said.label if said else "",
        note=said.note if said else "",
        labelled_at=f"{said.at.astimezone(zone):%Y-%m-%d %H:%M}" if said else "",
    )


def _facts(line: DecisionLine) -> dict[str, str]:
    dropped = "their quotes are not in the reply, or the rubric has no such fault"
    return {
        "event": line.event,
        "detail": line.detail,
        "project": line.project,
        "session": line.session_id,
        "agent": line.agent_id,
        "prompt": line.prompt_id,
        "transcript": line.transcript_path,
        "reply": _counted(line.reply_chars, "characters"),
        "held so far": _counted(line.spent, "of the turn's continuations are spent"),
        "findings left out": f"{line.dropped:,}: {dropped}" if line.dropped else "",
        "took": _counted(line.hook_ms, "ms"),
        "client": line.client_version,
    }


def _call_facts(call: Call, zone: tzinfo) -> dict[str, str]:
    start, end = call.start, call.end
    known = {
        "time": f"{start.at.astimezone(zone):%Y-%m-%d %H:%M:%S}",
        "try": str(start.try_number),
        "back end": f"{start.backend} {start.endpoint}".strip(),
        "model asked": start.model,
        "rubric": f"{start.rubric} {start.rubric_hash}".strip(),
    }
    if end is None:
        return {**known, "outcome": "never ended", "tokens": "unknown", "cost": "unknown"}
    tokens = {name.replace("_", " "): f"{count:,}" for name, count in end.usage._asdict().items()} if end.usage else {}
    return {
        **known,
        "model that answered": end.model_answered,
        "outcome": end.outcome,
        "detail": end.detail,
        **(tokens or {"tokens": "unknown"}),
        "cost": money(end.cost_usd),
        "price from": end.price_source,
        "took": _counted(end.latency_ms, "ms"),
        "request": end.request_id,
    }


def _judged(recorded: str | None) -> Judged | None:
    """
    Read a recorded turn as far as it is one; nothing in it is trusted to have its type.
    """
    try:
        found: object = json.loads(recorded or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    turn = cast("Mapping[str, Any]", found)
    facts = turn.get("facts")
    return Judged(
        request=_text(turn.get("request")),
        later_prompts=_texts(turn.get("later_prompts")),
        previous_reply=_text(turn.get("previous_reply")),
        calls=_texts([one.get("line") for one in _dicts(turn.get("tool_calls"))]),
        facts=_turn_facts(cast("Mapping[str, Any]", facts)) if isinstance(facts, dict) else (),
        reply=_text(turn.get("reply")),
    )


def _turn_facts(facts: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    checks = [
        f"{_text(check.get('command'))}: {_PASSED[_flag(check.get('passed'))]}"
        + (", edited after it" if check.get("edited_after") is True else "")
        for check in _dicts(facts.get("checks"))
    ]
    said = {
        "files edited": "\n".join(_texts(facts.get("edited_files"))),
        "checks": "\n".join(checks) or "no command recognised as a check",
        "edited after the last check": _YES[_flag(facts.get("edited_after_last_check"))],
        "background work not collected": "\n".join(_texts(facts.get("uncollected_background"))),
        "wake-ups": "\n".join(_texts(facts.get("wakeups"))),
        "plan mode": "yes" if facts.get("plan_mode") is True else "",
        "held before for": "\n".join(_texts(facts.get("holds"))),
        "beginning of the turn": "out of reach" if facts.get("calls_out_of_reach") is True else "",
    }
    return _known(said)


_PASSED: Final = {True: "passed", False: "failed", None: "outcome not known"}
_YES: Final = {True: "yes", False: "no", None: ""}


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: object) -> str:
    text = value if isinstance(value, str) else ""
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " […]"


def _texts(value: object) -> tuple[str, ...]:
    items = cast("Sequence[object]", value)[:_MOST_LINES] if isinstance(value, list) else ()
    return tuple(text for item in items if (text := _text(item)))


def _dicts(value: object) -> list[Mapping[str, Any]]:
    items = cast("Sequence[object]", value)[:_MOST_LINES] if isinstance(value, list) else ()
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def _known(values: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in values.items() if value.strip())


def _counted(count: int | None, of: str) -> str:
    return "" if count is None else f"{count:,} {of}"
