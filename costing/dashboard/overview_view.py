"""
The overview: tiles, plots with their figures as tables, and the judge's health, made of sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from ..amounts import plain
from ..latencies import Latency
from ..outcomes import COMMAND_PASSED
from ..report import Total
from ..screen import money, one_line
from .figures import TONES, Figure, lines, ranked_bars, stacked_bars
from .outcome_words import tone, words
from .rows import folder_of
from .sums import MOST, Sums

MOST_BARS: Final = 12
NOT_THERE: Final = "\N{EN DASH}"
TOKEN_CLASSES: Final[Mapping[str, str]] = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_write_5m_tokens": "cache write, 5 min",
    "cache_write_1h_tokens": "cache write, 1 h",
    "cache_read_tokens": "cache read",
}
"""Thinking is part of the output, and stands in the table alone."""


class Budget(NamedTuple):
    """
    What was spent of the UTC day's budget, as the gate counts it.
    """

    spent_usd: Decimal | None = None
    """None where the ledger does not tell."""
    unknown: int = 0
    """Calls of unknown cost."""
    usd_per_day: Decimal | None = None
    """None: no budget is set."""


class Tile(NamedTuple):
    """
    One figure.
    """

    name: str
    value: str
    more: str = ""
    warns: bool = False
    share: float | None = None
    """Drawn as a bar, where there is one."""


class Table(NamedTuple):
    """
    The figures of a plot, exactly.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Chart(NamedTuple):
    """
    A plot in its place; `nothing` stands there where there is nothing to draw.
    """

    name: str
    title: str
    more: str
    table: Table
    nothing: str
    is_broad: bool = False


def tiles(sums: Sums, budget: Budget) -> list[Tile]:
    """
    Give the figures of the window that answer most questions.
    """
    total, latency = sums.total, sums.latency
    unknown = _unknown(total.unknown_costs)
    return [
        Tile("spent", money(total.cost_usd), unknown or f"{total.calls:,} calls to the judge", bool(unknown)),
        _budget(budget),
        Tile("stops", f"{total.decisions:,}", f"{total.blocks:,} held"),
        Tile("cost per held stop", money(total.cost_per_block) if total.blocks else NOT_THERE, _upheld(total)),
        Tile(
            "ended as the cap was spent",
            _share(total.cap_spent_share),
            f"{total.cap_spent:,} of {total.decisions:,} stops",
        ),
        Tile("read from the cache", _share(total.cache_hit_share), "of the tokens sent"),
        Tile("the judge took", _ms(latency.p50_ms), _slow(latency)),
    ]


def _budget(budget: Budget) -> Tile:
    unknown, spent, limit = _unknown(budget.unknown), budget.spent_usd, budget.usd_per_day
    if limit is None or spent is None:
        said = unknown or ("" if spent is None else "no budget is set (budget.usd_per_day)")
        return Tile("today (UTC)", money(spent), said, bool(unknown))
    share = float(spent / limit) if limit else 1.0
    more = f"{share:.0%} of ${limit:f} a day" + (f", {unknown}" if unknown else "")
    return Tile("budget used today (UTC)", money(spent), more, share >= 0.8 or bool(unknown), min(share, 1.0))


def charts(sums: Sums) -> list[Chart]:
    """
    Give the places of the plots, with their tables.
    """
    piece, spent_none = sums.piece, "No call in this window has a known cost."
    return [
        Chart("spend", "Spend by model", f"per {piece}", _spend_table(sums), spent_none, is_broad=True),
        Chart(
            "tokens", "Tokens by class", f"per {piece}", _tokens_table(sums), "No call in this window told its tokens."
        ),
        Chart(
            "outcomes",
            "Decisions by outcome",
            _passed_commands(sums),
            _outcomes_table(sums),
            "No decision in this window.",
        ),
        Chart(
            "latency",
            "Latency of the judge",
            _latency_days(sums),
            _latency_table(sums),
            "No call in this window was timed.",
        ),
        Chart(
            "per-block", "Cost per held stop", f"per {piece}", _block_table(sums), "No stop was held in this window."
        ),
        Chart(
            "cap",
            "Stops that ended as the cap was spent",
            f"share per {piece}",
            _cap_table(sums),
            "No stop in this window.",
        ),
        Chart("projects", "Spend by project", "", _projects_table(sums), spent_none),
    ]


