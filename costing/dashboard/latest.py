"""
The latest decisions that fit the filters, read from the ledger in a bounded time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from ..ledger import IS_LISTED, Ledger
from ..records import Decision
from ..rows import DECISION_COLUMNS, read_decision
from ..stamps import stamp, storable
from ..store import Store
from .asked import Asked

MOST: Final = 25
LOOKED_AT: Final = 20_000
"""So many of the latest decisions are looked at for those of one project: one that was left long ago has few."""


LEFT_OUT: Final = (
    "Lines of the ledger whose time lies more than a day ahead, or cannot be read, are left out here;"
    " `turngate cost` counts them."
)


class Latest(NamedTuple):
    """
    Decisions, newest first, with what people said of them by id.
    """

    decisions: tuple[Decision, ...]
    labels: dict[str, str]
    looked_at_all: bool = True
    """False where a project may have older decisions that were not looked for."""


def latest(ledger: Ledger, asked: Asked, now: datetime) -> Latest:
    """
    Give the newest decisions in the window and of the project, but for commands that were let through. Raises StoreError.
    """
    rows = ledger.database.rows(*_query(asked, now))
    lines = [read_decision(row)[0] for row in rows]
    decisions = tuple(Decision(line, tuple(ledger.calls(decision_id=line.id))) for line in lines)
    is_bounded = asked.project is not None and len(lines) < MOST
    return Latest(
        decisions, _labels(ledger, [line.id for line in lines]), not is_bounded or _are_few(ledger, asked, now)
    )


def has_left_out(store: Store, asked: Asked, now: datetime) -> bool:
    """
    Say whether a time without an end has lines after the one where it ends all the same. Raises StoreError.
    """
    if asked.until is not None:
        return False
    at = stamp(asked.ends_at(now))
    return any(store.rows(f"SELECT 1 FROM {table} WHERE at >= ? LIMIT 1", (at,)) for table in ("decisions", "calls"))  # noqa: S608


def _query(asked: Asked, now: datetime) -> tuple[str, Sequence[object]]:
    where, values = _within(asked, now)
    names = ", ".join(DECISION_COLUMNS)
    newest = f"SELECT {names}, number FROM decisions{where} ORDER BY at DESC, number DESC"  # noqa: S608
    if asked.project is None:
        return f"SELECT {names} FROM ({newest} LIMIT {MOST}) AS newest ORDER BY at DESC, number DESC", values  # noqa: S608
    sql = (
        f"SELECT {names} FROM ({newest} LIMIT {LOOKED_AT}) AS newest WHERE project = ?"  # noqa: S608
        f" ORDER BY at DESC, number DESC LIMIT {MOST}"
    )
    return sql, (*values, storable(asked.project))


def _within(asked: Asked, now: datetime) -> tuple[str, list[object]]:
    ends = [("at >= ?", asked.since), ("at < ?", asked.ends_at(now))]
    known = [(condition, stamp(at)) for condition, at in ends if at is not None]
    where = " AND ".join((IS_LISTED, *(condition for condition, _ in known)))
    return f" WHERE {where}", [at for _, at in known]


def _are_few(ledger: Ledger, asked: Asked, now: datetime) -> bool:
    where, values = _within(asked, now)
    sql = f"SELECT 1 FROM decisions{where} ORDER BY at DESC LIMIT 1 OFFSET {LOOKED_AT}"  # noqa: S608
    return not ledger.database.rows(sql, values)


def _labels(ledger: Ledger, ids: Sequence[str]) -> dict[str, str]:
    if not ids:
        return {}
    holes = ", ".join("?" * len(ids))
    rows = ledger.database.rows(f"SELECT decision_id, label FROM labels WHERE decision_id IN ({holes})", ids)  # noqa: S608
    return {str(known): str(label) for known, label in rows}
