"""
What the lines of one stretch of time add up to, by all that a report may ask about: counted by the database, money added here, exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Context, Decimal, Inexact, localcontext
from typing import Any, Final, Literal, NamedTuple, cast

from .amounts import readable_cost
from .rows import MOST
from .store import Store
from .usage import Usage

EXACT: Final = Context(prec=100, traps=[Inexact])

BLOCKS: Final = ("block_verdict", "block_background")
CAP_SPENT: Final = "pass_cap_spent"
WRONG: Final = "none"
"""What a person says of a reply that was held, and in which there is no fault."""

Way = Literal["total", "model", "project", "event", "outcome", "session"]


class Line(NamedTuple):
    """
    What some calls took, and some decisions were.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cache_write_5m_tokens: int
    cache_write_1h_tokens: int
    cache_read_tokens: int
    cost_usd: Decimal
    """Of the calls whose cost is known."""
    unknown_costs: int
    decisions: int
    """All of them, also those about commands."""
    stops: int
    blocks: int
    wrong_blocks: int
    """Of which a person says that the reply has no fault."""
    cap_spent: int


NOTHING: Final = Line(0, 0, 0, 0, 0, 0, 0, Decimal(0), 0, 0, 0, 0, 0, 0)

Sums = Mapping[Way, Mapping[str, Line]]
"""Lines by what is asked about, then by its name; that of `total` is empty."""


class Filters(NamedTuple):
    """
    What a report is about. None: all; empty: those that have none.
    """

    project: str | None = None
    model: str | None = None
    event: str | None = None

    def takes(self, project: str, model: str, event: str) -> bool:
        """
        Say whether it is about such lines.
        """
        pairs = zip(self, (project, model, event), strict=True)
        return all(wanted is None or wanted == found for wanted, found in pairs)


EVERYTHING: Final = Filters()


class Cube(NamedTuple):
    """
    What a stretch of time adds up to, told apart by everything at once, as JSON can hold it.
    """

    calls: Sequence[Sequence[Any]] = ()
    """Project, model, event, the decision's outcome, and the first nine of a `Line`; the cost is a text."""
    decisions: Sequence[Sequence[Any]] = ()
    """Project, nothing, event, outcome, how many, and how many of them are wrong; each decision once."""
    asked: Sequence[Sequence[Any]] = ()
    """The same with the model: each decision once for each model that was asked for it."""


def added(lines: Iterable[Line]) -> Line:
    """
    Add up lines.
    """
    columns = list(zip(*lines, strict=True))
    if not columns:
        return NOTHING
    with localcontext(EXACT):
        return Line(*map(sum, columns))  # pyright: ignore[reportArgumentType]


def is_stop(outcome: str) -> bool:
    """
    Say whether a decision was about the end of a turn, and not about a command.
    """
    return not outcome.startswith("jobs_")


def read_cube(store: Store, starts_at: str, ends_at: str | None) -> Cube:
    """
    Add up the lines from one time, as it is stored, to another; `ends_at` is left out, and None has no end.

    A count that is damaged counts as nothing, as one that never arrived; a cost that cannot be read is unknown.
    """
    values = _values(starts_at, ends_at)
    keys = "calls.project, calls.model, calls.event, COALESCE(decisions.outcome, '')"
    calls = store.rows(_CALLS.format(keys=keys, when=_when("calls", ends_at)), values)
    asked = store.rows(_ASKED.format(when=_when("decisions", ends_at)), values)
    decisions = store.rows(_DECISIONS.format(keys=_DECIDED, when=_when("decisions", ends_at)), values)
    return Cube(
        [[*map(_text, row[:4]), *_took(row[4:])] for row in calls],
        [[_text(row[0]), "", _text(row[1]), _text(row[2]), *row[3:]] for row in decisions],
        [[*map(_text, row[:4]), *row[4:]] for row in asked],
    )


def folded(cube: Cube, filters: Filters = EVERYTHING) -> Sums:
    """
    Give the lines of a cube by each of the ways.
    """
    if filters != EVERYTHING:
        calls, asked = (
            [row for row in part if filters.takes(row[0], row[1], row[2])] for part in (cube.calls, cube.asked)
        )
        of_all = filters._replace(model=None)
        decisions = [row for row in cube.decisions if of_all.takes(row[0], "", row[2])]
        cube = Cube(calls, decisions if filters.model is None else asked, asked)
    took = [_call_line(row[4:]) for row in cube.calls]
    decided = [decision_line(row[3], row[4], row[5]) for row in cube.decisions]
    places: Mapping[Way, int | None] = {"total": None, "project": 0, "event": 2, "outcome": 3}
    sums: dict[Way, Mapping[str, Line]] = {
        way: _by(place, cube.calls, took, cube.decisions, decided) for way, place in places.items()
    }
    by_model = [decision_line(row[3], row[4], row[5]) for row in cube.asked]
    return {**sums, "model": _by(1, cube.calls, took, cube.asked, by_model)}


