"""
How often a human turn was held, shared by all processes, and the one transaction that spends a continuation.

The unit is the human turn, not `prompt_id`: a task notification starts a new `prompt_id` without any human. A stop belongs to a
known turn when either the human prompt's id or one of the `prompt_id`s seen under it matches, so that one failed read of
the transcript does not start the count anew. Where the human prompt is not known and no id matches, the session's latest turn
counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from ..costing.stamps import stamp
from ..costing.store import Store, Transaction

HoldKind = Literal["background", "verdict", "shadow_background", "shadow_verdict"]

_IDS_LIMIT: Final = 500
"""Prompt ids of one turn that are looked up; older SQLite takes 999 values a statement."""

_IDS_AT_ONCE: Final = 200
"""Ids written by one statement, for the same reason."""


class TurnKey(NamedTuple):
    """
    What is known about the turn that a stop belongs to.
    """

    session_id: str
    agent_id: str = ""
    human_id: str = ""
    """The id of the last human prompt's transcript entry; empty where it is not known."""
    prompt_ids: frozenset[str] = frozenset()

    @property
    def ids(self) -> list[str]:
        """
        All ids that the turn is known by, as the store keeps them.
        """
        human = [f"human:{self.human_id}"] if self.human_id else []
        return human + [f"prompt:{prompt}" for prompt in sorted(self.prompt_ids)[:_IDS_LIMIT]]


class Hold(NamedTuple):
    """
    One hold of a turn: why, and which task ids (background) or faults (verdict) it named.
    """

    kind: HoldKind
    reason: str
    named: tuple[str, ...]


class TurnCount(NamedTuple):
    """
    How many continuations the turn has spent, and the holds that spent them, oldest first.
    """

    spent: int = 0
    holds: tuple[Hold, ...] = ()
    held_at: str = ""
    """When the last of them was reserved, as the store keeps times; empty where there is none."""

    def is_held_since(self, started_at: datetime) -> bool:
        """
        Whether another hook has held the stop that this process, started then, was asked about.
        """
        return self.held_at > stamp(started_at)


class TurnCounts:
    """
    The counts of all turns. Every method may raise `StoreError`.
    """

    def __init__(self, database: Store) -> None:
        self._database: Final = database

    def find(self, key: TurnKey) -> TurnCount:
        """
        Give the turn's count; one that was never held has spent nothing.
        """
        turns = _matching(self._database.rows, key)
        holds = self._database.rows(
            f"SELECT kind, reason, named, at FROM holds WHERE turn_id IN ({_marks(turns)}) AND kind IN ('background', 'verdict')"
            " ORDER BY id",
            [turn.id for turn in turns],
        )
        return TurnCount(
            sum(turn.spent for turn in turns) if turns else _unsure(self._database.rows, key),
            tuple(Hold(kind, reason, _names(named)) for kind, reason, named, _ in holds),
            max((at for *_, at in holds), default=""),
        )

    def reserve(self, key: TurnKey, hold: Hold, *, seen: int, most: int, started_at: datetime, now: datetime) -> bool:
        """
        Spend one continuation, durably, if nobody has spent one since `seen` was read. False means: do not hold.

        A hold that was reserved after `started_at`, the start of this hook's process, belongs to the same stop: a later stop's
        process starts only after the earlier one was answered. So two installs of the gate never spend both at one stop.
        """
        with self._database.write(durable=True, alone=_of(key)) as transaction:
            turn_id = _one_turn(transaction, key, now)
            held_at = transaction.execute(
                "SELECT max(at) FROM holds WHERE turn_id = ? AND kind IN ('background', 'verdict')", (turn_id,)
            ).fetchone()[0]
            if held_at is not None and held_at > stamp(started_at):
                return False
            spent = transaction.execute(
                "UPDATE turns SET spent = spent + 1, updated_at = ?, unsure = unsure +"
                " CASE WHEN ? = 1 AND EXISTS (SELECT 1 FROM turn_ids WHERE turn_id = turns.id) THEN 1 ELSE 0 END"
                " WHERE id = ? AND spent = ? AND spent < ?",
                (stamp(now), int(not key.ids), turn_id, seen, most),
            ).rowcount
            if spent:
                _add_hold(transaction, turn_id, key, hold, now)
            return spent == 1

    def note(self, key: TurnKey, hold: Hold, now: datetime) -> None:
        """
        Remember a hold that was only played through, in shadow mode; it spends nothing.
        """
        with self._database.write(alone=_of(key)) as transaction:
            _add_hold(transaction, _one_turn(transaction, key, now), key, hold, now)

    def times_named(self, session_id: str, kinds: Collection[HoldKind]) -> dict[str, int]:
        """
        Count how often each task or fault was named by holds of these kinds in the session.
        """
        counts: dict[str, int] = {}
        for (named,) in self._database.rows(
            f"SELECT named FROM holds WHERE session_id = ? AND kind IN ({_marks(kinds)})", (session_id, *kinds)
        ):
            for name in _names(named):
                counts[name] = counts.get(name, 0) + 1
        return counts

    def first_cap_told(self, key: TurnKey, now: datetime) -> bool:
        """
        Say whether this is the first stop of the turn that finds the cap spent, and remember it.
        """
        with self._database.write(alone=_of(key)) as transaction:
            turn_id = _one_turn(transaction, key, now)
            told = transaction.execute("UPDATE turns SET cap_told = 1 WHERE id = ? AND cap_told = 0", (turn_id,))
            return told.rowcount == 1

    def first_notice(self, session_id: str, kind: str, now: datetime) -> bool:
        """
        Say whether the session was not told this before, and remember it.
        """
        with self._database.write() as transaction:
            told = transaction.execute(
                "INSERT INTO notices (session_id, kind, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (session_id, kind, stamp(now)),
            )
            return told.rowcount == 1


