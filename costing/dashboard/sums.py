"""
What the overview adds up, on an axis of time without gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from ..day_sums import Filters, Stretch, Tell, read_days
from ..latencies import Latency, by_day, latest, percentiles
from ..report import Total, decisions_by_outcome, rows_by, total_of
from ..store import Store
from ..windows import Window
from .asked import Asked

HOURS_UP_TO: Final = timedelta(days=2)

Piece = Literal["hour", "day", "month", "year"]


MOST: Final[Mapping[Piece, int]] = {"hour": 100, "day": 100, "month": 120, "year": 120}
"""Of an axis: a longer time is shown in longer pieces."""

EARLIER: Final = "earlier"
"""The place of all years before those that an axis can hold."""

_LENGTHS: Final[Mapping[Piece, int]] = {"day": 10, "month": 7, "year": 4}
"""Of the names that pieces have, which begin like that of the day."""


class Slot(NamedTuple):
    """
    A piece of the time axis.
    """

    name: str
    total: Total
    usd_by_model: Mapping[str, Decimal]
    """Without models of which no cost is known."""


class Sums(NamedTuple):
    """
    All sums of a window.
    """

    slots: tuple[Slot, ...]
    piece: Piece
    total: Total
    by_model: tuple[Total, ...]
    by_project: tuple[Total, ...]
    outcomes: Mapping[str, int]
    latency: Latency
    latencies: tuple[tuple[str, int, int], ...]
    """Day, p50 and p95 in ms; of the latest hundred days."""
    projects: tuple[str, ...]
    """To choose from, of whatever project the sums are."""


def read_sums(store: Store | None, asked: Asked, now: datetime, *, tell: Tell | None = None) -> Sums:
    """
    Add up what the filters let through. For `tell` see `read_days`. Raises StoreError.
    """
    window, filters = Window(asked.since, asked.ends_at(now), asked.zone), Filters(project=asked.project)
    hours = asked.since is not None and (asked.until or now) - asked.since <= HOURS_UP_TO
    stretches = read_days(store, window, filters, now=now, hours=hours, tell=tell)
    everything = stretches if asked.project is None else read_days(store, window, Filters(), now=now, hours=hours)
    slots, piece = _slots(stretches, hours=hours)
    calls, is_all = latest(store, window, filters)
    return Sums(
        slots=slots,
        piece=piece,
        total=total_of(stretches),
        by_model=rows_by(stretches, "model"),
        by_project=rows_by(stretches, "project"),
        outcomes=decisions_by_outcome(stretches),
        latency=percentiles((took_ms for _, took_ms in calls), is_all=is_all),
        latencies=by_day(calls, asked.zone)[-MOST["day"] :],
        projects=tuple(sorted({row.key for row in rows_by(everything, "project")})),
    )


def _slots(stretches: Sequence[Stretch], *, hours: bool) -> tuple[tuple[Slot, ...], Piece]:
    names = [stretch.key for stretch in stretches]
    axis, piece = (_hours(names), "hour") if hours else _axis(names)
    length = _LENGTHS.get(piece)
    # An hour that the clocks repeat is there twice, under one name.
    found: dict[str, list[Stretch]] = {name: [] for name in axis}
    for stretch in stretches:
        name = stretch.key[:length]
        found[name if name in found else EARLIER].append(stretch)
    return tuple(_slot(name, parts) for name, parts in found.items()), piece


def _slot(name: str, stretches: Sequence[Stretch]) -> Slot:
    known = {row.key: row.cost_usd for row in rows_by(stretches, "model") if row.calls and row.cost_usd is not None}
    return Slot(name or "(no time)", total_of(stretches), known)


def _axis(known: Sequence[str]) -> tuple[list[str], Piece]:
    """
    Give all days from the first to the last, or months, or years: the shortest of which there are few enough.
    """
    days = [day for name in known if (day := _day(name)) is not None]
    names: list[str] = []
    for piece, length in _LENGTHS.items():
        names = list(dict.fromkeys(name[:length] for name in known))
        # A damaged time has no place in order.
        places = _between(piece, days[0], days[-1]) if len(days) == len(known) and days else None
        if len(names if places is None else places) <= MOST[piece]:
            return names if places is None else [_name(piece, number) for number in places], piece
    # One of them is far away: the years in which there is anything.
    most = MOST["year"]
    return names if len(names) <= most else [EARLIER, *names[1 - most :]], "year"


def _between(piece: Piece, first: date, last: date) -> range:
    if piece == "day":
        return range(first.toordinal(), last.toordinal() + 1)
    if piece == "month":
        return range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    return range(first.year, last.year + 1)


def _name(piece: Piece, number: int) -> str:
    if piece == "day":
        return date.fromordinal(number).isoformat()
    return f"{number // 12:04}-{number % 12 + 1:02}" if piece == "month" else f"{number:04}"


def _hours(known: Sequence[str]) -> list[str]:
    """
    Give all hours from the first to the last; one that a change of clocks leaves out or repeats is there once.
    """
    try:
        first, last = (datetime.strptime(name, "%Y-%m-%d %H:%M") for name in (known[0], known[-1]))  # noqa: DTZ007
    except (IndexError, ValueError):
        return list(dict.fromkeys(known))
    count = int((last - first) / timedelta(hours=1)) + 1
    names = [f"{first + timedelta(hours=number):%Y-%m-%d %H:%M}" for number in range(min(count, MOST["hour"]))]
    return names if set(known) <= set(names) else list(dict.fromkeys(known))


def _day(name: str) -> date | None:
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None
