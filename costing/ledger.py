"""
The ledger: every decision of the gate and every call to a judge, kept and read back.

A call's line is written before the call is sent, so that one which never comes back is still counted. What was not
learnt stays None: an unknown price is never 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from .database import Database, StoreError
from .outcomes import CALL_OUTCOMES, OUTCOMES
from .records import Call, CallEnd, CallStart, Decision, DecisionLine, FindingLine, RecentCall, Spent
from .stamps import moment, new_id, stamp, storable
from .usage import Usage

if TYPE_CHECKING:
    import sqlite3
    from decimal import Decimal

__all__ = [
    "Call",
    "CallEnd",
    "CallStart",
    "Decision",
    "DecisionLine",
    "FindingLine",
    "Ledger",
    "RecentCall",
    "Spent",
    "plain",
    "sum_costs",
]

REFUSAL_LASTS: Final = timedelta(days=7)

CLAIM_LASTS: Final = timedelta(seconds=60)
"""After this time a claim or answer for a stop counts no more: it is another stop, or its owner died."""


class Ledger:
    """
    The ledger in a database. Raises StoreError where the database fails.
    """

    def __init__(self, database: Database) -> None:
        self.database: Final = database

    def open_call(self, start: CallStart) -> str:
        """
        Write down that a try is about to be sent, and give its id.
        """
        call_id = new_id(start.at)
        with self.database.write() as connection:
            _insert(connection, "calls", {"id": call_id, **start._asdict(), "at": stamp(start.at)})
        return call_id

    def close_call(self, call_id: str, end: CallEnd) -> None:
        """
        Write down what came of a try.
        """
        if end.outcome not in CALL_OUTCOMES:
            raise ValueError(f"unknown outcome of a call {end.outcome!r}: expected one of {', '.join(CALL_OUTCOMES)}")

        values = _end_columns(end)
        holes = ", ".join(f"{name} = ?" for name in values)
        with self.database.write() as connection:
            done = connection.execute(f"UPDATE calls SET {holes} WHERE id = ?", (*_stored(values), call_id))  # noqa: S608
        if done.rowcount != 1:
            raise StoreError(f"{self.database.path}: no call {call_id!r} to close")

    def record_decision(self, line: DecisionLine) -> str:
        """
        Write down a decision, and give its id.
        """
        if line.outcome not in OUTCOMES:
            raise ValueError(f"unknown outcome {line.outcome!r}: expected one of {', '.join(OUTCOMES)}")

        decision_id = line.id or new_id(line.at)
        findings = json.dumps([_clean(finding)._asdict() for finding in line.findings])
        values = {**line._asdict(), "id": decision_id, "at": stamp(line.at), "findings": findings}
        with self.database.write() as connection:
            _insert(connection, "decisions", values)
            # The human turn is known only when the transcript was read, after the calls were opened.
            connection.execute(
                "UPDATE calls SET human_turn = ? WHERE decision_id = ?", (storable(line.human_turn), decision_id)
            )
        return decision_id

    def record_turn(self, decision_id: str, turn: str) -> None:
        """
        Keep what was judged, as JSON without secrets, for the lab.
        """
        with self.database.write() as connection:
            _insert(connection, "recorded_turns", {"decision_id": decision_id, "turn": turn})

    def recorded_turn(self, decision_id: str) -> str | None:
        """
        Give what was judged, where it was recorded.
        """
        rows = self.database.rows("SELECT turn FROM recorded_turns WHERE decision_id = ?", (storable(decision_id),))
        return rows[0][0] if rows else None

    def decisions(self, limit: int | None = None, *, session_id: str | None = None) -> list[Decision]:
        """
        Give the latest decisions with their calls, newest last.
        """
        where, values = _where({"session_id = ?": session_id})
        rows = self.database.rows(
            f"SELECT {_DECISION_COLUMNS} FROM decisions{where} ORDER BY at DESC, id DESC{_limit(limit)}",  # noqa: S608
            values,
        )
        return self._with_calls([_decision_line(row) for row in reversed(rows)])

    def decision(self, decision_id: str) -> Decision | None:
        """
        Give one decision with its calls.
        """
        rows = self.database.rows(
            f"SELECT {_DECISION_COLUMNS} FROM decisions WHERE id = ?",  # noqa: S608
            (storable(decision_id),),
        )
        return self._with_calls([_decision_line(row) for row in rows])[0] if rows else None

    def ids_starting(self, prefix: str, limit: int = 10) -> list[str]:
        """
        Give the ids of decisions that begin so, oldest first.
        """
        prefix = storable(prefix)
        rows = self.database.rows(
            "SELECT id FROM decisions WHERE substr(id, 1, ?) = ? ORDER BY id LIMIT ?", (len(prefix), prefix, limit)
        )
        return [row[0] for row in rows]

    def calls(
        self,
        *,
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
                "decision_id = ?": decision_id,
                "session_id = ?": session_id,
                "at >= ?": since and stamp(since),
                "at < ?": until and stamp(until),
            }
        )
        return [
            _call(row)
            for row in self.database.rows(f"SELECT {_CALL_COLUMNS} FROM calls{where} ORDER BY at, id", values)  # noqa: S608
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
            "SELECT at, outcome, latency_ms FROM calls WHERE endpoint = ? ORDER BY at DESC, id DESC LIMIT ?",
            (storable(endpoint), limit),
        )
        return [RecentCall(moment(at), outcome, latency_ms) for at, outcome, latency_ms in rows]

    def last_call_at(self, rubric_hash: str, model: str, endpoint: str) -> datetime | None:
        """
        Say when this rubric was last sent to this model, for deciding whether caching it pays.
        """
        rows = self.database.rows(
            "SELECT at FROM calls WHERE endpoint = ? AND model = ? AND rubric_hash = ? ORDER BY at DESC LIMIT 1",
            (storable(endpoint), storable(model), storable(rubric_hash)),
        )
        return moment(rows[0][0]) if rows else None

    def refused_fields(self, endpoint: str, model: str, *, now: datetime) -> tuple[str, ...]:
        """
        Give the request fields that this endpoint refused for this model within the last week; endpoints learn.
        """
        rows = self.database.rows(
            "SELECT fields FROM endpoint_refusals WHERE endpoint = ? AND model = ? AND at > ?",
            (storable(endpoint), storable(model), stamp(now - REFUSAL_LASTS)),
        )
        return tuple(json.loads(rows[0][0])) if rows else ()

    def remember_refused_fields(self, endpoint: str, model: str, fields: Iterable[str], *, at: datetime) -> None:
        """
        Remember, beside those already known, fields that an endpoint refuses.
        """
        known = sorted({*self.refused_fields(endpoint, model, now=at), *fields})
        with self.database.write() as connection:
            connection.execute(
                "INSERT INTO endpoint_refusals (endpoint, model, fields, at) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (endpoint, model) DO UPDATE SET fields = excluded.fields, at = excluded.at",
                (storable(endpoint), storable(model), json.dumps(known), stamp(at)),
            )

    def claim_judgement(self, stop: str, now: datetime, *, started_at: datetime) -> bool:
        """
        Claim the asking about a stop; of all who ask at once, one gets True.

        What was answered before `started_at`, when the asker started, is out of date and can be claimed anew.
        """
        with self.database.write() as connection:
            # A claim from the future is one from before the clock was set back.
            connection.execute(
                "DELETE FROM shared_judgements WHERE claimed_at < ? OR claimed_at > ? OR (stop = ? AND answered_at < ?)",
                (stamp(now - CLAIM_LASTS), stamp(now + CLAIM_LASTS), storable(stop), stamp(started_at)),
            )
            claimed = connection.execute(
                "INSERT INTO shared_judgements (stop, claimed_at) VALUES (?, ?) ON CONFLICT (stop) DO NOTHING",
                (storable(stop), stamp(now)),
            )
        return claimed.rowcount == 1

    def publish_judgement(self, stop: str, answer: str, now: datetime) -> None:
        """
        Give the answer about a claimed stop to those who wait for it.
        """
        with self.database.write() as connection:
            connection.execute(
                "UPDATE shared_judgements SET answer = ?, answered_at = ? WHERE stop = ?",
                (storable(answer), stamp(now), storable(stop)),
            )

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
                f"SELECT {_CALL_COLUMNS} FROM calls WHERE decision_id IN ({holes}) ORDER BY at, try_number, id",  # noqa: S608
                ids,
            )
            for call in map(_call, found):
                calls[call.start.decision_id].append(call)
        return [Decision(line, tuple(calls[line.id])) for line in lines]


def _insert(connection: sqlite3.Connection, table: str, values: Mapping[str, object]) -> None:
    names = ", ".join(values)
    holes = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({holes})", _stored(values))  # noqa: S608


def sum_costs(costs: Iterable[tuple[str | None, int]]) -> Spent:
    """
    Add up costs as they are stored, each with the number of calls that cost so much; exactly, or not at all.
    """
    from decimal import Context, Decimal, Inexact

    exact = Context(prec=100, traps=[Inexact])
    usd, unknown = Decimal(0), 0
    for cost, times in costs:
        if cost is None:
            unknown += times
        else:
            usd = exact.add(usd, exact.multiply(Decimal(cost), Decimal(times)))
    return Spent(usd, unknown)


def plain(amount: Decimal) -> str:
    """
    Write an amount as a plain decimal, without exponent or superfluous zeros.
    """
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


_END_COLUMNS: Final = (
    "outcome",
    "latency_ms",
    "model_answered",
    *Usage._fields,
    "raw_usage",
    "cost_usd",
    "price_source",
    "request_id",
    "detail",
)
_DECISION_COLUMNS: Final = ", ".join(DecisionLine._fields)
_CALL_COLUMNS: Final = ", ".join(("id", *CallStart._fields, *_END_COLUMNS))


def _end_columns(end: CallEnd) -> dict[str, object]:
    values: dict[str, object] = end._asdict()
    values.pop("usage")
    values.update(end.usage._asdict() if end.usage else dict.fromkeys(Usage._fields))
    values["raw_usage"] = None if end.raw_usage is None else json.dumps(dict(end.raw_usage), default=str)
    values["cost_usd"] = None if end.cost_usd is None else plain(end.cost_usd)
    return values


def _stored(values: Mapping[str, object]) -> list[object]:
    return [storable(value) if isinstance(value, str) else value for value in values.values()]


def _clean(finding: FindingLine) -> FindingLine:
    fault, quote, reason, held = finding
    return FindingLine(storable(fault), storable(quote), storable(reason), held)


def _decision_line(row: Sequence[Any]) -> DecisionLine:
    line = DecisionLine(*row)
    findings = tuple(FindingLine(**finding) for finding in json.loads(row[DecisionLine._fields.index("findings")]))
    return line._replace(at=moment(row[0]), findings=findings)


def _call(row: Sequence[Any]) -> Call:
    starts = 1 + len(CallStart._fields)
    start = CallStart(*row[1:starts])
    return Call(
        row[0], start._replace(at=moment(row[1])), _call_end(dict(zip(_END_COLUMNS, row[starts:], strict=True)))
    )


def _call_end(values: dict[str, Any]) -> CallEnd | None:
    if values["outcome"] is None:
        return None

    from decimal import Decimal

    counts = [values.pop(name) for name in Usage._fields]
    values["raw_usage"] = values["raw_usage"] and json.loads(values["raw_usage"])
    values["cost_usd"] = None if values["cost_usd"] is None else Decimal(values["cost_usd"])
    return CallEnd(usage=None if counts[0] is None else Usage(*counts), **values)


def _where(conditions: Mapping[str, str | None]) -> tuple[str, list[str]]:
    held = {condition: storable(value) for condition, value in conditions.items() if value is not None}
    return (" WHERE " + " AND ".join(held) if held else ""), list(held.values())


def _limit(limit: int | None) -> str:
    return "" if limit is None else f" LIMIT {int(limit)}"


def _portions(ids: list[str], size: int = 500) -> list[list[str]]:
    return [ids[start : start + size] for start in range(0, len(ids), size)]
