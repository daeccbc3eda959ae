"""
The overview: today, the last seven days and this month, with what the day's budget has left.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple

from .amounts import plain
from .day_sums import Stretch, Tell, read_days
from .latencies import MOST_CALLS, Latency, latest, percentiles, since
from .ledger import Ledger
from .report import Total, total_json, total_of
from .stamps import stamp
from .store import Store
from .sums import EVERYTHING, Filters
from .windows import Window, day_begin, month_begin


class Period(NamedTuple):
    """
    What happened since the beginning of a day.
    """

    name: str
    since: datetime
    total: Total
    latency: Latency


class Budget(NamedTuple):
    """
    The day's budget, and what of it is used: of the UTC day, as the gate counts it.
    """

    usd_per_day: Decimal
    used_usd: Decimal
    unknown: int
    """Calls of the day whose cost is unknown; they count as nothing."""


class Overview(NamedTuple):
    """
    All that one look should tell.
    """

    today: Period
    week: Period
    """Today and the six days before."""
    month: Period
    """Since the first of it."""
    budget: Budget | None
    days: tuple[Stretch, ...]
    """All days of the ledger."""


def overview(
    store: Store | None,
    zone: tzinfo,
    filters: Filters = EVERYTHING,
    *,
    now: datetime,
    usd_per_day: Decimal | None = None,
    tell: Tell | None = None,
) -> Overview:
    """
    Add up what stands in the ledger, in the days of a zone. For `tell` see `read_days`.
    """
    days = read_days(store, Window(zone=zone), filters, now=now, tell=tell)
    begins = {
        "today": day_begin(now, zone),
        "last 7 days": day_begin(now, zone, days_before=6),
        "this month": month_begin(now, zone),
    }
    calls, is_all = latest(store, Window(min(begins.values())), filters)
    oldest = calls[-1][0] if calls else ""
    periods: list[Period] = []
    for name, begin in begins.items():
        text = stamp(begin)
        total = total_of([day for day in days if day.key and day.starts_at >= text])
        # All of a period's calls are among the latest, where one before it is, too.
        took = percentiles(since(calls, begin), is_all=is_all or oldest < text)
        periods.append(Period(name, begin, total, took))
    today, week, month = periods
    return Overview(today, week, month, _budget(store, now, usd_per_day), days)


def overview_json(found: Overview) -> dict[str, object]:
    """
    Give the figures as plain data: money as decimal strings, or null where it is unknown.
    """
    budget: dict[str, Any] | None = None
    if found.budget is not None:
        budget = {
            "usd_per_day": plain(found.budget.usd_per_day),
            "used_usd": plain(found.budget.used_usd),
            "unknown_costs": found.budget.unknown,
        }
    return {
        "today": _period_json(found.today),
        "last_7_days": _period_json(found.week),
        "this_month": _period_json(found.month),
        "budget": budget,
    }


def _period_json(period: Period) -> dict[str, object]:
    took = period.latency
    return {
        "since": stamp(period.since),
        **total_json(period.total),
        "latency_p50_ms": took.p50_ms,
        "latency_p95_ms": took.p95_ms,
        "latency_of_latest": None if took.is_all else MOST_CALLS,
    }


def _budget(store: Store | None, now: datetime, usd_per_day: Decimal | None) -> Budget | None:
    if usd_per_day is None:
        return None
    if store is None:
        return Budget(usd_per_day, Decimal(0), 0)
    spent = Ledger(store).spent_usd(now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0))
    return Budget(usd_per_day, spent.usd, spent.unknown)
