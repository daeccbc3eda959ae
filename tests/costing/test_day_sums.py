from __future__ import annotations

import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turngate.costing.database import FILE_NAME
from turngate.costing.day_sums import forget_sums, keep_sums, read_days
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart, DecisionLine
from turngate.costing.report import WAYS, By, Total, report
from turngate.costing.stamps import stamp
from turngate.costing.store import Store, StoreError
from turngate.costing.sums import Filters
from turngate.costing.usage import Usage
from turngate.costing.windows import ALL_TIME, Window

from .places import Place, a_place, needs_postgres

NOW = datetime(2026, 11, 5, 12, tzinfo=UTC)
"""The clocks of Berlin and New York change on 25 October and 1 November."""
FIRST = datetime(2026, 10, 23, tzinfo=UTC)
HOUR = timedelta(hours=1)
ZONES: tuple[tzinfo, ...] = (
    UTC,
    ZoneInfo("Europe/Berlin"),
    ZoneInfo("America/New_York"),
    ZoneInfo("Asia/Kathmandu"),
    ZoneInfo("Pacific/Kiritimati"),
    timezone(timedelta(hours=-3, minutes=-30)),
)
OUTCOMES = ("pass_clean", "block_verdict", "block_background", "pass_cap_spent", "pass_judge_error", "jobs_deny")


class Story:
    """
    Changes a ledger at random, as hooks, people and commands do.
    """

    def __init__(self, store: Store, dice: random.Random) -> None:
        self.store = store
        self.ledger = Ledger(store)
        self.dice = dice
        self.opened: list[tuple[str, CallStart]] = []

    def time(self) -> datetime:
        hours = (NOW + 30 * HOUR - FIRST) // HOUR
        return (
            FIRST + self.dice.randrange(hours) * HOUR + self.dice.choice([0, 1, 3_599_999]) * timedelta(milliseconds=1)
        )

    def stop(self) -> None:
        """
        A stop with calls, some of which never end, and a decision that may be of another day.
        """
        at, decision = self.time(), f"d{self.dice.getrandbits(60)}"
        place: dict[str, Any] = {
            "event": self.dice.choice(["Stop", "SubagentStop"]),
            "session_id": self.dice.choice("rst"),
            "project": self.dice.choice(["/p", "/q", ""]),
        }
        for number in range(self.dice.choice([0, 1, 1, 3])):
            start = CallStart(at, "anthropic", self.dice.choice("mn"), try_number=number, decision_id=decision, **place)
            self.opened.append((self.ledger.open_call(start), start))
            if self.dice.random() < 0.7:
                self.settle()
        if self.dice.random() < 0.9:
            late = self.dice.choice([timedelta(0), timedelta(minutes=1), 25 * HOUR])
            outcome: Any = self.dice.choice(OUTCOMES)
            self.ledger.record_decision(DecisionLine(at + late, outcome=outcome, id=decision, **place))

    def settle(self) -> None:
        """
        A call ends, long after its day perhaps.
        """
        if self.opened:
            call, start = self.opened.pop(self.dice.randrange(len(self.opened)))
            usage = None if self.dice.random() < 0.2 else Usage(*(self.dice.randrange(1000) for _ in range(6)))
            cost = None if usage is None or self.dice.random() < 0.2 else Decimal(f"0.{self.dice.getrandbits(60):019}")
            self.ledger.settle_call(call, start, CallEnd("answered", usage=usage, cost_usd=cost))

    def label(self) -> None:
        if found := self.store.rows("SELECT id FROM decisions"):
            self.ledger.label(self.dice.choice(found)[0], self.dice.choice(["none", "claim"]), NOW)

    def change(self) -> None:
        """
        What another program, or a later version, may do.
        """
        table = self.dice.choice(["calls", "decisions", "labels"])
        key = "decision_id" if table == "labels" else "id"
        found = self.store.rows(f"SELECT {key} FROM {table}")
        if not found:
            return
        column, value = self.dice.choice(
            {
                "calls": [
                    ("at", stamp(self.time())),
                    ("cost_usd", self.dice.choice(["0.1", None, "x", "1e-5"])),
                    ("model", "o"),
                    ("project", "/r"),
                    ("session_id", "u"),
                    ("event", "Stop"),
                    ("output_tokens", 7),
                    ("decision_id", self.dice.choice(self.store.rows("SELECT id FROM decisions") or [("none",)])[0]),
                ],
                "decisions": [
                    ("at", stamp(self.time())),
                    ("outcome", self.dice.choice(OUTCOMES)),
                    ("project", "/r"),
                    ("session_id", "u"),
                    ("event", "Stop"),
                ],
                "labels": [("label", self.dice.choice(["none", "opener"]))],
            }[table]
        )
        with self.store.write() as transaction:
            line = self.dice.choice(found)[0]
            if self.dice.random() < 0.3:
                transaction.execute(f"DELETE FROM {table} WHERE {key} = ?", (line,))
            else:
                transaction.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (value, line))

    def keep(self) -> None:
        keep_sums(self.store, Window(zone=self.dice.choice(ZONES)), now=NOW, most=self.dice.choice([1, 100]))

    def read(self) -> None:
        report(self.store, self.dice.choice(WAYS), Window(zone=self.dice.choice(ZONES)), now=NOW)


