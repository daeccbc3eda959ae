"""
The report: totals of stops, calls, tokens and cost, by day, model, project, event, outcome or session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Context, Decimal
from typing import Final, Literal, NamedTuple, get_args

from .amounts import plain
from .day_sums import Stretch, Tell, read_days, read_session_days
from .store import Store
from .sums import EVERYTHING, NOTHING, Filters, Line, added
from .usage import Usage
from .windows import ALL_TIME, Window, zone_name

By = Literal["day", "model", "project", "event", "outcome", "session"]
WAYS: Final[tuple[By, ...]] = get_args(By)

_ROUNDED: Final = Context(prec=12)


class Total(NamedTuple):
    """
    One row of a report. Tokens are those that endpoints reported.
    """

    key: str
    """Day, model asked, project, event, outcome or session; empty where there is none: no call, no project, no decision."""
    decisions: int
    """Stops; decisions about commands stand in the rows of `by outcome` alone."""
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
    blocks: int = 0
    """Stops that were held, by a verdict or for work that still ran."""
    wrong_blocks: int = 0
    """Of which a person says that there was nothing wrong with the reply."""
    cap_spent: int = 0
    """Stops that were let through unseen as their turn had been held as often as it may be."""

    @property
    def upheld_blocks(self) -> int:
        """
        Give the number of blocks that nobody called wrong.
        """
        return self.blocks - self.wrong_blocks

    @property
    def cost_per_block(self) -> Decimal | None:
        """
        Give what is known to be spent for each block, to twelve digits; None without blocks, or where no cost is known.
        """
        return self._cost_for_each(self.blocks)

    @property
    def cost_per_upheld_block(self) -> Decimal | None:
        """
        Give the same for each block that nobody called wrong.
        """
        return self._cost_for_each(self.upheld_blocks)

    @property
    def cache_hit_share(self) -> float | None:
        """
        Give the share of what models read that came from the cache; None where nothing was read.
        """
        read = Usage(*self[3:9]).prompt_tokens
        return self.cache_read_tokens / read if read else None

    @property
    def cap_spent_share(self) -> float | None:
        """
        Give the share of stops that ended because the cap was spent; None without stops.
        """
        return self.cap_spent / self.decisions if self.decisions else None

    def _cost_for_each(self, blocks: int) -> Decimal | None:
        return _ROUNDED.divide(self.cost_usd, blocks) if blocks and self.cost_usd is not None else None


class Report(NamedTuple):
    """
    The rows, and all of it in one row.

    A decision that asked two models stands in two rows of `by model`, and once in the total.
    """

    by: By
    rows: tuple[Total, ...]
    total: Total
    window: Window = ALL_TIME


class Spend(NamedTuple):
    """
    What one model cost in one day or hour.
    """

    bucket: str
    model: str
    cost_usd: Decimal | None
    unknown_costs: int
    calls: int


def report(
    store: Store | None,
    by: By,
    window: Window = ALL_TIME,
    filters: Filters = EVERYTHING,
    *,
    now: datetime,
    tell: Tell | None = None,
) -> Report:
    """
    Add up the ledger: days in order, everything else by cost, the dearest first. For `tell` see `read_days`.

    No store: nothing was recorded yet.
    """
    if by == "session":
        sessions = read_session_days(store, window, filters, now=now, tell=tell)
        lines = _merged(sessions, "session")
        return Report(by, _sorted(lines), _total("total", added(lines.values())), window)

    days = read_days(store, window, filters, now=now, tell=tell)
    return Report(by, rows_by(days, by), total_of(days), window)


def total_of(days: Sequence[Stretch]) -> Total:
    """
    Give all of some days in one row.
    """
    return _total("total", added(line for day in days for line in day.sums["total"].values()))


def rows_by(days: Sequence[Stretch], way: By) -> tuple[Total, ...]:
    """
    Give the rows of some days, in the order of a report; for sessions see `rows_by_session`.
    """
    if way == "session":
        raise ValueError("sessions are added up apart")
    if way != "day":
        return _sorted(_merged(days, way), counts_all=way == "outcome")
    rows: dict[str, list[Line]] = {}
    for day in days:
        rows.setdefault(day.key, []).extend(day.sums["total"].values())
    return tuple(_total(key, line) for key, lines in rows.items() if _says(line := added(lines)))


def rows_by_session(
    store: Store | None, window: Window = ALL_TIME, filters: Filters = EVERYTHING, *, now: datetime
) -> tuple[Total, ...]:
    """
    Give a row for each session, the dearest first.
    """
    return report(store, "session", window, filters, now=now).rows


def spend_over_time(days: Sequence[Stretch]) -> tuple[Spend, ...]:
    """
    Give what each model cost in each of some days or hours; no row where no call was made.
    """
    rows: dict[tuple[str, str], list[Line]] = {}
    for day in days:
        for model, line in sorted(day.sums["model"].items()):
            if line.calls:
                rows.setdefault((day.key, model), []).append(line)
    totals = ((key, _total("", added(lines))) for key, lines in rows.items())
    return tuple(Spend(*key, total.cost_usd, total.unknown_costs, total.calls) for key, total in totals)


def tokens_by_class(days: Sequence[Stretch]) -> Mapping[str, int]:
    """
    Give the tokens of each class; those of thinking are part of the output.
    """
    return Usage(*total_of(days)[3:9])._asdict()


def decisions_by_outcome(days: Sequence[Stretch]) -> Mapping[str, int]:
    """
    Give the number of decisions with each outcome, those about commands included, the most frequent first.
    """
    counts = {key: line.decisions for key, line in _merged(days, "outcome").items() if line.decisions}
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def report_json(report: Report) -> dict[str, object]:
    """
    Give a report as plain data: money as decimal strings, or null where it is unknown.
    """
    since, until, zone = report.window
    return {
        "by": report.by,
        "since": since and since.isoformat(),
        "until": until and until.isoformat(),
        "zone": zone_name(zone),
        "rows": _json_rows(report),
        "total": total_json(report.total),
    }


def report_csv(report: Report) -> str:
    """
    Give the rows of a report as CSV, with the names and values that they have in `report_json`; what is unknown is empty.
    """
    import csv
    from io import StringIO

    text = StringIO()
    lines = csv.DictWriter(text, (report.by, *total_json(report.total)), lineterminator="\n")
    lines.writeheader()
    lines.writerows(_json_rows(report))
    return text.getvalue()


def total_json(row: Total) -> dict[str, object]:
    """
    Give the figures of a row as plain data.
    """
    values: dict[str, object] = row._asdict()
    del values["key"]
    return {
        **values,
        "cost_usd": _money(row.cost_usd),
        "cost_per_block_usd": _money(row.cost_per_block),
        "cost_per_upheld_block_usd": _money(row.cost_per_upheld_block),
        "cache_hit_share": _share(row.cache_hit_share),
        "cap_spent_share": _share(row.cap_spent_share),
    }


def _merged(
    days: Sequence[Stretch], way: Literal["model", "project", "event", "outcome", "session"]
) -> dict[str, Line]:
    lines: dict[str, list[Line]] = {}
    for day in days:
        for key, line in day.sums[way].items():
            lines.setdefault(key, []).append(line)
    return {key: found[0] if len(found) == 1 else added(found) for key, found in lines.items()}


def _sorted(lines: Mapping[str, Line], *, counts_all: bool = False) -> tuple[Total, ...]:
    rows = (_total(key, line, counts_all=counts_all) for key, line in lines.items() if counts_all or _says(line))
    return tuple(sorted(rows, key=lambda row: (-(row.cost_usd or 0), row.key)))


def _says(line: Line) -> bool:
    return bool(line.stops or line.calls)


def _total(key: str, line: Line = NOTHING, *, counts_all: bool = False) -> Total:
    known = line.cost_usd if line.unknown_costs < line.calls or not line.calls else None
    decisions = line.decisions if counts_all else line.stops
    return Total(key, decisions, *line[:7], known, line.unknown_costs, line.blocks, line.wrong_blocks, line.cap_spent)


def _json_rows(report: Report) -> list[dict[str, object]]:
    return [{report.by: row.key, **total_json(row)} for row in report.rows]


def _money(amount: Decimal | None) -> str | None:
    return None if amount is None else plain(amount)


def _share(share: float | None) -> float | None:
    return None if share is None else round(share, 6)
