"""
The replay in figures: per project, day or outcome, as a person reads it and as plain data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, get_args

from ...costing.amounts import plain
from ...costing.screen import money, one_line
from ...costing.tables import table
from .bash_commands import BashCommand
from .jobs_report import jobs_json, jobs_text
from .replay import Plan, Replayed
from .replay_cost import Prices
from .short_names import short_names

By = Literal["project", "day", "outcome"]
WAYS: Final[tuple[By, ...]] = get_args(By)

FREE_HOLDS: Final = ("block_background", "shadow_background")

NOT_KNOWN: Final = (
    "what an agent would have done after a hold: the stop that is on record is counted next, held or not",
    "what a judge would have found: each call counts as clean. A turn that it holds stops again, at most twice, and is judged again",
    "tasks that the transcript does not show as running, wake-ups that are scheduled, budgets, pauses, and the settings of single projects",
)
"""What no replay can tell."""


class Spread(NamedTuple):
    """
    The middle and the upper end of some sizes, by the nearest rank: each is one that was measured.
    """

    median: int
    p95: int
    max: int


class Row(NamedTuple):
    """
    What the gate would have done with some stops.
    """

    key: str
    stops: int
    free_holds: int
    judge_calls: int
    spared: dict[str, int]
    """The stops without a model call by their outcome, free holds among them; the most frequent first."""
    tokens: Spread | None
    """Of one request, None where there is none."""
    characters: Spread | None
    bytes: Spread | None
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal | None
    """Of the calls whose cost is known; None where there are calls and no cost is known."""
    unknown_costs: int

    @property
    def spared_share(self) -> float | None:
        """
        The part of the stops that took no model call.
        """
        return (self.stops - self.judge_calls) / self.stops if self.stops else None


class Report(NamedTuple):
    """
    All that is told of a replay.
    """

    tables: dict[By, list[Row]]
    total: Row
    plan: Plan
    prices: Prices
    files: int
    read: int
    """Of the files."""
    unreadable: tuple[str, ...] = ()
    """One line for each file or folder that could not be read."""
    repeated: int = 0
    overlong: int = 0
    """Stops that were not played, since the reply's line is too long."""
    commands: tuple[BashCommand, ...] = ()


def rows(by: By, stops: Sequence[Replayed], costs: Sequence[Decimal | None], output_tokens: int) -> list[Row]:
    """
    Add up the stops: days in order, everything else by number, the most first.
    """
    groups: dict[str, list[tuple[Replayed, Decimal | None]]] = {}
    for stop, cost in zip(stops, costs, strict=True):
        groups.setdefault(_key(by, stop), []).append((stop, cost))
    found = [row(key, group, output_tokens) for key, group in groups.items()]
    return sorted(found, key=lambda one: (0 if by == "day" else -one.stops, one.key))


def row(key: str, group: Iterable[tuple[Replayed, Decimal | None]], output_tokens: int) -> Row:
    """
    Add up some stops, each with its cost.
    """
    pairs = list(group)
    requests = [(stop.request, cost) for stop, cost in pairs if stop.request]
    known = [cost for _, cost in requests if cost is not None]
    outcomes = Counter(stop.outcome for stop, _ in pairs if stop.request is None)
    return Row(
        key,
        stops=len(pairs),
        free_holds=sum(outcomes[outcome] for outcome in FREE_HOLDS),
        judge_calls=len(requests),
        spared=dict(outcomes.most_common()),
        tokens=spread(request.tokens for request, _ in requests),
        characters=spread(request.characters for request, _ in requests),
        bytes=spread(request.bytes for request, _ in requests),
        input_tokens=sum(request.tokens for request, _ in requests),
        output_tokens=output_tokens * len(requests),
        cost_usd=sum(known, Decimal(0)) if known or not requests else None,
        unknown_costs=len(requests) - len(known),
    )


def spread(sizes: Iterable[int]) -> Spread | None:
    """
    Give the spread of some sizes, None where there are none.
    """
    ordered = sorted(sizes)
    if not ordered:
        return None
    return Spread(_nearest_rank(ordered, 50), _nearest_rank(ordered, 95), ordered[-1])