class AddedUp:
    """
    The same report, line by line, without any day that is kept.
    """

    def __init__(self, store: Store, by: By, window: Window, filters: Filters) -> None:
        self.by, self.window, self.filters = by, window, filters
        self.decisions = store.rows("SELECT id, at, project, event, session_id, outcome FROM decisions")
        self.calls = store.rows(
            f"SELECT decision_id, at, project, event, session_id, model, cost_usd, {', '.join(Usage._fields)} FROM calls"
        )
        self.wrong = {line for (line,) in store.rows("SELECT decision_id FROM labels WHERE label = 'none'")}
        self.outcomes: dict[str, str] = {decision[0]: decision[5] for decision in self.decisions}
        self.lines: dict[str, Counter[str]] = {}
        self.costs: dict[str, Decimal] = {}
        for decision in self.decisions:
            self.add_decision(*decision)
        for call in self.calls:
            self.add_call(*call)

    def rows(self) -> list[Total]:
        found = [self.row(key) for key in self.lines if key != "total"]
        said = [row for row in found if self.by == "outcome" or row.decisions or row.calls]
        return sorted(said, key=lambda row: row.key if self.by == "day" else (-(row.cost_usd or 0), row.key))

    def row(self, key: str) -> Total:
        counts, cost = self.lines.get(key, Counter[str]()), self.costs.get(key, Decimal(0))
        known = cost if counts["unknown_costs"] < counts["calls"] or not counts["calls"] else None
        names = [name for name in Total._fields if name not in ("key", "cost_usd")]
        return Total(key, cost_usd=known, **{name: counts[name] for name in names})

    def add_decision(self, decision: str, at: str, project: str, event: str, session: str, outcome: str) -> None:
        asked = {call[5] for call in self.calls if call[0] == decision} or {""}
        taken = asked if self.filters.model is None else asked & {self.filters.model}
        if not self.is_within(at) or not taken or not self.filters._replace(model=None).takes(project, "", event):
            return
        counts = Counter(
            decisions=int(not outcome.startswith("jobs_")),
            blocks=int(outcome.startswith("block_")),
            wrong_blocks=int(outcome.startswith("block_") and decision in self.wrong),
            cap_spent=int(outcome == "pass_cap_spent"),
        )
        self.lines.setdefault("total", Counter()).update(counts)
        if self.by == "outcome":
            counts["decisions"] = 1
        for model in taken if self.by == "model" else {""}:
            self.lines.setdefault(self.key(at, project, event, session, outcome, model), Counter()).update(counts)

    def add_call(
        self, decision: str, at: str, project: str, event: str, session: str, model: str, cost: str | None, *tokens: int
    ) -> None:
        if not self.is_within(at) or not self.filters.takes(project, model, event):
            return
        is_known = cost not in (None, "x")
        counts = Counter(dict(zip(Usage._fields, (number or 0 for number in tokens), strict=True)))
        counts.update(calls=1, unknown_costs=int(not is_known))
        for key in (self.key(at, project, event, session, self.outcomes.get(decision, ""), model), "total"):
            self.lines.setdefault(key, Counter()).update(counts)
            self.costs[key] = self.costs.get(key, Decimal(0)) + (Decimal(cost) if cost and is_known else 0)

    def is_within(self, at: str) -> bool:
        time, (since, until, _) = datetime.fromisoformat(at), self.window
        return (since is None or since <= time) and (until is None or time < until)

    def key(self, at: str, project: str, event: str, session: str, outcome: str, model: str) -> str:
        day = datetime.fromisoformat(at).astimezone(self.window.zone).date().isoformat()
        told = {"day": day, "project": project, "event": event, "outcome": outcome, "session": session, "model": model}
        return told[self.by]


