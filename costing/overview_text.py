"""
The overview in words: what was spent and what it brought, as a person reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Final

from .latencies import MOST_CALLS
from .overview import Budget, Overview, Period
from .report import Total
from .screen import money
from .tables import table
from .windows import zone_name


def overview_text(overview: Overview, zone: tzinfo, now: datetime, *, styled: bool = False) -> str:
    """
    Give the figures of the three periods side by side, and the budget where there is one.
    """
    periods = (overview.today, overview.week, overview.month)
    head = f"{now.astimezone(zone):%Y-%m-%d} ({zone_name(zone)})"
    rows = [[name, *(cell(period) for period in periods)] for name, cell in _ROWS.items()]
    names = [period.name for period in periods]
    lines = table([head, *names], rows, right=names, styled=styled)
    if any(not period.latency.is_all for period in periods):
        lines += ["", f"The judge's time is of the latest {MOST_CALLS:,} calls where there were more."]
    if any(period.total.unknown_costs for period in periods):
        lines += ["", "Costs leave out the calls whose cost is unknown."]
    if overview.budget is not None:
        lines += ["", _budget_line(overview.budget)]
    lines += ["", "Each model's, project's or session's part: `turngate cost --by project --since 7d`."]
    return "\n".join(lines) + "\n"


def _budget_line(budget: Budget) -> str:
    share = f" ({budget.used_usd / budget.usd_per_day:.0%})" if budget.usd_per_day else ""
    unknown = f", and {budget.unknown:,} calls of unknown cost" if budget.unknown else ""
    return f"budget: {money(budget.used_usd)} of {money(budget.usd_per_day)} used today in UTC{share}{unknown}"


def _share(part: int, share: float | None) -> str:
    return "" if share is None else f"{part:,} ({share:.1%})"


def _took(ms: int | None) -> str:
    return "" if ms is None else f"{ms / 1000:,.2f} s"


def _each(total: Total, blocks: int, *, upheld: bool) -> str:
    if not blocks:
        return ""
    return money(total.cost_per_upheld_block if upheld else total.cost_per_block)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


_ROWS: Final[Mapping[str, Callable[[Period], str]]] = {
    "spent": lambda period: money(period.total.cost_usd),
    "calls of unknown cost": lambda period: f"{period.total.unknown_costs:,}",
    "calls to the judge": lambda period: f"{period.total.calls:,}",
    "stops": lambda period: f"{period.total.decisions:,}",
    "held": lambda period: f"{period.total.blocks:,}",
    "marked wrong": lambda period: f"{period.total.wrong_blocks:,}",
    "cost per block": lambda period: _each(period.total, period.total.blocks, upheld=False),
    "cost per upheld block": lambda period: _each(period.total, period.total.upheld_blocks, upheld=True),
    "ended as the cap was spent": lambda period: _share(period.total.cap_spent, period.total.cap_spent_share),
    "read from the cache": lambda period: _percent(period.total.cache_hit_share),
    "judge's time, median": lambda period: _took(period.latency.p50_ms),
    "judge's time, 95 %": lambda period: _took(period.latency.p95_ms),
}
