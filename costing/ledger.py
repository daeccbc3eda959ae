"""
The ledger: every decision of the gate and every call to a judge, kept and read back.

A call's line is written before the call is sent, so that one which never comes back is still counted. What was not
learnt stays None: an unknown price is never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, cast

from .amounts import plain, sum_costs
from .outcomes import CALL_OUTCOMES, COMMAND_PASSED, OUTCOMES, Outcome
from .owed import Owed
from .records import Call, CallEnd, CallStart, Decision, DecisionLine, FindingLine, LabelLine, RecentCall, Spent
from .rows import (
    CALL_COLUMNS,
    DECISION_COLUMNS,
    MOST,
    read_call,
    read_decision,
    readable_time,
)
from .stamps import new_id, stamp, storable
from .store import Store, Transaction
from .usage import Usage

REFUSAL_LASTS: Final = timedelta(days=7)

CLAIM_LASTS: Final = timedelta(seconds=60)
"""After this time a claim or answer for a stop counts no more: it is another stop, or its owner died."""

IS_LISTED: Final = f"outcome <> '{COMMAND_PASSED}'"
"""Condition on decisions; an index of its own is for it, so it stands in a statement as it is."""

_CLAIMS: Final = "claims"
"""What those who claim, publish and forget judgements are alone with: they delete each other's lines."""