def check(store: Store, dice: random.Random) -> None:
    ends = sorted(FIRST + dice.randrange(20 * 24) * HOUR for _ in range(2))
    since, until = dice.choice([(None, None), (ends[0], None), (None, ends[1]), (ends[0], ends[1])])
    window = Window(since, until, dice.choice(ZONES))
    some = Filters(*(dice.choice([None, None, value]) for value in ("/p", "m", "Stop")))
    for by in WAYS:
        for filters in (Filters(), some):
            found = report(store, by, window, filters, now=NOW)
            right = AddedUp(store, by, window, filters)
            assert list(found.rows) == right.rows(), (by, window, filters)
            assert found.total == right.row("total")


def play(store: Store, seed: int, steps: int) -> None:
    dice = random.Random(seed)
    story = Story(store, dice)
    moves: list[Callable[[], None]] = [story.stop, story.settle, story.label, story.change, story.keep, story.read]
    for _ in range(10):
        story.stop()
    for _ in range(steps):
        dice.choice(moves)()
    check(store, dice)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 40))
def test_kept_days_say_what_the_lines_say(tmp_path_factory: pytest.TempPathFactory, seed: int, steps: int) -> None:
    """
    Whatever came late, was labelled, changed or removed since days were kept: each report is that of the lines, to the last digit.
    """
    with Place(str(tmp_path_factory.mktemp("state"))).open() as store:
        play(store, seed, steps)


def test_kept_days_say_the_same_in_both_databases(store: Store) -> None:
    """
    The triggers of PostgreSQL do what those of SQLite do.
    """
    for seed in range(3):
        play(store, seed, 60)


def a_stop(store: Store, at: datetime, cost: str = "0.1") -> None:
    ledger = Ledger(store)
    decision = ledger.record_decision(DecisionLine(at, "Stop", "pass_clean"))
    start = CallStart(at, "anthropic", "m", decision_id=decision)
    ledger.settle_call("", start, CallEnd("answered", cost_usd=Decimal(cost)))


def kept(store: Store) -> list[str]:
    return [at[:10] for (at,) in store.rows("SELECT starts_at FROM day_sums WHERE sums IS NOT NULL ORDER BY 1")]


def test_days_that_are_over_are_kept_and_others_are_not(store: Store) -> None:
    """
    Neither today, nor a day of which the window has only a part, nor one without any line.
    """
    for at in (FIRST + HOUR, FIRST + 60 * HOUR, FIRST + 61 * HOUR, NOW - HOUR, NOW + HOUR):
        a_stop(store, at)

    read_days(store, Window(FIRST + 61 * HOUR), now=NOW)
    assert kept(store) == []

    assert sum(day.sums["total"][""].calls for day in read_days(store, ALL_TIME, now=NOW)) == 5
    assert kept(store) == ["2026-10-23", "2026-10-25"]


