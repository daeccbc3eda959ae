"""
What is stored, taken out again: all that is older than some day, of one session, or of one project.

A count of continuations that a running turn needs stays, without its texts: else the turn could be held more often than it may.
Lines go in portions, so that no stop waits for all of them. At the end the files are cleared of what was deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from .day_sums import forget_sums
from .forgotten_cases import CaseOrigin, count_cases, forget_cases
from .pages import SIZE, pages
from .stamps import ID_TIME, new_id, stamp, storable
from .store import Store, Transaction

LIVE: Final = timedelta(hours=1)
"""A turn whose session was heard of within this time may still be running."""

FORGOTTEN: Final = "(forgotten)"
"""Stands for the text of a hold whose turn may still be running."""

_READ_WITHIN_S: Final = 0.2
"""Whoever waits for a shared judgement looks for it every 30 ms."""


_LONGEST_PAUSE_S: Final = 0.1

_LOST: Final = "decision_id < ? AND NOT EXISTS (SELECT 1 FROM decisions WHERE id = decision_id)"
"""Left behind by a decision that could never be written."""


class Removed(NamedTuple):
    """
    How much was taken out, or would be; `live_turns` are those whose count stays.
    """

    decisions: int = 0
    calls: int = 0
    recorded_turns: int = 0
    labels: int = 0
    turn_counts: int = 0
    holds: int = 0
    notices: int = 0
    shared_judgements: int = 0
    endpoint_refusals: int = 0
    cases: int = 0
    live_turns: int = 0


class Scope(NamedTuple):
    """
    What is to go: conditions on `decisions` and `calls`, and on what a session's turns have left; each has one value.
    """

    condition: str
    value: str
    turns: str
    """Empty: none but those of `sessions`."""
    holds: str
    notices: str
    refusals: str = ""
    sessions: tuple[str, ...] = ()
    shared_sessions: tuple[str, ...] = ()
    """Sessions that worked for others too: their counts stay, without their texts."""
    keeps_cases: bool = False
    ids_before: str = ""
    """Ids begin with their time: what belongs to a decision that never came is known by its own."""


def older_than(before: datetime, *, keep_cases: bool = False) -> Scope:
    """
    Give the scope of all that was written before a time.
    """
    conditions = ("updated_at < ?", "at < ?", "at < ?", "at < ?")
    return Scope("at < ?", stamp(before), *conditions, keeps_cases=keep_cases, ids_before=new_id(before)[:ID_TIME])


def of_session(session_id: str) -> Scope:
    """
    Give the scope of a session.
    """
    return Scope("session_id = ?", storable(session_id), "", "", "", sessions=(storable(session_id),))


def of_project(store: Store, project: str) -> Scope:
    """
    Give the scope of the project in a folder, with the sessions that worked there.
    """
    project = storable(project)
    here = _sessions(store, "project = ?", project)
    shared = here & _sessions(store, "project <> ?", project)
    return Scope(
        "project = ?", project, "", "", "", sessions=tuple(sorted(here - shared)), shared_sessions=tuple(sorted(shared))
    )


def count(store: Store, scope: Scope, folder: str, *, now: datetime) -> Removed:
    """
    Say what `remove` would take out.
    """

    def of(table: str, condition: str, values: Sequence[str]) -> int:
        return store.rows(f"SELECT COUNT(*) FROM {table} WHERE {condition}", values)[0][0]  # noqa: S608

    decided = f"decision_id IN (SELECT id FROM decisions WHERE {scope.condition})"  # noqa: S608
    live = _live_turns(store, now)
    turns = [_turns(part, live, now) for part in _turn_parts(scope)]
    going = " OR ".join(f"turn_id IN (SELECT id FROM turns WHERE {condition})" for condition, _ in turns) or "1 = 0"  # noqa: S608
    holds = [(going, [value for _, values in turns for value in values])]
    holds += [(scope.holds, [scope.value])] if scope.holds else []
    values = (scope.value,)
    return Removed(
        decisions=of("decisions", scope.condition, values),
        calls=of("calls", f"{scope.condition} OR {decided}", values * 2),
        recorded_turns=of("recorded_turns", f"{decided} OR {_LOST}", (*values, scope.ids_before)),
        labels=of("labels", f"{decided} OR {_LOST}", (*values, scope.ids_before)),
        turn_counts=sum(of("turns", *part) for part in turns),
        holds=of("holds", " OR ".join(c for c, _ in holds), [v for _, found in holds for v in found]),
        notices=sum(of("notices", *part) for part in _notice_parts(scope)),
        shared_judgements=len(_answered(store)),
        endpoint_refusals=of("endpoint_refusals", scope.refusals, values) if scope.refusals else 0,
        cases=0 if scope.keeps_cases else count_cases(folder, _is_forgotten(store, scope)),
        live_turns=len(_of_scope(store, scope, live)),
    )


def remove(store: Store, scope: Scope, folder: str, *, now: datetime) -> Removed:
    """
    Take it out, and give how much it was; what was begun and not ended is ended by doing it again.

    `folder` is the state directory. A line that is written meanwhile may stay. The files are not cleared: see `Store.scrub`.
    """
    answered = _answered(store)
    answered_at = time.monotonic()
    live = _live_turns(store, now)
    kept = len(_of_scope(store, scope, live))
    # What finds out by the decisions what else belongs to them comes before they go.
    cases = 0 if scope.keeps_cases else forget_cases(store, folder, _is_forgotten(store, scope))
    with store.write() as transaction:
        removed = _remove_turns(transaction, scope, live, now)
    removed = _remove_lines(store, scope, removed._replace(cases=cases, live_turns=kept))
    if answered:
        time.sleep(max(0.0, answered_at + _READ_WITHIN_S - time.monotonic()))
    return removed._replace(shared_judgements=_remove_answers(store, answered))


def folders_below(store: Store, project: str) -> list[str]:
    """
    Give the projects in folders below this one: they are projects of their own.
    """
    start = storable(project.rstrip("/")) + "/"
    rows = store.rows(
        "SELECT DISTINCT project FROM decisions WHERE substr(project, 1, ?) = ? ORDER BY project", (len(start), start)
    )
    return [row[0] for row in rows]


def _sessions(store: Store, condition: str, project: str) -> set[str]:
    asked = " UNION ".join(
        f"SELECT session_id FROM {table} WHERE {condition} AND session_id <> ''"  # noqa: S608
        for table in ("decisions", "calls")
    )
    return {row[0] for row in store.rows(asked, (project, project))}


def _live_turns(store: Store, now: datetime) -> tuple[int, ...]:
    # The latest turn of an agent that was heard of shortly before, whenever it was last held.
    since = stamp(now - LIVE)
    rows = store.rows(
        "SELECT id FROM turns WHERE updated_at >= ? OR ("
        " EXISTS (SELECT 1 FROM decisions WHERE decisions.session_id = turns.session_id"
        "  AND decisions.agent_id = turns.agent_id AND decisions.at >= ?)"
        " AND NOT EXISTS (SELECT 1 FROM turns AS later WHERE later.session_id = turns.session_id"
        "  AND later.agent_id = turns.agent_id AND later.updated_at > turns.updated_at))",
        (since, since),
    )
    return tuple(row[0] for row in rows)


_Part = tuple[str, list[str]]
"""A condition and its values."""


def _turn_parts(scope: Scope) -> list[_Part]:
    own = [(scope.turns, [scope.value])] if scope.turns else []
    return own + [("session_id = ?", [session]) for session in scope.sessions]


def _notice_parts(scope: Scope) -> list[_Part]:
    own = [(scope.notices, [scope.value])] if scope.notices else []
    return own + [("session_id = ?", [session]) for session in scope.sessions]


def _turns(part: _Part, live: Iterable[int], now: datetime) -> _Part:
    condition, values = part
    numbers = ", ".join(map(str, (0, *live)))
    # Asked of the row itself too: a continuation may have been spent since the others were looked up.
    return f"({condition} AND updated_at < ? AND id NOT IN ({numbers}))", [*values, stamp(now - LIVE)]


def _of_scope(store: Store, scope: Scope, live: Sequence[int]) -> set[int]:
    if not live:
        return set()

    numbers = ", ".join(map(str, live))
    asked = f"SELECT id FROM turns WHERE id IN ({numbers}) AND "  # noqa: S608
    sessions = [("session_id = ?", [session]) for session in (*scope.sessions, *scope.shared_sessions)]
    own = [(scope.turns, [scope.value])] if scope.turns else []
    return {row[0] for condition, values in own + sessions for row in store.rows(asked + condition, values)}


def _remove_turns(transaction: Transaction, scope: Scope, live: Sequence[int], now: datetime) -> Removed:
    def gone(table: str, condition: str, values: Sequence[str]) -> int:
        return transaction.execute(f"DELETE FROM {table} WHERE {condition}", values).rowcount  # noqa: S608

    lost = "turn_id NOT IN (SELECT id FROM turns)"
    turns = sum(gone("turns", *_turns(part, live, now)) for part in _turn_parts(scope))
    holds = gone("holds", f"{scope.holds} OR {lost}", (scope.value,)) if scope.holds else 0
    if scope.turns:
        gone("turn_ids", lost, ())
    for session in scope.sessions:
        holds += gone("holds", f"session_id = ? AND {lost}", (session,))
        gone("turn_ids", f"session_id = ? AND {lost}", (session,))
    for session in (*scope.sessions, *scope.shared_sessions):
        transaction.execute("UPDATE holds SET reason = ? WHERE session_id = ?", (FORGOTTEN, session))
    notices = sum(gone("notices", *part) for part in _notice_parts(scope))
    refusals = gone("endpoint_refusals", scope.refusals, (scope.value,)) if scope.refusals else 0
    return Removed(turn_counts=turns, holds=holds, notices=notices, endpoint_refusals=refusals)


def _remove_lines(store: Store, scope: Scope, removed: Removed) -> Removed:
    decisions = calls = recorded = labels = 0
    for rows in pages(store, "decisions", ("id",), scope.condition, (scope.value,)):
        ids = [row[0] for row in rows]
        with _portion(store) as transaction:
            recorded += _gone(transaction, "recorded_turns", "decision_id", ids)
            labels += _gone(transaction, "labels", "decision_id", ids)
            calls += _gone(transaction, "calls", "decision_id", ids)
            decisions += _gone(transaction, "decisions", "id", ids)
    for rows in pages(store, "calls", ("id",), scope.condition, (scope.value,)):
        with _portion(store) as transaction:
            calls += _gone(transaction, "calls", "id", [row[0] for row in rows])
    with _portion(store) as transaction:
        recorded += transaction.execute(f"DELETE FROM recorded_turns WHERE {_LOST}", (scope.ids_before,)).rowcount  # noqa: S608
        labels += transaction.execute(f"DELETE FROM labels WHERE {_LOST}", (scope.ids_before,)).rowcount  # noqa: S608
    return removed._replace(decisions=decisions, calls=calls, recorded_turns=recorded, labels=labels)


@contextmanager
def _portion(store: Store) -> Generator[Transaction]:
    began_at = time.monotonic()
    with store.write() as transaction:
        forget_sums(transaction)
        yield transaction
    # Whoever waits to write looks now and then whether it may: half of the time it must be so.
    time.sleep(min(time.monotonic() - began_at, _LONGEST_PAUSE_S))


def _answered(store: Store) -> list[str]:
    # Their keys do not tell whose they are. Without an answer they hold no text, and somebody is asking.
    return [row[0] for row in store.rows("SELECT stop FROM shared_judgements WHERE answer IS NOT NULL")]


def _remove_answers(store: Store, stops: Sequence[str]) -> int:
    removed = 0
    for start in range(0, len(stops), SIZE):
        with store.write() as transaction:
            removed += _gone(transaction, "shared_judgements", "stop", stops[start : start + SIZE])
    return removed


def _gone(transaction: Transaction, table: str, key: str, ids: Sequence[str]) -> int:
    holes = ", ".join("?" * len(ids))
    return transaction.execute(f"DELETE FROM {table} WHERE {key} IN ({holes})", ids).rowcount  # noqa: S608


def _is_forgotten(store: Store, scope: Scope) -> Callable[[Sequence[CaseOrigin]], Sequence[bool]]:
    def asked(origins: Sequence[CaseOrigin]) -> list[bool]:
        ids = [origin.decision_id for origin in origins if origin.decision_id]
        found: set[str] = set()
        for start in range(0, len(ids), SIZE):
            portion = ids[start : start + SIZE]
            holes = ", ".join("?" * len(portion))
            rows = store.rows(
                f"SELECT id FROM decisions WHERE id IN ({holes}) AND {scope.condition}",  # noqa: S608
                (*map(storable, portion), scope.value),
            )
            found.update(row[0] for row in rows)
        return [bool(origin.decision_id in found or origin.session_id in scope.sessions) for origin in origins]

    return asked