def read_sessions(store: Store, starts_at: str, ends_at: str | None, filters: Filters = EVERYTHING) -> Sums:
    """
    Add up the same lines by session.
    """
    values = _values(starts_at, ends_at)
    wanted = {name: value for name, value in filters._asdict().items() if value is not None}
    of_calls = "".join(f" AND calls.{name} = ?" for name in wanted)
    calls = store.rows(
        _CALLS.format(keys="calls.session_id", when=_when("calls", ends_at) + of_calls), (*values, *wanted.values())
    )
    model = wanted.pop("model", None)
    of_decisions = "".join(f" AND decisions.{name} = ?" for name in wanted)
    if model is not None:
        of_decisions += " AND EXISTS (SELECT 1 FROM calls WHERE decision_id = decisions.id AND model = ?)"
        wanted["model"] = model
    decisions = store.rows(
        _DECISIONS.format(
            keys="decisions.session_id, decisions.outcome", when=_when("decisions", ends_at) + of_decisions
        ),
        (*values, *wanted.values()),
    )
    lines: dict[str, list[Line]] = {}
    for session_id, *took in calls:
        lines.setdefault(_text(session_id), []).append(_call_line(_took(took)))
    for session_id, outcome, count, wrong in decisions:
        lines.setdefault(_text(session_id), []).append(decision_line(_text(outcome), count, wrong))
    return {"session": {session_id: added(found) for session_id, found in lines.items()}}


def decision_line(outcome: str, count: int, wrong: int = 0) -> Line:
    """
    Give the line of decisions with one outcome.
    """
    is_block = outcome in BLOCKS
    return NOTHING._replace(
        decisions=count,
        stops=count if is_stop(outcome) else 0,
        blocks=count if is_block else 0,
        wrong_blocks=wrong if is_block else 0,
        cap_spent=count if outcome == CAP_SPENT else 0,
    )


def _by(
    place: int | None,
    calls: Sequence[Sequence[Any]],
    took: Sequence[Line],
    decisions: Sequence[Sequence[Any]],
    decided: Sequence[Line],
) -> Mapping[str, Line]:
    lines: dict[str, list[Line]] = {}
    for rows, each in ((decisions, decided), (calls, took)):
        for row, line in zip(rows, each, strict=True):
            lines.setdefault("" if place is None else row[place], []).append(line)
    return {key: added(found) for key, found in lines.items()}


_SEPARATOR: Final = "|"
_AMOUNT: Final = r"[0-9]{1,12}(?:\.[0-9]{1,40})?"
_PLAIN: Final = re.compile(rf"{_AMOUNT}(?:\|{_AMOUNT})*")
"""Amounts that `readable_cost` would read."""
_TOKENS: Final = ", ".join(
    f"CAST(COALESCE(SUM(CASE WHEN calls.{name} BETWEEN 0 AND {MOST} AND CAST(calls.{name} AS BIGINT) = calls.{name}"
    f" THEN calls.{name} END), 0) AS BIGINT)"
    for name in Usage._fields
)
# The database adds up whole numbers only; the costs come one by one, as few texts. One that would count as two is left out, and so
# is what is no text at all, which SQLite sorts behind every text.
_COST: Final = (
    f"CASE WHEN calls.cost_usd < '\U0010ffff' AND calls.cost_usd NOT LIKE '%{_SEPARATOR}%' THEN calls.cost_usd END"
)
_CALLS: Final = (
    f"SELECT {{keys}}, group_concat({_COST}, '{_SEPARATOR}'), COUNT(*), {_TOKENS}"  # noqa: S608
    " FROM calls LEFT JOIN decisions ON decisions.id = calls.decision_id WHERE {when} GROUP BY {keys}"
)
_LABELS: Final = f"LEFT JOIN labels ON labels.decision_id = decisions.id AND labels.label = '{WRONG}'"
_DECIDED: Final = "decisions.project, decisions.event, decisions.outcome"
_DECISIONS: Final = (
    f"SELECT {{keys}}, COUNT(*), COUNT(labels.label) FROM decisions {_LABELS} WHERE {{when}} GROUP BY {{keys}}"  # noqa: S608
)
_ASKED: Final = (
    "SELECT project, model, event, outcome, COUNT(*), COUNT(label) FROM (SELECT DISTINCT decisions.number, decisions.project,"  # noqa: S608
    " COALESCE(calls.model, '') AS model, decisions.event, decisions.outcome, labels.label FROM decisions"
    f" LEFT JOIN calls ON calls.decision_id = decisions.id {_LABELS}"
    " WHERE {when}) AS asked GROUP BY project, model, event, outcome"
)


def _when(table: str, ends_at: str | None) -> str:
    return f"{table}.at >= ?" + ("" if ends_at is None else f" AND {table}.at < ?")


def _values(starts_at: str, ends_at: str | None) -> tuple[str, ...]:
    return (starts_at,) if ends_at is None else (starts_at, ends_at)


def _took(row: Sequence[Any]) -> list[Any]:
    """
    The calls, their tokens, what they cost as a text, and how many have no known cost.
    """
    costs, calls, *tokens = row
    texts: list[str] = costs.split(_SEPARATOR) if costs else []
    # Each by itself is five times as slow, and nearly always all of them are plain.
    if texts and _PLAIN.fullmatch(costs):
        known = list(map(Decimal, texts))
    else:
        known = [cost for text in texts if (cost := readable_cost(text)) is not None]
    with localcontext(EXACT):
        usd = sum(known, Decimal(0))
    return [calls, *tokens, f"{usd:f}", calls - len(known)]


def _call_line(values: Sequence[Any]) -> Line:
    return Line(*unpacked_line([*values, 0, 0, 0, 0, 0]))


def packed_line(line: Line) -> list[Any]:
    """
    Give a line as JSON can hold it.
    """
    values = cast("list[Any]", list(line))
    values[7] = f"{line.cost_usd:f}"
    return values


def unpacked_line(values: list[Any]) -> Line:
    """
    Read back what `packed_line` gave.
    """
    values[7] = Decimal(values[7])
    return Line(*values)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