class Ledger:
    """
    The ledger in a database, for all threads. Raises StoreError where the database fails, never for what a damaged row holds.

    `damaged` names the rows that could not be read whole, as `calls 1m8p...`; what of them is unknown stays so.
    """

    def __init__(self, database: Store) -> None:
        self.database: Final = database
        self.damaged: Final[dict[str, None]] = {}
        self._owed: Final = Owed(database)

    def open_call(self, start: CallStart, *, wait_s: float | None = None, call_id: str = "") -> str:
        """
        Write down that a try is about to be sent, and give its id (`call_id`, or a new one); `wait_s` shortens the wait for a lock.
        """
        call_id = call_id or new_id(start.at)
        with self.database.write(wait_s=wait_s) as transaction:
            _insert(transaction, "calls", {"id": call_id, **_start_columns(start)})
        return call_id

    def settle_call(self, call_id: str, start: CallStart, end: CallEnd, *, wait_s: float | None = None) -> str:
        """
        Write down what came of a try, and its opening where that is missing, and give its id (`call_id`, or a new one).

        What cannot be written now is owed, besides the StoreError: see `pay_owed`.
        """
        call_id = call_id or new_id(start.at)
        opening, ending = {"id": call_id, **_start_columns(start)}, _end_columns(end)
        self._owed.write_or_owe(lambda transaction: _upsert_call(transaction, opening, ending), wait_s)
        return call_id

    def record_decision(self, line: DecisionLine, *, wait_s: float | None = None) -> str:
        """
        Write down a decision, and give its id.

        What cannot be written now is owed, besides the StoreError: see `pay_owed`.
        """
        if line.outcome not in OUTCOMES:
            raise ValueError(f"unknown outcome {line.outcome!r}: expected one of {', '.join(OUTCOMES)}")

        decision_id = line.id or new_id(line.at)
        findings = json.dumps([_clean(finding)._asdict() for finding in line.findings])
        values = {**line._asdict(), "id": decision_id, "at": stamp(line.at), "findings": findings}
        self._owed.write_or_owe(lambda transaction: _add_decision(transaction, values), wait_s)
        return decision_id

    @property
    def owed(self) -> int:
        """
        Give the number of lines that could not be written yet.
        """
        return len(self._owed)

    def pay_owed(self, wait_s: float = 0.0) -> int:
        """
        Write what is owed, in the order in which it came, and give the number of lines; 0 while the store fails.

        The next call or decision that can be written pays too.
        """
        return self._owed.pay(wait_s)

    def record_turn(self, decision_id: str, turn: str) -> None:
        """
        Keep what was judged, as JSON without secrets, for the lab.
        """
        with self.database.write() as transaction:
            _insert(transaction, "recorded_turns", {"decision_id": decision_id, "turn": turn})

    def recorded_turn(self, decision_id: str) -> str | None:
        """
        Give what was judged, where it was recorded.
        """
        rows = self.database.rows("SELECT turn FROM recorded_turns WHERE decision_id = ?", (storable(decision_id),))
        return rows[0][0] if rows else None

    def label(self, decision_id: str, label: str, at: datetime, note: str = "") -> None:
        """
        Keep what a person says of a decision; what was said of it before is forgotten.
        """
        with self.database.write() as transaction:
            changed = " ON CONFLICT (decision_id) DO UPDATE SET label = excluded.label, at = excluded.at, note = excluded.note"
            _insert(
                transaction, "labels", {**LabelLine(decision_id, label, at, note)._asdict(), "at": stamp(at)}, changed
            )

    def unlabel(self, decision_id: str) -> None:
        """
        Forget what a person said of a decision.
        """
        with self.database.write() as transaction:
            transaction.execute("DELETE FROM labels WHERE decision_id = ?", (storable(decision_id),))

    def labels(self, decision_id: str | None = None) -> list[LabelLine]:
        """
        Give what people said of decisions, or of one, oldest first.
        """
        where, values = _where({"decision_id = ?": decision_id})
        rows = self.database.rows(
            f"SELECT decision_id, label, at, note FROM labels{where} ORDER BY at, decision_id",  # noqa: S608
            values,
        )
        return [LabelLine(known, label, time, note) for known, label, at, note in rows if (time := readable_time(at))]

    def decisions(
        self,
        limit: int | None = None,
        *,
        session_id: str | None = None,
        project: str | None = None,
        outcomes: Sequence[Outcome] = (),
        passed_commands: bool = True,
    ) -> list[Decision]:
        """
        Give the latest decisions with their calls, newest last; those of one time in the order of writing.

        Those of one session, of one project or with one of these `outcomes`, where they are named; `passed_commands`: also those about
        commands that were let through.
        """
        where, values = _where({"session_id = ?": session_id, "project = ?": project})
        if outcomes:
            where += f"{' AND' if where else ' WHERE'} outcome IN ({', '.join('?' * len(outcomes))})"
            values += outcomes
        if not passed_commands:
            where += f"{' AND' if where else ' WHERE'} {IS_LISTED}"
        rows = self.database.rows(
            f"SELECT {_DECISIONS} FROM decisions{where} ORDER BY at DESC, number DESC{_limit(limit)}",  # noqa: S608
            values,
        )
        return self._with_calls([self._decision_line(row) for row in reversed(rows)])

    def count_passed_commands(self, since: datetime | None = None) -> int:
        """
        Give the number of commands that were let through since a time.
        """
        where, values = _where({"at >= ?": None if since is None else stamp(since)})
        sql = f"SELECT COUNT(*) FROM (SELECT outcome FROM decisions{where}) AS latest WHERE NOT ({IS_LISTED})"  # noqa: S608
        return int(cast("int", self.database.rows(sql, values)[0][0]))

    def decision(self, decision_id: str) -> Decision | None:
        """
        Give one decision with its calls.
        """
        rows = self.database.rows(
            f"SELECT {_DECISIONS} FROM decisions WHERE id = ?",  # noqa: S608
            (storable(decision_id),),
        )
        return self._with_calls([self._decision_line(row) for row in rows])[0] if rows else None

    def ids_starting(self, prefix: str, limit: int = 10) -> list[str]:
        """
        Give the ids of decisions that begin so, oldest first.
        """
        prefix = storable(prefix)
        rows = self.database.rows(
            "SELECT CAST(id AS TEXT) FROM decisions WHERE substr(id, 1, ?) = ? ORDER BY at, number LIMIT ?",
            (len(prefix), prefix, limit),
        )
        return [row[0] for row in rows]

    def calls(
        self,
        *,
        call_id: str | None = None,
        decision_id: str | None = None,
        session_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[Call]:
        """
        Give calls, oldest first; `until` itself is left out.
        """
        where, values = _where(
            {
                "id = ?": call_id,
                "decision_id = ?": decision_id,
                "session_id = ?": session_id,
                "at >= ?": since and stamp(since),
                "at < ?": until and stamp(until),
            }
        )
        return [
            self._call(row)
            for row in self.database.rows(f"SELECT {_CALLS} FROM calls{where} ORDER BY at, number", values)  # noqa: S608
        ]

    def spent_usd(self, since: datetime, session_id: str | None = None) -> Spent:
        """
        Add up what the calls since then cost.
        """
        where, values = _where({"at >= ?": stamp(since), "session_id = ?": session_id})
        rows = self.database.rows(f"SELECT cost_usd, COUNT(*) FROM calls{where} GROUP BY cost_usd", values)  # noqa: S608
        return sum_costs((cost, times) for cost, times in rows)

    def recent_outcomes(self, endpoint: str, limit: int) -> list[RecentCall]:
        """
        Give the latest calls to an endpoint, newest first; one that has not ended has no outcome.
        """
        rows = self.database.rows(
            "SELECT at, outcome, latency_ms FROM calls WHERE endpoint = ? ORDER BY at DESC, number DESC LIMIT ?",
            (storable(endpoint), limit),
        )
        recent: list[RecentCall] = []
        for at, outcome, latency_ms in rows:
            time = readable_time(at)
            took_ms = latency_ms if isinstance(latency_ms, int) and 0 <= latency_ms < MOST else None
            if time is not None:
                recent.append(RecentCall(time, outcome, took_ms))
        return recent

    def endpoints_since(self, at: datetime) -> list[str]:
        """
        Give the endpoints that were called since then, by any process.
        """
        rows = self.database.rows("SELECT DISTINCT endpoint FROM calls WHERE at >= ? ORDER BY endpoint", (stamp(at),))
        return [endpoint for (endpoint,) in rows if isinstance(endpoint, str)]

    def last_call_at(self, rubric_hash: str, model: str, endpoint: str) -> datetime | None:
        """
        Say when this rubric was last sent to this model, for deciding whether caching it pays.
        """
        rows = self.database.rows(
            "SELECT at FROM calls WHERE endpoint = ? AND model = ? AND rubric_hash = ? ORDER BY at DESC LIMIT 1",
            (storable(endpoint), storable(model), storable(rubric_hash)),
        )
        return readable_time(rows[0][0]) if rows else None

    def refused_fields(self, endpoint: str, model: str, *, now: datetime) -> tuple[str, ...]:
        """
        Give the request fields that this endpoint refused for this model within the last week; endpoints learn.
        """
        rows = self.database.rows(
            "SELECT fields FROM endpoint_refusals WHERE endpoint = ? AND model = ? AND at > ?",
            (storable(endpoint), storable(model), stamp(now - REFUSAL_LASTS)),
        )
        return _names(rows[0][0]) if rows else ()

    def remember_refused_fields(self, endpoint: str, model: str, fields: Iterable[str], *, at: datetime) -> None:
        """
        Remember, beside those already known, fields that an endpoint refuses.
        """
        known = sorted({*self.refused_fields(endpoint, model, now=at), *fields})
        with self.database.write() as transaction:
            transaction.execute(
                "INSERT INTO endpoint_refusals (endpoint, model, fields, at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (endpoint, model) DO UPDATE SET fields = excluded.fields, at = excluded.at",
                (storable(endpoint), storable(model), json.dumps(known), stamp(at)),
            )

    def claim_judgement(self, stop: str, now: datetime, *, started_at: datetime, owner: str = "") -> bool:
        """
        Claim the asking about a stop for a process, its `owner`; of all who ask at once, one gets True.

        What was answered before `started_at`, when the asker started, is out of date and can be claimed anew.
        """
        with self.database.write(alone=_CLAIMS) as transaction:
            _forget_shared(transaction, now)
            transaction.execute(
                "DELETE FROM shared_judgements WHERE stop = ? AND answered_at < ?", (storable(stop), stamp(started_at))
            )
            claimed = transaction.execute(
                "INSERT INTO shared_judgements (stop, claimed_at, owner) VALUES (?, ?, ?)"
                " ON CONFLICT (stop) DO NOTHING",
                (storable(stop), stamp(now), storable(owner)),
            )
        return claimed.rowcount == 1

    def claim_owner(self, stop: str) -> str:
        """
        Say whose claim on a stop has no answer yet; empty where that is not known.
        """
        rows = self.database.rows(
            "SELECT owner FROM shared_judgements WHERE stop = ? AND answer IS NULL", (storable(stop),)
        )
        return rows[0][0] if rows and isinstance(rows[0][0], str) else ""

    def take_over_claim(self, stop: str, now: datetime, *, gone: str, owner: str) -> bool:
        """
        Take the claim of an owner that is gone; of all who try, one gets True.
        """
        with self.database.write(alone=_CLAIMS) as transaction:
            taken = transaction.execute(
                "UPDATE shared_judgements SET claimed_at = ?, owner = ?"
                " WHERE stop = ? AND owner = ? AND answer IS NULL",
                (stamp(now), storable(owner), storable(stop), storable(gone)),
            )
        return taken.rowcount == 1

    def publish_judgement(self, stop: str, answer: str, now: datetime) -> None:
        """
        Give the answer about a claimed stop to those who wait for it.
        """
        with self.database.write(alone=_CLAIMS) as transaction:
            transaction.execute(
                "UPDATE shared_judgements SET answer = ?, answered_at = ? WHERE stop = ?",
                (storable(answer), stamp(now), storable(stop)),
            )
            _forget_shared(transaction, now, but=stop)

    def published_judgement(self, stop: str) -> str | None:
        """
        Give the answer about a stop, once there is one.
        """
        rows = self.database.rows("SELECT answer FROM shared_judgements WHERE stop = ?", (storable(stop),))
        return rows[0][0] if rows else None

    def _with_calls(self, lines: Sequence[DecisionLine]) -> list[Decision]:
        calls: dict[str, list[Call]] = {line.id: [] for line in lines}
        for ids in _portions(list(calls)):
            holes = ", ".join("?" * len(ids))
            found = self.database.rows(
                f"SELECT {_CALLS} FROM calls WHERE decision_id IN ({holes}) ORDER BY at, try_number, number",  # noqa: S608
                ids,
            )
            for call in map(self._call, found):
                calls[call.start.decision_id].append(call)
        return [Decision(line, tuple(calls[line.id])) for line in lines]

    def _decision_line(self, row: Sequence[object]) -> DecisionLine:
        line, is_damaged = read_decision(row)
        if is_damaged:
            self.damaged[f"decisions {line.id}"] = None
        return line

    def _call(self, row: Sequence[object]) -> Call:
        call, is_damaged = read_call(row)
        if is_damaged:
            self.damaged[f"calls {call.id}"] = None
        return call


def _insert(transaction: Transaction, table: str, values: Mapping[str, object], otherwise: str = "") -> None:
    names = ", ".join(values)
    holes = ", ".join("?" * len(values))
    transaction.execute(f"INSERT INTO {table} ({names}) VALUES ({holes}){otherwise}", _stored(values))  # noqa: S608


def _upsert_call(transaction: Transaction, start: Mapping[str, object], end: Mapping[str, object]) -> None:
    changed = ", ".join(f"{name} = excluded.{name}" for name in end)
    _insert(transaction, "calls", {**start, **end}, f" ON CONFLICT (id) DO UPDATE SET {changed}")
    # One that was owed may come after its decision, which knew the human turn.
    transaction.execute(
        "UPDATE calls SET human_turn = (SELECT human_turn FROM decisions WHERE id = calls.decision_id)"
        " WHERE id = ? AND EXISTS (SELECT 1 FROM decisions WHERE id = calls.decision_id)",
        (storable(str(start["id"])),),
    )


def _add_decision(transaction: Transaction, values: Mapping[str, object]) -> None:
    # It is there already where a commit was done whose answer got lost; or the service wrote it and died before its hook heard of it:
    # then the hook says what became of the stop.
    is_known = "UPDATE SET outcome = excluded.outcome, detail = excluded.detail"
    otherwise = is_known if values["outcome"] == "pass_service_error" else "NOTHING"
    _insert(transaction, "decisions", values, f" ON CONFLICT (id) DO {otherwise}")
    # The human turn is known only when the transcript was read, after the calls were opened.
    transaction.execute(
        "UPDATE calls SET human_turn = ? WHERE decision_id = ?",
        (storable(str(values["human_turn"])), storable(str(values["id"]))),
    )


def _forget_shared(transaction: Transaction, now: datetime, *, but: str = "") -> None:
    # A claim from the future is one from before the clock was set back.
    transaction.execute(
        "DELETE FROM shared_judgements WHERE (claimed_at < ? OR claimed_at > ?) AND stop <> ?",
        (stamp(now - CLAIM_LASTS), stamp(now + CLAIM_LASTS), storable(but)),
    )


_DECISIONS: Final = ", ".join(DECISION_COLUMNS)
_CALLS: Final = ", ".join(CALL_COLUMNS)


def _start_columns(start: CallStart) -> dict[str, object]:
    return {**start._asdict(), "at": stamp(start.at)}


def _end_columns(end: CallEnd) -> dict[str, object]:
    if end.outcome not in CALL_OUTCOMES:
        raise ValueError(f"unknown outcome of a call {end.outcome!r}: expected one of {', '.join(CALL_OUTCOMES)}")

    values: dict[str, object] = end._asdict()
    values.pop("usage")
    values.update(end.usage._asdict() if end.usage else dict.fromkeys(Usage._fields))
    values["raw_usage"] = None if end.raw_usage is None else _json(end.raw_usage)
    values["cost_usd"] = None if end.cost_usd is None else plain(end.cost_usd)
    return values


def _json(values: Mapping[str, object]) -> str | None:
    try:
        return json.dumps(dict(values), default=str)
    except (ValueError, TypeError, RecursionError):
        return None


def _stored(values: Mapping[str, object]) -> list[object]:
    return [storable(value) if isinstance(value, str) else value for value in values.values()]


def _clean(finding: FindingLine) -> FindingLine:
    fault, quote, reason, held = finding
    return FindingLine(storable(fault), storable(quote), storable(reason), held)


def _names(text: object) -> tuple[str, ...]:
    try:
        found = json.loads(cast("str", text))
    except (ValueError, TypeError, RecursionError):
        return ()
    names = cast("list[object]", found) if isinstance(found, list) else []
    return tuple(name for name in names if isinstance(name, str))


def _where(conditions: Mapping[str, str | None]) -> tuple[str, list[str]]:
    held = {condition: storable(value) for condition, value in conditions.items() if value is not None}
    return (" WHERE " + " AND ".join(held) if held else ""), list(held.values())


def _limit(limit: int | None) -> str:
    return "" if limit is None else f" LIMIT {int(limit)}"


def _portions(ids: list[str], size: int = 500) -> list[list[str]]:
    return [ids[start : start + size] for start in range(0, len(ids), size)]