def test_a_write_takes_away_the_days_it_is_in_and_no_other(store: Store) -> None:
    """
    A call that settles late takes its own day away, in each zone that has it.
    """
    for number in range(4):
        a_stop(store, FIRST + number * 24 * HOUR + HOUR)
    # Days of Kathmandu begin at a quarter past six in the evening before.
    for zone in (UTC, ZoneInfo("Asia/Kathmandu")):
        read_days(store, Window(zone=zone), now=NOW)
    assert len(kept(store)) == 8

    a_stop(store, FIRST + 25 * HOUR)

    assert kept(store) == ["2026-10-22", "2026-10-23", "2026-10-24", "2026-10-25", "2026-10-25", "2026-10-26"]


def test_an_owner_keeps_days_a_few_at_a_time(store: Store) -> None:
    """
    The service adds up what nobody has asked for yet, and has nothing to do once all is kept.
    """
    for number in range(4):
        a_stop(store, FIRST + number * 24 * HOUR)

    assert [keep_sums(store, ALL_TIME, now=NOW, most=3) for _ in range(3)] == [3, 1, 0]
    assert len(kept(store)) == 4


def test_what_is_written_while_a_day_is_added_up_is_not_lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A line that comes after the day was read takes away what was promised: the day is not kept without it.
    """
    from turngate.costing import day_sums

    a_stop(store, FIRST)
    real = day_sums.read_cube

    def read_and_be_late(*asked: Any) -> Any:
        found = real(*asked)
        a_stop(store, FIRST + HOUR)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(day_sums, "read_cube", read_and_be_late)
        assert report(store, "day", now=NOW).total.calls == 1

    assert kept(store) == []
    assert report(store, "day", now=NOW).total.calls == 2


def test_writers_and_readers_at_once(place: Place) -> None:
    """
    While two threads write stops and two report, no line is missed once the writers are done.
    """
    failed: list[BaseException] = []

    def go(work: Callable[[Store, int], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                with place.open(busy_timeout_s=20) as store:
                    for number in range(40):
                        work(store, number)
            except BaseException as error:
                failed.append(error)

        return run

    def write(store: Store, number: int) -> None:
        a_stop(store, FIRST + number % 7 * 24 * HOUR)

    def look(store: Store, number: int) -> None:
        report(store, "session" if number % 2 else "day", now=NOW)

    with place.open(busy_timeout_s=20) as store:
        threads = [threading.Thread(target=go(work)) for work in (write, write, look, look)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert failed == []
        assert report(store, "day", now=NOW).total[1:3] == (80, 80)
        assert report(store, "session", now=NOW).total[1:3] == (80, 80)


def test_a_ledger_that_cannot_be_written_is_added_up_all_the_same(tmp_path: Path) -> None:
    """
    Somebody holds the lock: the report comes, and nothing is kept.
    """
    with Place(str(tmp_path)).open() as store, Place(str(tmp_path)).open(0.05) as other:
        a_stop(store, FIRST)
        with store.write():
            assert report(other, "day", now=NOW).total.calls == 1
        assert kept(store) == []


def test_damaged_times_are_counted_once(tmp_path: Path) -> None:
    """
    A line whose time cannot be read has no day, and is part of the total.
    """
    times = (
        "",
        "x",
        "2026-10-23 is damage",
        "2026-10-24",
        "1970-01-01T00:00:00.000Z",
        "9999-12-31T00:00:00.000Z",
        b"\xff",
    )
    with Place(str(tmp_path)).open() as store:
        for _ in times:
            a_stop(store, FIRST)
        for number, at in enumerate(times, 1):
            with store.write() as transaction:
                transaction.execute("UPDATE calls SET at = ? WHERE number = ?", (at, number))

        for _ in range(2):
            found = report(store, "day", now=NOW)
            assert (found.total.calls, found.total.cost_usd) == (7, Decimal("0.7"))
            assert sum(row.calls for row in found.rows) == 7
            assert {row.key for row in found.rows} == {"", "1970-01-01", "2026-10-23"}


def test_many_changes_forget_all_that_is_kept_first(store: Store) -> None:
    """
    `forget_sums` leaves nothing for the triggers to look through, and is part of the transaction.
    """
    a_stop(store, FIRST)
    read_days(store, ALL_TIME, now=NOW)

    def fail() -> None:
        with store.write() as transaction:
            forget_sums(transaction)
            raise StoreError("no")

    with pytest.raises(StoreError, match="no"):
        fail()
    assert len(kept(store)) == 1

    with store.write() as transaction:
        forget_sums(transaction)
    assert kept(store) == []


@pytest.mark.parametrize(
    "damage",
    ["junk", "", "{}", "[]", '{"total":{"":[1]}}', "00000000{}", b"junk", b"", 7, 0.5, "\ud7ff" * 9],
    ids=repr,
)
@pytest.mark.parametrize("column", ["sums", "cube", "session_sums", "ends_at", "writer"])
def test_a_kept_day_that_is_damaged_is_added_up_anew(tmp_path: Path, column: str, damage: object) -> None:
    """
    Whatever stands in its line, the report is right; and what could be put right is kept again.
    """
    with Place(str(tmp_path)).open() as store:
        a_stop(store, FIRST)
        _all_kinds(store)
        with store.write() as transaction:
            transaction.execute(f"UPDATE day_sums SET {column} = ?", (damage,))

        assert [_all_kinds(store) for _ in range(2)] == [[1, 1, 1]] * 2
        keep_sums(store, ALL_TIME, now=NOW)

        found = store.rows("SELECT sums, cube, session_sums FROM day_sums")
        assert len(found) == 1
        assert damage not in found[0]


def test_a_digit_that_changed_is_damage(store: Store) -> None:
    """
    Sums that can be read and are not those that were kept are found out.
    """
    a_stop(store, FIRST, cost="0.125")
    _all_kinds(store)
    with store.write() as transaction:
        transaction.execute("UPDATE day_sums SET sums = replace(sums, '0.125', '0.625')")

    assert report(store, "day", now=NOW).total.cost_usd == Decimal("0.125")


def _all_kinds(store: Store) -> list[int]:
    asked: list[tuple[By, Filters]] = [("day", Filters()), ("day", Filters(project="")), ("session", Filters())]
    return [report(store, by, ALL_TIME, filters, now=NOW).total.calls for by, filters in asked]


MOVED = stamp(FIRST + 73 * HOUR)
REPLACED = {
    "call-of-another-time": (
        "INSERT OR REPLACE INTO calls (id, decision_id, at, event, session_id, agent_id, project, human_turn, backend, endpoint,"
        " model, rubric, rubric_hash, try_number) SELECT id, decision_id, ?, event, session_id, agent_id, project, human_turn,"
        " backend, endpoint, model, rubric, rubric_hash, try_number FROM calls WHERE id = 'c0'"
    ),
    "call-of-another-decision": (
        "REPLACE INTO calls (id, decision_id, at, event, session_id, agent_id, project, human_turn, backend, endpoint,"
        " model, rubric, rubric_hash, try_number) SELECT id, ?, at, event, session_id, agent_id, project, human_turn,"
        " backend, endpoint, model, rubric, rubric_hash, try_number FROM calls WHERE id = 'c0'"
    ),
    "call-of-the-same-number": (
        "REPLACE INTO calls (number, id, decision_id, at, event, session_id, agent_id, project, human_turn, backend, endpoint,"
        " model, rubric, rubric_hash, try_number) SELECT number, 'new', decision_id, ?, event, session_id, agent_id, project,"
        " human_turn, backend, endpoint, model, rubric, rubric_hash, try_number FROM calls WHERE id = 'c0'"
    ),
    "call-that-takes-an-id": "UPDATE OR REPLACE calls SET id = 'c0' WHERE id = 'c1' AND at <> ?",
    "call-that-takes-a-number": "UPDATE OR REPLACE calls SET number = 1 WHERE id = 'c1' AND at <> ?",
    "decision-of-another-time": (
        "REPLACE INTO decisions (id, at, event, session_id, agent_id, project, prompt_id, human_turn, outcome, detail, findings,"
        " dropped, transcript_path, client_version) SELECT id, ?, event, session_id, agent_id, project, prompt_id, human_turn,"
        " outcome, detail, findings, dropped, transcript_path, client_version FROM decisions WHERE id = 'd0'"
    ),
    "decision-of-the-same-number": (
        "REPLACE INTO decisions (number, id, at, event, session_id, agent_id, project, prompt_id, human_turn, outcome, detail,"
        " findings, dropped, transcript_path, client_version) SELECT number, 'new', ?, event, session_id, agent_id, project,"
        " prompt_id, human_turn, outcome, detail, findings, dropped, transcript_path, client_version FROM decisions WHERE id = 'd0'"
    ),
    "decision-that-takes-an-id": "UPDATE OR REPLACE decisions SET id = 'd0' WHERE id = 'd1' AND at <> ?",
    "decision-that-takes-a-number": "UPDATE OR REPLACE decisions SET number = 1 WHERE id = 'd1' AND at <> ?",
    "label": "REPLACE INTO labels (decision_id, label, at) VALUES ('d0', 'opener', ?)",
    "label-that-takes-a-decision": "UPDATE OR REPLACE labels SET decision_id = 'd0' WHERE decision_id = 'd1' AND at <> ?",
}


@pytest.mark.parametrize("sql", REPLACED.values(), ids=REPLACED)
def test_a_row_that_is_replaced_takes_its_days_along(tmp_path: Path, sql: str) -> None:
    """
    By a person with `sqlite3`, too, whose connection knows nothing of ours.
    """
    with Place(str(tmp_path)).open() as store:
        ledger = Ledger(store)
        for number in range(2):
            at = FIRST + number * 24 * HOUR
            ledger.record_decision(DecisionLine(at + 25 * HOUR, "Stop", "block_verdict", id=f"d{number}"))
            start = CallStart(at, "anthropic", "m", decision_id=f"d{number}")
            ledger.settle_call(f"c{number}", start, CallEnd("answered", cost_usd=Decimal("0.1")))
            ledger.label(f"d{number}", "none", NOW)
        for by in WAYS:
            report(store, by, now=NOW)

        with sqlite3.connect(tmp_path / FILE_NAME) as person:
            assert person.execute(sql, (MOVED,)).rowcount == 1
        person.close()

        for by in WAYS:
            right = AddedUp(store, by, ALL_TIME, Filters())
            found = report(store, by, now=NOW)
            assert (list(found.rows), found.total) == (right.rows(), right.row("total")), by


def test_our_own_writes_forget_no_other_day(store: Store) -> None:
    """
    A call that ends is a row that was there before: other days stay kept.
    """
    ledger = Ledger(store)
    start = CallStart(FIRST, "anthropic", "m")
    call = ledger.open_call(start)
    a_stop(store, FIRST + 48 * HOUR)
    read_days(store, ALL_TIME, now=NOW)
    assert len(kept(store)) == 2

    ledger.settle_call(call, start, CallEnd("answered", cost_usd=Decimal(1)))

    assert kept(store) == ["2026-10-25"]


@needs_postgres
@pytest.mark.parametrize("table", ["calls", "decisions", "labels"])
def test_a_table_that_is_emptied_takes_all_days_along(tmp_path: Path, table: str) -> None:
    """
    PostgreSQL's `TRUNCATE` removes rows of which no row's trigger hears.
    """
    with a_place("postgres", tmp_path) as place, place.open(10) as store:
        a_stop(store, FIRST)
        read_days(store, ALL_TIME, now=NOW)
        with store.write() as transaction:
            transaction.execute(f"TRUNCATE {table}")

        assert kept(store) == []
