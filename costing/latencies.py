"""
How long the judge's calls took: the percentiles of a window, of at most the latest ten thousand calls in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo
from typing import Any, Final, NamedTuple

from .latency import nearest_rank
from .rows import MOST, readable_time
from .stamps import stamp
from .store import Store
from .sums import EVERYTHING, Filters
from .windows import Window, day_at

MOST_CALLS: Final = 10_000


class Latency(NamedTuple):
    """
    The middle and the slow end, in milliseconds; None where no call has ended.
    """

    p50_ms: int | None
    p95_ms: int | None
    of: int
    """How many calls these are the percentiles of."""
    is_all: bool
    """False: of the latest ten thousand calls of the window alone."""


def latency(store: Store | None, window: Window, filters: Filters = EVERYTHING) -> Latency:
    """
    Give the percentiles of a window's calls, by the nearest rank: each is a duration that was measured.
    """
    found, is_all = latest(store, window, filters)
    return percentiles((took_ms for _, took_ms in found), is_all=is_all)


def latency_over_time(
    store: Store | None, window: Window, filters: Filters = EVERYTHING
) -> tuple[tuple[str, int, int], ...]:
    """
    Give the percentiles of the same calls for each day: `2026-11-30`, the middle, the slow end.
    """
    return by_day(latest(store, window, filters)[0], window.zone)


def by_day(calls: Sequence[tuple[str, int]], zone: tzinfo) -> tuple[tuple[str, int, int], ...]:
    """
    Give the same of calls that are given newest first.
    """
    days: dict[str, list[int]] = {}
    day, begin, end = "", "", ""
    for at, took_ms in reversed(calls):
        # A calendar is asked once a day: there are ten thousand calls.
        if not begin <= at < end:
            time = readable_time(at)
            if time is None:
                continue
            found, begins_at, ends_at = day_at(time, zone)
            day, begin, end = found.isoformat(), stamp(begins_at), stamp(ends_at)
        days.setdefault(day, []).append(took_ms)
    return tuple((day, nearest_rank(sorted(took), 50), nearest_rank(sorted(took), 95)) for day, took in days.items())


def latest(store: Store | None, window: Window, filters: Filters = EVERYTHING) -> tuple[list[tuple[str, int]], bool]:
    """
    Give the latest calls of a window with how long each took, newest first, and whether these are all.
    """
    if store is None:
        return [], True

    ends = {" AND at >= ?": window.since, " AND at < ?": window.until}
    held = {condition: stamp(at) for condition, at in ends.items() if at is not None}
    rows: list[tuple[Any, ...]] = store.rows(
        "SELECT at, latency_ms, project, model, event FROM calls WHERE latency_ms IS NOT NULL"  # noqa: S608
        f"{''.join(held)} ORDER BY at DESC LIMIT {MOST_CALLS + 1}",
        list(held.values()),
    )
    found = [
        (at, took_ms)
        for at, took_ms, *told in rows[:MOST_CALLS]
        if isinstance(took_ms, int) and 0 <= took_ms <= MOST and isinstance(at, str) and filters.takes(*told)
    ]
    return found, len(rows) <= MOST_CALLS


def percentiles(took_ms: Iterable[int], *, is_all: bool = True) -> Latency:
    """
    Give the percentiles of some durations.
    """
    ordered = sorted(took_ms)
    if not ordered:
        return Latency(None, None, 0, is_all)
    return Latency(nearest_rank(ordered, 50), nearest_rank(ordered, 95), len(ordered), is_all)


def since(calls: Iterable[tuple[str, int]], at: datetime) -> list[int]:
    """
    Give the durations of those calls that were made since then.
    """
    begin = stamp(at)
    return [took_ms for made_at, took_ms in calls if made_at >= begin]
