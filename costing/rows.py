"""
How a stored row becomes a record, whatever somebody or something did to the file.

A value that cannot be read is not known: an unknown cost, an empty text. Nothing here raises for what a row holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from .amounts import readable_cost
from .records import Call, CallEnd, CallStart, DecisionLine, FindingLine
from .stamps import moment
from .usage import Usage

if TYPE_CHECKING:
    from decimal import Decimal

MOST: Final = 10**12
"""A count above it is damage: no call takes so many tokens, and no decision so many milliseconds."""

LOST_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""Stands where a time cannot be read: the row itself is kept."""

END_COLUMNS: Final = (
    "outcome",
    "latency_ms",
    "model_answered",
    *Usage._fields,
    "raw_usage",
    "cost_usd",
    "price_source",
    "request_id",
    "detail",
)
DECISION_COLUMNS: Final = DecisionLine._fields
CALL_COLUMNS: Final = ("id", *CallStart._fields, *END_COLUMNS)

_DECISION_COUNTS: Final = ("spent", "hook_ms", "reply_chars")


class Reader:
    """
    Reads one row; `is_damaged` tells afterwards whether all of it could be read.
    """

    def __init__(self, columns: Sequence[str], row: Sequence[object]) -> None:
        self.is_damaged = False
        self._values = dict(zip(columns, row, strict=True))

    def text(self, name: str) -> str:
        """
        Give a text, as far as it is one.
        """
        value = self._values[name]
        if isinstance(value, str):
            return value
        self.is_damaged = True
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""

    def count(self, name: str) -> int | None:
        """
        Give a whole number from 0 up, or None.
        """
        value = self._values[name]
        if value is None or (isinstance(value, int) and 0 <= value <= MOST):
            return value
        self.is_damaged = True
        return None

    def time(self, name: str) -> datetime:
        """
        Give a time, or LOST_TIME.
        """
        found = readable_time(self._values[name])
        if found is None:
            self.is_damaged = True
        return found or LOST_TIME

    def cost(self, name: str) -> Decimal | None:
        """
        Give an amount, or None where it is unknown.
        """
        value = self._values[name]
        found = None if value is None else readable_cost(value)
        if found is None and value is not None:
            self.is_damaged = True
        return found

    def json(self, name: str) -> object:
        """
        Give what a JSON text holds; None where there is none.
        """
        value = self._values[name]
        if value is None:
            return None
        try:
            return json.loads(cast("str", value))
        except (ValueError, TypeError, RecursionError):
            self.is_damaged = True
            return None

    def usage(self) -> Usage | None:
        """
        Give the tokens of a call: all classes, or none.
        """
        values = [self._values[name] for name in Usage._fields]
        counts = [count for name in Usage._fields if (count := self.count(name)) is not None]
        if len(counts) == len(values):
            return Usage(*counts)
        if any(value is not None for value in values):
            self.is_damaged = True
        return None


def read_decision(row: Sequence[object]) -> tuple[DecisionLine, bool]:
    """
    Read a row of `DECISION_COLUMNS`, and say whether it is damaged.
    """
    reader = Reader(DECISION_COLUMNS, row)
    texts = [name for name in DECISION_COLUMNS if name not in ("at", "findings", "dropped", *_DECISION_COUNTS)]
    values: dict[str, Any] = {name: reader.text(name) for name in texts}
    counts: dict[str, Any] = {name: reader.count(name) for name in _DECISION_COUNTS}
    found = reader.json("findings")
    items = cast("list[object]", found) if isinstance(found, list) else []
    findings = tuple(finding for item in items if (finding := _finding(item)) is not None)
    line = DecisionLine(
        at=reader.time("at"), findings=findings, dropped=reader.count("dropped") or 0, **values, **counts
    )
    return line, reader.is_damaged or not isinstance(found, list) or len(findings) < len(items)


def read_call(row: Sequence[object]) -> tuple[Call, bool]:
    """
    Read a row of `CALL_COLUMNS`, and say whether it is damaged.
    """
    reader = Reader(CALL_COLUMNS, row)
    texts = [name for name in CallStart._fields if name not in ("at", "try_number")]
    values: dict[str, Any] = {name: reader.text(name) for name in texts}
    start = CallStart(at=reader.time("at"), try_number=reader.count("try_number") or 0, **values)
    call = Call(reader.text("id"), start, _call_end(reader) if row[CALL_COLUMNS.index("outcome")] is not None else None)
    return call, reader.is_damaged


def readable_time(value: object) -> datetime | None:
    """
    Read a time as the store has it; None where it is none.
    """
    try:
        found = moment(cast("str", value))
    except (ValueError, TypeError):
        return None
    # Not at the ends of the calendar, so that others can add to it.
    return found if found.tzinfo is not None and 1970 <= found.year < 9000 else None


def _call_end(reader: Reader) -> CallEnd:
    raw_usage = reader.json("raw_usage")
    values: dict[str, Any] = {
        name: reader.text(name) for name in ("outcome", "model_answered", "price_source", "request_id", "detail")
    }
    return CallEnd(
        latency_ms=reader.count("latency_ms"),
        usage=reader.usage(),
        raw_usage=cast("Mapping[str, object]", raw_usage) if isinstance(raw_usage, dict) else None,
        cost_usd=reader.cost("cost_usd"),
        **values,
    )


def _finding(item: object) -> FindingLine | None:
    if not isinstance(item, dict):
        return None

    values = cast("dict[str, object]", item)
    fault, quote, reason, held = (values.get(name) for name in FindingLine._fields)
    if not (isinstance(fault, str) and isinstance(quote, str) and isinstance(reason, str)):
        return None
    return FindingLine(fault, quote, reason, held if isinstance(held, bool) else None)