class _Row(NamedTuple):
    id: int
    spent: int


_Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]


def _matching(rows: _Rows, key: TurnKey) -> list[_Row]:
    """
    Give the turns in the store that are this one, oldest first; more than one where different ids led to it so far.
    """
    agent = (key.session_id, key.agent_id)
    mine = "SELECT id, spent FROM turns WHERE session_id = ? AND agent_id = ?"
    known = f"SELECT turn_id FROM turn_ids WHERE session_id = ? AND agent_id = ? AND known_id IN ({_marks(key.ids)})"
    found = rows(f"{mine} AND id IN ({known}) ORDER BY id", (*agent, *agent, *key.ids)) if key.ids else []
    if not found and not key.human_id:
        # The transcript was not read. Whether a human spoke since cannot be known, so it is the latest turn; but where no
        # transcript of the session was ever read, a new prompt id is all that tells one turn from the next.
        latest = rows(f"{mine} ORDER BY updated_at DESC, id DESC LIMIT 1", agent)
        humans = "SELECT 1 FROM turn_ids WHERE session_id = ? AND agent_id = ? AND known_id LIKE 'human:%' LIMIT 1"
        found = latest if not key.ids or rows(humans, agent) else []
    # A turn that was first met when nothing was known about it is taken for this one.
    found = found or rows(
        f"{mine} AND NOT EXISTS (SELECT 1 FROM turn_ids WHERE turn_id = turns.id) ORDER BY id DESC LIMIT 1", agent
    )
    return [_Row(*row) for row in found]


def _unsure(rows: _Rows, key: TurnKey) -> int:
    """
    Give the holds that were counted for the latest turn by stops without any id: they may be those of the turn after it.
    """
    found = rows(
        "SELECT unsure FROM turns WHERE session_id = ? AND agent_id = ? ORDER BY updated_at DESC, id DESC LIMIT 1",
        (key.session_id, key.agent_id),
    )
    return found[0][0] if found else 0


def _of(key: TurnKey) -> str:
    """
    Name whose turns a transaction reads and changes.
    """
    return f"turns {key.session_id} {key.agent_id}"


def _one_turn(transaction: Transaction, key: TurnKey, now: datetime) -> int:
    """
    Give the id of the turn's row: found, made, or made one out of several, so that their counts add up.
    """

    def rows(sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return transaction.execute(sql, tuple(values)).fetchall()

    turns = _matching(rows, key) or [_added_turn(transaction, rows, key, now)]
    first, *others = turns
    for other in others:
        transaction.execute("UPDATE turns SET spent = spent + ? WHERE id = ?", (other.spent, first.id))
        transaction.execute("UPDATE turn_ids SET turn_id = ? WHERE turn_id = ?", (first.id, other.id))
        transaction.execute("UPDATE holds SET turn_id = ? WHERE turn_id = ?", (first.id, other.id))
        transaction.execute("DELETE FROM turns WHERE id = ?", (other.id,))
    _remember_ids(transaction, first.id, key)
    return first.id


def _added_turn(transaction: Transaction, rows: _Rows, key: TurnKey, now: datetime) -> _Row:
    mine = (key.session_id, key.agent_id)
    transaction.execute(
        "INSERT INTO turns (session_id, agent_id, spent, updated_at) VALUES (?, ?, ?, ?)",
        (*mine, _unsure(rows, key), stamp(now)),
    )
    # The newest of ours is the one just added: nobody else adds any meanwhile. RETURNING takes SQLite 3.35.
    return _Row(rows("SELECT max(id) FROM turns WHERE session_id = ? AND agent_id = ?", mine)[0][0], 0)


def _remember_ids(transaction: Transaction, turn_id: int, key: TurnKey) -> None:
    for start in range(0, len(key.ids), _IDS_AT_ONCE):
        ids = key.ids[start : start + _IDS_AT_ONCE]
        lines = ", ".join(["(?, ?, ?, ?)"] * len(ids))
        values = [value for known_id in ids for value in (key.session_id, key.agent_id, known_id, turn_id)]
        transaction.execute(
            f"INSERT INTO turn_ids (session_id, agent_id, known_id, turn_id) VALUES {lines} ON CONFLICT DO NOTHING",
            values,
        )


def _marks(values: Collection[object]) -> str:
    return ",".join("?" * len(values)) or "NULL"  # which nothing is equal to


def _add_hold(transaction: Transaction, turn_id: int, key: TurnKey, hold: Hold, now: datetime) -> None:
    transaction.execute(
        "INSERT INTO holds (turn_id, session_id, kind, reason, named, at) VALUES (?, ?, ?, ?, ?, ?)",
        (turn_id, key.session_id, hold.kind, hold.reason, json.dumps(hold.named), stamp(now)),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