def _nearest_rank(ordered: Sequence[int], percent: int) -> int:
    return ordered[-(-len(ordered) * percent // 100) - 1]


def _key(by: By, stop: Replayed) -> str:
    if by == "day":
        return f"{stop.at:%Y-%m-%d}" if stop.at else ""
    return stop.project if by == "project" else stop.outcome


def report_json(report: Report) -> dict[str, object]:
    """
    Give a report as plain data: money as decimal strings, or null where it is unknown.
    """
    prices = report.prices
    return {
        "by": {by: [{by: row.key, **_row_json(row)} for row in found] for by, found in report.tables.items()},
        "total": _row_json(report.total),
        "model": prices.model,
        "rubric": report.plan.rubric.label,
        "rubric_tokens": prices.rubric_tokens,
        "output_tokens_per_call": prices.output.tokens,
        "output_tokens_from": prices.output.source,
        "prices_of": f"{prices.at:%Y-%m-%d}",
        "since": report.plan.since and report.plan.since.isoformat(),
        "until": report.plan.until and report.plan.until.isoformat(),
        "transcripts": report.files,
        "repeated_stops": report.repeated,
        "overlong_stops": report.overlong,
        "unreadable": list(report.unreadable),
        "jobs": jobs_json(report.commands, report.plan.settings),
        "not_known": list(NOT_KNOWN),
    }


def _row_json(row: Row) -> dict[str, object]:
    values: dict[str, Any] = row._asdict()
    del values["key"]
    for name in ("tokens", "characters", "bytes"):
        found: Spread | None = values.pop(name)
        values[f"request_{name}"] = found and found._asdict()
    values["spared_share"] = row.spared_share
    values["estimated_input_tokens"] = values.pop("input_tokens")
    values["estimated_output_tokens"] = values.pop("output_tokens")
    del values["cost_usd"]
    return {**values, "estimated_cost_usd": None if row.cost_usd is None else plain(row.cost_usd)}


def report_text(report: Report, *, styled: bool = False) -> str:
    """
    Give a report as tables, and what must be known to read them.
    """
    jobs = jobs_text(report.commands, report.plan.settings, styled=styled)
    if not report.total.stops:
        return "\n".join([f"No stop in {_counted(report.files, 'transcript')}.", *_not_played(report), *jobs]) + "\n"

    lines: list[str] = []
    for by, found in report.tables.items():
        names = short_names(row.key for row in found) if by == "project" else {}
        cells = [_cells(row, names.get(row.key, row.key) or f"(no {by})") for row in found]
        head = f"{by} (UTC)" if by == "day" else by
        total = _cells(report.total, "total")
        lines += [*table([head, *_COLUMNS], cells, right=_COLUMNS, total=total, styled=styled), ""]
    return "\n".join([*lines, *_told(report), *jobs]) + "\n"


_COLUMNS: Final = (
    "stops",
    "free\nholds",
    "judge\ncalls",
    "spared",
    "tokens a call\nmedian",
    "\np95",
    "\nmax",
    "tokens\nin all",
    "cost",
    "unknown\ncosts",
)


def _cells(row: Row, key: str) -> list[str]:
    sizes = [f"{size:,}" for size in row.tokens] if row.tokens else ["", "", ""]
    return [
        key,
        f"{row.stops:,}",
        f"{row.free_holds:,}",
        f"{row.judge_calls:,}",
        f"{row.stops - row.judge_calls:,}",
        *sizes,
        f"{row.input_tokens + row.output_tokens:,}",
        money(row.cost_usd),
        f"{row.unknown_costs:,}",
    ]


def _told(report: Report) -> list[str]:
    total, prices = report.total, report.prices
    by_code = ", ".join(f"{code} {count:,}" for code, count in total.spared.items())
    spared = f"{total.stops - total.judge_calls:,}"
    share = f"{total.spared_share:.1%}" if total.spared_share is not None else ""
    lines = [
        f"{_counted(total.stops, 'stop')} in {_counted(report.files, 'transcript')}.",
        f"Without a model call: {spared} ({share}){': ' if by_code else ''}{by_code}.",
    ]
    if total.characters and total.bytes:
        sizes, most = total.characters, total.bytes.max
        lines.append(
            f"A request: {sizes.median:,} characters (median), {sizes.p95:,} (p95), {sizes.max:,} (max; at most {most:,} bytes)."
        )
    if report.repeated:
        lines.append(f"{_counted(report.repeated, 'stop')} more: a transcript repeats what another one tells.")
    lines += [
        *_not_played(report),
        f"Cost: {one_line(prices.model)} and rubric {report.plan.rubric.label}, at the prices of {prices.at:%Y-%m-%d}.",
        "- input by an upper estimate",
        f"- the rubric's {prices.rubric_tokens:,} tokens {_CACHED[prices.cache]} (judge.cache = {prices.cache})",
        f"- {prices.output.tokens} tokens a verdict, {one_line(prices.output.source)}",
        "Not known here:",
        *(f"- {line}" for line in NOT_KNOWN),
    ]
    return lines


_CACHED: Final = {
    "auto": "from the prompt cache where the call before was under five minutes old",
    "on": "written to the prompt cache or read from it at each call",
    "off": "never from the prompt cache",
}


def _not_played(report: Report) -> list[str]:
    lines: list[str] = []
    if report.overlong:
        lines.append(f"{_counted(report.overlong, 'stop')} not played: the line of the reply is too long to be read.")
    if report.unreadable:
        lines.append(f"Files and folders that could not be read: {len(report.unreadable):,}.")
    return lines


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