def plots(sums: Sums, usd_per_day: Decimal | None = None) -> dict[str, Figure | None]:
    """
    Give the plots by the names of their charts.
    """
    places = [slot.name for slot in sums.slots]
    limit = float(usd_per_day) if usd_per_day is not None and sums.piece == "day" else None
    return {
        "spend": stacked_bars(places, _spend_by_model(sums), prefix="$", limit=limit),
        "tokens": stacked_bars(places, _tokens_by_class(sums)),
        "outcomes": _outcomes(sums),
        "latency": _latency(sums),
        "per-block": lines(
            places,
            {
                "each held": [_float(slot.total.cost_per_block) for slot in sums.slots],
                "each not marked wrong": [_float(slot.total.cost_per_upheld_block) for slot in sums.slots],
            },
            prefix="$",
        ),
        "cap": lines(places, {"cap spent": [slot.total.cap_spent_share for slot in sums.slots]}, share=True),
        "projects": _projects(sums),
    }


def _spend_by_model(sums: Sums) -> dict[str, list[float | None]]:
    models = dict.fromkeys(model for slot in sums.slots for model in slot.usd_by_model)
    return {
        model or "(no model)": [_float(slot.usd_by_model.get(model)) for slot in sums.slots] for model in sorted(models)
    }


def _tokens_by_class(sums: Sums) -> dict[str, list[float | None]]:
    series = {title: [float(getattr(slot.total, name)) for slot in sums.slots] for name, title in TOKEN_CLASSES.items()}
    return {title: list(values) for title, values in series.items() if any(values)}


def _latency_days(sums: Sums) -> str:
    return "per day" if len(sums.latencies) < MOST["day"] else f"per day, the latest {MOST['day']}"


def _latency(sums: Sums) -> Figure | None:
    series = {
        "half took less": [p50 / 1000 for _, p50, _ in sums.latencies],
        "95 % took less": [p95 / 1000 for _, _, p95 in sums.latencies],
    }
    return lines([day for day, _, _ in sums.latencies], series, suffix=" s")


def _outcomes(sums: Sums) -> Figure | None:
    # So many that nothing else would be seen beside them.
    ranked = [one for one in _ranked_outcomes(sums) if one[0] != COMMAND_PASSED][:MOST_BARS]
    colours = [TONES[tone(outcome)] for outcome, _ in ranked]
    full = [f"{outcome} ({words(outcome)})" for outcome, _ in ranked]
    return ranked_bars([outcome for outcome, _ in ranked], [count for _, count in ranked], colours=colours, full=full)


def _projects(sums: Sums) -> Figure | None:
    known = [(row.key, row.cost_usd) for row in sums.by_project if row.cost_usd][:MOST_BARS]
    names = [one_line(folder_of(project)) or "(no project)" for project, _ in known]
    full = [one_line(project) or "(no project)" for project, _ in known]
    return ranked_bars(names, [float(cost) for _, cost in known], prefix="$", full=full)


def _spend_table(sums: Sums) -> Table:
    models = [(one_line(row.key) or "(no model)", *_spend_cells(row)) for row in sums.by_model if row.calls]
    slots = [(slot.name, *_spend_cells(slot.total)) for slot in sums.slots if slot.total.calls]
    names = ("model, then " + sums.piece, "calls", "US dollars", "of unknown cost")
    return Table(names, (("total", *_spend_cells(sums.total)), *models, *slots))


def _spend_cells(total: Total) -> tuple[str, str, str]:
    return f"{total.calls:,}", exact(total.cost_usd), f"{total.unknown_costs:,}"


def _tokens_table(sums: Sums) -> Table:
    counted = {**TOKEN_CLASSES, "thinking_tokens": "thinking (part of the output)"}
    rows = tuple((title, f"{getattr(sums.total, name):,}") for name, title in counted.items())
    return Table(("class", "tokens"), rows)


def _passed_commands(sums: Sums) -> str:
    passed = sums.outcomes.get(COMMAND_PASSED, 0)
    return f"and {passed:,} command{'' if passed == 1 else 's'} let through" if passed else ""


def _outcomes_table(sums: Sums) -> Table:
    rows = tuple((f"{one_line(outcome)}: {words(outcome)}", f"{count:,}") for outcome, count in _ranked_outcomes(sums))
    return Table(("outcome", "decisions"), rows)


def _latency_table(sums: Sums) -> Table:
    whole = sums.latency
    rows = [(day, _ms(p50), _ms(p95)) for day, p50, p95 in sums.latencies]
    return Table(("day", "p50", "p95"), ((f"all ({whole.of:,} calls)", _ms(whole.p50_ms), _ms(whole.p95_ms)), *rows))


