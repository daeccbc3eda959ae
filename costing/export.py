"""
The ledger for other programs: every decision or every call with all that is known of it, as JSON Lines or CSV, a portion at a time.

Names and values are those of `turngate log --json`; what stands there in fewer words follows after it. In CSV what is not known
is an empty field, and findings and raw usage are JSON.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from io import StringIO
from typing import Any, Final, Literal, NamedTuple

from .json_lines import call_json, decision_json
from .pages import pages
from .records import Call, CallStart, Decision, DecisionLine
from .rows import CALL_COLUMNS, DECISION_COLUMNS, read_call, read_decision
from .stamps import stamp
from .store import Store

What = Literal["decisions", "calls"]
Form = Literal["jsonl", "csv"]

WHATS: Final[tuple[What, ...]] = ("decisions", "calls")
FORMS: Final[tuple[Form, ...]] = ("jsonl", "csv")

_LABEL: Final = ("label", "label_at", "label_note")


class Wanted(NamedTuple):
    """
    What is exported, in which form and from which time; `until` itself is left out.
    """

    what: What = "decisions"
    form: Form = "jsonl"
    since: datetime | None = None
    until: datetime | None = None


def exported(store: Store | None, wanted: Wanted, on_damage: Callable[[str], None] = lambda _: None) -> Iterator[str]:
    """
    Give the text in portions, in the order in which the lines were written. Raises StoreError.

    `on_damage` is told of each row that cannot be read whole; what of it cannot be read is not known.
    """
    as_text = _csv_text if wanted.form == "csv" else _json_text
    if wanted.form == "csv":
        yield _csv_line(_NAMES[wanted.what])
    if store is None:
        return

    condition, values = _time(wanted)
    columns = DECISION_COLUMNS if wanted.what == "decisions" else CALL_COLUMNS
    read = _decisions if wanted.what == "decisions" else _calls
    for rows in pages(store, wanted.what, columns, condition, values):
        yield as_text(read(store, rows, on_damage))


def _decisions(
    store: Store, rows: Sequence[Sequence[object]], on_damage: Callable[[str], None]
) -> list[dict[str, object]]:
    found = [read_decision(row) for row in rows]
    labels = _labels(store, [line.id for line, _ in found])
    for line, is_damaged in found:
        if is_damaged:
            on_damage(f"decisions {line.id}")
    return [_decision_fields(line, labels.get(line.id, (None, None, None))) for line, _ in found]


def _calls(_: Store, rows: Sequence[Sequence[object]], on_damage: Callable[[str], None]) -> list[dict[str, object]]:
    found = [read_call(row) for row in rows]
    for call, is_damaged in found:
        if is_damaged:
            on_damage(f"calls {call.id}")
    return [_call_fields(call) for call, _ in found]


def _decision_fields(line: DecisionLine, label: Sequence[object]) -> dict[str, object]:
    known = decision_json(Decision(line))
    del known["calls"]
    known["findings"] = [finding._asdict() for finding in line.findings]
    more = {name: value for name, value in line._asdict().items() if name not in known}
    return {**known, **more, **dict(zip(_LABEL, label, strict=True))}


def _call_fields(call: Call) -> dict[str, object]:
    known = call_json(call)
    start = {name: value for name, value in call.start._asdict().items() if name not in (*known, "try_number")}
    detail, raw_usage = (call.end.detail, call.end.raw_usage) if call.end else ("", None)
    return {**known, **start, "detail": detail, "raw_usage": raw_usage}


def _labels(store: Store, ids: Sequence[str]) -> Mapping[str, tuple[Any, ...]]:
    holes = ", ".join("?" * len(ids))
    rows = store.rows(f"SELECT decision_id, label, at, note FROM labels WHERE decision_id IN ({holes})", ids)  # noqa: S608
    return {row[0]: row[1:] for row in rows}


def _time(wanted: Wanted) -> tuple[str, list[str]]:
    bounds = {"at >= ?": wanted.since, "at < ?": wanted.until}
    held = {condition: stamp(at) for condition, at in bounds.items() if at is not None}
    return " AND ".join(held) or "number = number", list(held.values())


def _json_text(lines: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def _csv_text(lines: Sequence[Mapping[str, object]]) -> str:
    return "".join(_csv_line([_field(value) for value in line.values()]) for line in lines)


def _csv_line(values: Sequence[object]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()


def _field(value: object) -> object:
    return json.dumps(value) if isinstance(value, list | dict) else value


_SOME_TIME: Final = datetime.fromtimestamp(0).astimezone()
_NAMES: Final[Mapping[What, tuple[str, ...]]] = {
    "decisions": tuple(_decision_fields(DecisionLine(_SOME_TIME, "", "pass_clean"), (None, None, None))),
    "calls": tuple(_call_fields(Call("", CallStart(_SOME_TIME, "", ""), None))),
}
