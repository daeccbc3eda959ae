"""
The report: totals of decisions, calls, tokens and cost, by day, model, project or outcome.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, get_args

from .amounts import plain, sum_costs
from .rows import MOST
from .store import Store

By = Literal["day", "model", "project", "outcome"]
WAYS: Final[tuple[By, ...]] = get_args(By)

_COUNTED: Final = (
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "cache_write_5m_tokens",
    "cache_write_1h_tokens",
    "cache_read_tokens",
)


class Total(NamedTuple):
    """
    One row of a report. Tokens are those that endpoints reported.
    """

    key: str
    """Day (UTC), model asked, project or outcome; empty where there is none: no call, no project, no decision."""
    decisions: int
    calls: int
    input_tokens: int
    """Not cached."""
    output_tokens: int
    thinking_tokens: int
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    cache_read_tokens: int
    cost_usd: Decimal | None
    """Of the calls whose cost is known; None where there are calls and none of their costs is known."""
    unknown_costs: int
    """Calls whose cost is unknown."""


class Report(NamedTuple):
    """
    The rows, and all of it in one row.

    A decision that asked two models stands in two rows of `by model`, and once in the total.
    """

    by: By
    rows: tuple[Total, ...]
    total: Total


def report(database: Store | None, by: By) -> Report:
    """
    Add up the ledger: days in order, everything else by cost, the dearest first.

    No database: nothing was recorded yet.
    """
    if database is None:
        return Report(by, (), _total("total", 0, []))

    decisions = {str(key): int(count) for key, count in database.rows(_DECISIONS[by])}
    groups: dict[str, list[tuple[Any, ...]]] = {key: [] for key in decisions}
    for key, *counts in database.rows(_calls_sql(by)):
        groups.setdefault(str(key), []).append(tuple(counts))

    rows = [_total(key, decisions.get(key, 0), group) for key, group in groups.items()]
    rows.sort(key=lambda row: row.key if by == "day" else (-(row.cost_usd or 0), row.key))
    all_decisions = database.rows("SELECT COUNT(*) FROM decisions")[0][0]
    return Report(by, tuple(rows), _total("total", all_decisions, itertools.chain(*groups.values())))


def report_json(report: Report) -> dict[str, object]:
    """
    Give a report as plain data: money as decimal strings, or null where it is unknown.
    """
    return {"by": report.by, "rows": _json_rows(report), "total": _json(report.total)}


def report_csv(report: Report) -> str:
    """
    Give the rows of a report as CSV, with the names and values that they have in `report_json`; what is unknown is empty.
    """
    import csv
    from io import StringIO

    text = StringIO()
    lines = csv.DictWriter(text, (report.by, *_json(report.total)), lineterminator="\n")
    lines.writeheader()
    lines.writerows(_json_rows(report))
    return text.getvalue()


_KEYS: Final[dict[By, str]] = {
    "day": "substr(calls.at, 1, 10)",
    "model": "calls.model",
    "project": "calls.project",
    "outcome": "COALESCE(decisions.outcome, '')",
}

_DECISIONS: Final[dict[By, str]] = {
    "day": "SELECT substr(at, 1, 10), COUNT(*) FROM decisions GROUP BY 1",
    "model": (
        "SELECT COALESCE(calls.model, ''), COUNT(DISTINCT decisions.id) FROM decisions"
        " LEFT JOIN calls ON calls.decision_id = decisions.id GROUP BY 1"
    ),
    "project": "SELECT project, COUNT(*) FROM decisions GROUP BY 1",
    "outcome": "SELECT outcome, COUNT(*) FROM decisions GROUP BY 1",
}


def _calls_sql(by: By) -> str:
    # Grouped by cost too, so that the database adds up whole numbers only and money is multiplied here, exactly.
    # A count that is damaged counts as nothing, as one that never arrived.
    sums = ", ".join(
        f"CAST(COALESCE(SUM(CASE WHEN calls.{name} BETWEEN 0 AND {MOST} AND CAST(calls.{name} AS BIGINT) = calls.{name}"
        f" THEN calls.{name} END), 0) AS BIGINT)"
        for name in _COUNTED
    )
    return (
        f"SELECT {_KEYS[by]}, calls.cost_usd, COUNT(*), {sums} FROM calls"  # noqa: S608
        " LEFT JOIN decisions ON decisions.id = calls.decision_id GROUP BY 1, 2"
    )


def _total(key: str, decisions: int, groups: Iterable[tuple[Any, ...]]) -> Total:
    groups = list(groups)
    spent = sum_costs((cost, calls) for cost, calls, *_ in groups)
    calls = sum(group[1] for group in groups)
    tokens = [sum(group[2 + place] for group in groups) for place in range(len(_COUNTED))]
    known = spent.usd if spent.unknown < calls or not calls else None
    return Total(key, decisions, calls, *tokens, cost_usd=known, unknown_costs=spent.unknown)


def _json_rows(report: Report) -> list[dict[str, object]]:
    return [{report.by: row.key, **_json(row)} for row in report.rows]


def _json(row: Total) -> dict[str, object]:
    values: dict[str, object] = row._asdict()
    del values["key"]
    return {**values, "cost_usd": None if row.cost_usd is None else plain(row.cost_usd)}