def _block_table(sums: Sums) -> Table:
    rows = [(slot.name, *_block_cells(slot.total)) for slot in sums.slots if slot.total.blocks]
    names = (sums.piece, "held", "not marked wrong", "cost per held", "cost per other")
    return Table(names, (("all", *_block_cells(sums.total)), *rows))


def _block_cells(total: Total) -> tuple[str, ...]:
    per_upheld = money(total.cost_per_upheld_block) if total.upheld_blocks else NOT_THERE
    return (
        f"{total.blocks:,}",
        f"{total.upheld_blocks:,}",
        money(total.cost_per_block) if total.blocks else NOT_THERE,
        per_upheld,
    )


def _cap_table(sums: Sums) -> Table:
    rows = [(slot.name, *_cap_cells(slot.total)) for slot in sums.slots if slot.total.decisions]
    return Table((sums.piece, "cap spent", "stops", "share"), (("all", *_cap_cells(sums.total)), *rows))


def _cap_cells(total: Total) -> tuple[str, str, str]:
    return f"{total.cap_spent:,}", f"{total.decisions:,}", _share(total.cap_spent_share)


def _projects_table(sums: Sums) -> Table:
    rows = tuple(
        (
            one_line(row.key) or "(no project)",
            f"{row.decisions:,}",
            f"{row.blocks:,}",
            exact(row.cost_usd),
            f"{row.unknown_costs:,}",
        )
        for row in sums.by_project
    )
    return Table(("project", "stops", "held", "US dollars", "of unknown cost"), rows)


def _ranked_outcomes(sums: Sums) -> list[tuple[str, int]]:
    return sorted(sums.outcomes.items(), key=lambda one: (-one[1], one[0]))


class HealthLine(NamedTuple):
    """
    One line of the judge's health.
    """

    name: str
    value: str
    warns: bool = False


def health_lines(found: Mapping[str, Any]) -> list[HealthLine]:
    """
    Say how the judge and the service stand, from what `GET /healthz` says.
    """
    error, judge = found.get("last_error"), found.get("last_judge")
    asked = "{model} ({backend}) at {endpoint}".format(**judge) if judge else "none was asked since the service started"
    went_wrong = "{at} {what}: {detail}".format(**error) if error else "none"
    ledger = found.get("ledger")
    lines = [
        HealthLine("judge", one_line(asked)),
        HealthLine("breaker", *_breaker(found.get("breaker_open"))),
        HealthLine("calls in flight", f"{found.get('calls_in_flight', 0)}"),
        HealthLine("last error", one_line(went_wrong), bool(error)),
        HealthLine("ledger", one_line(str(ledger or found.get("ledger_error"))), not ledger),
        HealthLine("service", f"turngate {found.get('version')}, alive since {found.get('alive_since')}"),
    ]
    if found.get("ledger") and found.get("ledger_error"):
        lines.append(HealthLine("ledger error", one_line(str(found["ledger_error"])), warns=True))
    return lines


def _breaker(breaker: Sequence[str] | None) -> tuple[str, bool]:
    if breaker is None:
        return "not known", True
    return (f"open for {one_line(', '.join(breaker))}", True) if breaker else ("closed: the judge is asked", False)


def exact(amount: Decimal | None) -> str:
    """
    Write an amount with all its digits.
    """
    return "unknown" if amount is None else plain(amount)


def _upheld(total: Total) -> str:
    if not total.blocks:
        return "none was held"
    if not total.wrong_blocks:
        return f"{total.blocks:,} held, none marked wrong"
    per_other = money(total.cost_per_upheld_block) if total.upheld_blocks else NOT_THERE
    return f"{total.wrong_blocks:,} marked wrong; {per_other} per other"


def _unknown(count: int) -> str:
    return f"and {count:,} call{'' if count == 1 else 's'} of unknown cost" if count else ""


def _share(share: float | None) -> str:
    return NOT_THERE if share is None else f"{share:.1%}"


def _ms(milliseconds: int | None) -> str:
    return NOT_THERE if milliseconds is None else f"{milliseconds / 1000:.2f} s"


def _slow(latency: Latency) -> str:
    if latency.p95_ms is None:
        return "none was timed"
    return f"95 % took less than {_ms(latency.p95_ms)}" + ("" if latency.is_all else f" (latest {latency.of:,})")


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
