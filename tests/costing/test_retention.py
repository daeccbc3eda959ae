from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turngate.costing.database import FILE_NAME, open_database
from turngate.costing.forgotten_cases import FILE_NAME as CASES
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, DecisionLine, FindingLine
from turngate.costing.retention import (
    LIVE,
    Removed,
    Scope,
    count,
    folders_below,
    of_project,
    of_session,
    older_than,
    remove,
)
from turngate.costing.schema import tables
from turngate.costing.stamps import new_id
from turngate.costing.store import Store, StoreError
from turngate.costing.usage import Usage
from turngate.lab import wrong
from turngate.stopgate.turn_count import Hold, TurnCounts, TurnKey

from .ledger_lines import MINUTE, NOW, a_start
from .places import Place

MARK = "the-marker-of-this-test"
DAY = timedelta(days=1)
LONG_AGO = NOW - 100 * DAY


@pytest.fixture
def folder(place: Place) -> str:
    Path(place.folder).mkdir(exist_ok=True)
    return place.folder


def fill(store: Store, folder: str, session: str, project: str, at: object = LONG_AGO, mark: str = "a text") -> str:
    """
    One line in every table of a session, with a text wherever texts are kept; the decision's id.
    """
    ledger, counts = Ledger(store), TurnCounts(store)
    start = a_start(at, session_id=session, project=project, decision_id=f"d-{session}", human_turn=mark)  # pyright: ignore[reportArgumentType]
    end = CallEnd("answered", 900, "m", Usage(1, 2, 0, 0, 0, 0), {"note": mark}, Decimal("0.5"), "user", mark, mark)
    ledger.settle_call(ledger.open_call(start), start, end)
    finding = FindingLine("claim", mark, mark, held=True)
    line = DecisionLine(start.at, "Stop", "block_verdict", f"d-{session}", session, "", project, mark, mark, mark)
    ledger.record_decision(line._replace(findings=(finding,), transcript_path=f"/t/{mark}"))
    ledger.record_turn(line.id, json.dumps({"reply": mark}))
    ledger.label(line.id, "none", start.at, mark)
    key = TurnKey(session, "", mark, frozenset({mark}))
    assert counts.reserve(
        key, Hold("verdict", mark, (mark,)), seen=0, most=2, started_at=start.at - MINUTE, now=start.at
    )
    counts.first_notice(session, mark, start.at)
    ledger.claim_judgement(f"stop of {session}", start.at, started_at=start.at)
    ledger.publish_judgement(f"stop of {session}", json.dumps(mark), start.at)
    case = {"id": f"wrong-{line.id}", "turn": {"reply": mark}, "session": session}
    with Path(folder, CASES).open("a") as file:
        file.write(json.dumps(case) + "\n")
    return line.id


def lines(store: Store) -> dict[str, int]:
    """
    The number of lines in each table.
    """
    return {table: store.rows(f"SELECT COUNT(*) FROM {table}")[0][0] for table in tables()}


def all_text(store: Store) -> str:
    return repr([store.rows(f"SELECT * FROM {table}") for table in tables()])


ALL_OF_ONE = Removed(1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0)


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param(lambda _: of_session("s1"), id="session"),
        pytest.param(lambda store: of_project(store, "/p/one"), id="project"),
        pytest.param(lambda _: older_than(NOW - 90 * DAY), id="age"),
    ],
)
def test_everything_of_a_scope_goes_and_everything_else_stays(
    store: Store, folder: str, scope: Callable[[Store], Scope]
) -> None:
    """
    One line in each table, and the case, are removed and counted, as a dry run counts them; another session keeps all of its own.
    """
    fill(store, folder, "s1", "/p/one", mark=MARK)
    before = fill(store, folder, "s2", "/p/one-more", NOW - 80 * DAY)
    found = scope(store)

    told = count(store, found, folder, now=NOW)
    removed = remove(store, found, folder, now=NOW)

    # The key of a shared judgement does not tell whose it is.
    assert told == removed == ALL_OF_ONE
    assert MARK not in all_text(store)
    left = dict.fromkeys(tables(), 1) | {"shared_judgements": 0, "endpoint_refusals": 0, "day_sums": 0}
    assert lines(store) == left | {"turn_ids": 2}
    assert Ledger(store).decision(before) is not None
    assert [json.loads(line)["session"] for line in Path(folder, CASES).read_text().splitlines()] == ["s2"]
    assert remove(store, found, folder, now=NOW) == Removed()


def test_no_file_holds_the_text_afterwards(tmp_path: Path) -> None:
    """
    After the files are cleared no byte of a forgotten session is in any of them, also with another process's connection open.
    """
    folder = tmp_path / "state"
    with open_database(folder, checkpoints=False) as service, open_database(folder) as store:
        for each in (service, store):
            each.rows("PRAGMA secure_delete = OFF")  # some builds of SQLite have it on, as Debian's
        for number in range(30):
            fill(store, str(folder), f"{MARK}-{number}", "/p/one", mark=MARK + "é" * 3000)
            fill(service, str(folder), f"kept-{number}", "/p/two")
        Ledger(service).decisions()
        found_before = [file.name for file in folder.iterdir() if MARK.encode() in file.read_bytes()]

        remove(store, of_project(store, "/p/one"), str(folder), now=NOW)
        cleared = store.scrub()

        assert CASES in found_before
        assert {FILE_NAME, FILE_NAME + "-wal"} & set(found_before)
        assert cleared
        assert [file.name for file in folder.iterdir() if MARK.encode() in file.read_bytes()] == []
        assert len(Ledger(service).decisions()) == 30
        service.checkpoint()
        fill(service, str(folder), "later", "/p/two")
    assert [file.name for file in folder.iterdir() if MARK.encode() in file.read_bytes()] == []


def test_clearing_says_where_a_reader_keeps_the_old_text(tmp_path: Path) -> None:
    """
    Whoever has read a text and not ended its transaction may read it again: the log cannot be emptied, and nobody claims so.
    """
    folder = tmp_path / "state"
    with open_database(folder, busy_timeout_s=0.05) as store:
        fill(store, str(folder), "s1", "/p/one", mark=MARK)
        with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM decisions").fetchall()
            remove(store, of_session("s1"), str(folder), now=NOW)

            assert store.scrub() is False
        assert store.scrub() is True


def test_a_server_writes_its_tables_anew(store: Store, folder: str) -> None:
    """
    Clearing leaves what was kept readable, on both databases.
    """
    fill(store, folder, "s1", "/p/one", mark=MARK)
    kept = fill(store, folder, "s2", "/p/two")
    remove(store, of_session("s1"), folder, now=NOW)

    assert store.scrub()
    assert Ledger(store).decision(kept) is not None


@pytest.mark.parametrize(
    ("scope", "heard_of"),
    [
        pytest.param(of_session("s1"), "hold", id="forget-held-just-now"),
        pytest.param(of_session("s1"), "decision", id="forget-heard-of-just-now"),
        pytest.param(older_than(NOW), "hold", id="prune-held-just-now"),
        pytest.param(older_than(NOW), "decision", id="prune-heard-of-just-now"),
    ],
)
def test_a_running_turn_keeps_its_count(store: Store, folder: str, scope: Scope, heard_of: str) -> None:
    """
    A turn of the last hour has spent what it had spent, so that the cap holds; the reason of its hold is gone.
    """
    held_at = NOW - LIVE / 2 if heard_of == "hold" else NOW - 3 * LIVE
    fill(store, folder, "s1", "/p/one", held_at)
    store_line = DecisionLine(NOW - LIVE / 2, "PreToolUse", "jobs_pass", session_id="s1", project="/p/one")
    if heard_of == "decision":
        Ledger(store).record_decision(store_line)
    key = TurnKey("s1", "", "a text", frozenset({"a text"}))

    told = count(store, scope, folder, now=NOW)
    removed = remove(store, scope, folder, now=NOW)

    found = TurnCounts(store).find(key)
    assert told == removed
    assert (removed.turn_counts, removed.live_turns) == (0, 1)
    assert found.spent == 1
    assert all("a text" not in hold.reason for hold in found.holds)
    assert lines(store)["decisions"] == 0
    hold = Hold("verdict", "again", ())
    spends = [
        TurnCounts(store).reserve(key, hold, seen=seen, most=2, started_at=NOW + MINUTE, now=NOW + 2 * MINUTE)
        for seen in (1, 2)
    ]
    assert spends == [True, False]


class _HeldMeanwhile:
    """
    A store in which another process spends a continuation just before the first transaction begins.
    """

    def __init__(self, store: Store, spend: Callable[[], object]) -> None:
        self._store = store
        self._spends = [spend]

    def __getattr__(self, name: str) -> object:
        if name == "write" and self._spends:
            self._spends.pop()()
        return getattr(self._store, name)


def test_a_turn_that_is_held_meanwhile_keeps_its_count(store: Store, folder: str) -> None:
    """
    A turn that nobody had heard of for days, and that is held while one forgets its session, is not forgotten.
    """
    fill(store, folder, "s1", "/p/one")
    counts, key = TurnCounts(store), TurnKey("s1", "", "a text", frozenset())

    def spend() -> None:
        assert counts.reserve(key, Hold("verdict", "r", ()), seen=1, most=2, started_at=NOW - MINUTE, now=NOW)

    meanwhile = cast("Store", _HeldMeanwhile(store, spend))
    remove(meanwhile, of_session("s1")._replace(keeps_cases=True), folder, now=NOW)

    assert counts.find(key).spent == 2


def test_an_ended_turn_of_a_running_session_is_forgotten(store: Store, folder: str) -> None:
    """
    Of a session heard of just now only the latest turn can be running.
    """
    fill(store, folder, "s1", "/p/one", NOW - 3 * DAY)
    counts = TurnCounts(store)
    key = TurnKey("s1", "", "later", frozenset())
    counts.reserve(key, Hold("verdict", "r", ()), seen=0, most=2, started_at=NOW - 2 * DAY, now=NOW - DAY)
    Ledger(store).record_decision(DecisionLine(NOW, "Stop", "pass_clean", session_id="s1"))

    removed = remove(store, of_session("s1"), folder, now=NOW)

    assert (removed.turn_counts, removed.live_turns) == (1, 1)
    assert counts.find(key).spent == 1


def test_a_session_that_worked_for_two_projects_keeps_the_others_lines(store: Store, folder: str) -> None:
    """
    Its counts stay, for nobody knows whose turns they are, and their texts go.
    """
    fill(store, folder, "s1", "/p/one", mark=MARK)
    Ledger(store).record_decision(DecisionLine(LONG_AGO, "Stop", "pass_clean", session_id="s1", project="/p/two"))

    scope = of_project(store, "/p/one")
    told, removed = count(store, scope, folder, now=NOW), remove(store, scope, folder, now=NOW)

    assert told == removed
    assert (removed.decisions, removed.calls, removed.turn_counts, removed.cases) == (1, 1, 0, 1)
    assert lines(store)["decisions"] == 1
    assert store.rows("SELECT reason FROM holds") == [("(forgotten)",)]


def test_what_was_written_at_that_very_time_stays(store: Store, folder: str) -> None:
    """
    Older than a time is before it.
    """
    for at in (NOW - DAY - timedelta(milliseconds=1), NOW - DAY, NOW):
        Ledger(store).record_decision(DecisionLine(at, "Stop", "pass_clean"))

    assert remove(store, older_than(NOW - DAY), folder, now=NOW).decisions == 1


def test_what_a_lost_decision_left_behind_goes_with_its_time(store: Store, folder: str) -> None:
    """
    A turn that was recorded for a decision which could never be written is as old as its id says.
    """
    ledger = Ledger(store)
    for at in (NOW - 2 * DAY, NOW):
        ledger.record_turn(new_id(at), "{}")
        ledger.label(new_id(at), "none", at)

    scope = older_than(NOW - DAY)
    told, removed = count(store, scope, folder, now=NOW), remove(store, scope, folder, now=NOW)

    assert told == removed == Removed(recorded_turns=1, labels=1)


def test_cases_can_be_kept(store: Store, folder: str) -> None:
    """
    Somebody who labelled them may want them longer than the decisions.
    """
    fill(store, folder, "s1", "/p/one")
    before = Path(folder, CASES).read_bytes()

    assert remove(store, older_than(NOW, keep_cases=True), folder, now=NOW).cases == 0
    assert Path(folder, CASES).read_bytes() == before


def test_foreign_lines_among_the_cases_stay_as_they_are(store: Store, folder: str) -> None:
    """
    What is no case, or a case from elsewhere, is left byte for byte; the file stays one for its owner alone.
    """
    foreign = b'{"id": "mine", "session": "other"}\n not json \n[1]\n{"id": 7}\n\xff\xfe\n{"id": "last"}'
    fill(store, folder, "s1", "/p/one")
    cases = Path(folder, CASES)
    cases.write_bytes(cases.read_bytes() + foreign)

    assert remove(store, of_session("s1"), folder, now=NOW).cases == 1
    assert cases.read_bytes() == foreign
    assert cases.stat().st_mode & 0o777 == 0o600


def test_cases_behind_a_link_are_taken_out_there(store: Store, folder: str, tmp_path: Path) -> None:
    """
    The link stays one: a person may keep the file elsewhere.
    """
    elsewhere, link = tmp_path / "elsewhere.jsonl", Path(folder, CASES)
    link.parent.mkdir(exist_ok=True)
    elsewhere.write_text('{"id": "wrong-d1", "session": "s1"}\n{"id": "wrong-d2", "session": "s2"}\n')
    link.symlink_to(elsewhere)

    assert remove(store, of_session("s1"), folder, now=NOW).cases == 1

    assert link.is_symlink()
    assert elsewhere.read_text() == '{"id": "wrong-d2", "session": "s2"}\n'


def test_cases_that_are_no_file_are_an_error_at_once(store: Store, folder: str) -> None:
    """
    A FIFO is not waited for, and stays; so does what was to be removed.
    """
    fifo = Path(folder, CASES)
    fifo.parent.mkdir(exist_ok=True)
    os.mkfifo(fifo)
    Ledger(store).record_decision(DecisionLine(NOW, "Stop", "pass_clean", session_id="s1"))

    for ask in (count, remove):
        with pytest.raises(StoreError, match=f"{CASES}: not readable: no regular file"):
            ask(store, of_session("s1"), folder, now=NOW)

    assert fifo.is_fifo()
    assert len(Ledger(store).decisions()) == 1


def test_a_claim_that_somebody_is_asking_for_stays(store: Store, folder: str) -> None:
    """
    Without an answer it holds no text, and two hooks would ask about one stop without it.
    """
    Ledger(store).claim_judgement("a stop", NOW, started_at=NOW, owner="me")

    assert remove(store, of_session("s1"), folder, now=NOW).shared_judgements == 0
    assert Ledger(store).claim_owner("a stop") == "me"


def test_more_lines_than_one_portion_are_removed(store: Store, folder: str) -> None:
    """
    Portions follow each other until nothing is left, with others' lines among them.
    """
    with store.write() as transaction:
        for number in range(1300):
            transaction.execute(
                "INSERT INTO decisions (id, at, event, session_id, agent_id, project, prompt_id, human_turn, outcome, detail,"
                " findings, dropped, transcript_path, client_version)"
                " VALUES (?, ?, 'Stop', ?, '', '', '', '', 'pass_clean', '', '[]', 0, '', '')",
                (f"d{number}", "2026-01-01T00:00:00.000Z", "s1" if number % 3 else "s2"),
            )

    assert remove(store, of_session("s1"), folder, now=NOW).decisions == sum(1 for number in range(1300) if number % 3)
    assert store.rows("SELECT DISTINCT session_id FROM decisions") == [("s2",)]


def test_folders_below_a_project_are_told(store: Store) -> None:
    """
    They are projects of their own; one whose name only begins alike lies not below.
    """
    for project in ("/p/one", "/p/one/sub", "/p/one-more", "/p/one/a"):
        Ledger(store).record_decision(DecisionLine(NOW, "Stop", "pass_clean", project=project))

    assert folders_below(store, "/p/one") == ["/p/one/a", "/p/one/sub"]


def test_the_file_of_cases_is_the_labs() -> None:
    """
    Both write the same file, and keep each other out by its name.
    """
    assert CASES == wrong.FILE_NAME


@given(
    lines_of=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["/p", "/q"]), st.integers(0, 5)), min_size=1, max_size=12
    ),
    session=st.sampled_from("abc"),
    age=st.integers(0, 6),
    kind=st.sampled_from(["session", "project", "age"]),
)
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_goes_is_what_the_scope_says(
    tmp_path_factory: pytest.TempPathFactory,
    lines_of: list[tuple[str, str, int]],
    session: str,
    age: int,
    kind: str,
) -> None:
    """
    Of any decisions with calls those go that a filter in Python picks, the dry run tells their number, and cached sums do not outlive them.
    """
    folder = str(tmp_path_factory.mktemp("state"))
    with open_database(folder) as store:
        ledger = Ledger(store)
        for number, (of, project, days) in enumerate(lines_of):
            at, known = NOW - days * DAY, f"d{number}"
            start = a_start(at, session_id=of, project=project, decision_id=known)
            ledger.settle_call(ledger.open_call(start), start, CallEnd("answered"))
            ledger.record_decision(DecisionLine(at, "Stop", "pass_clean", known, of, project=project))
        scope = {"session": of_session(session), "project": of_project(store, "/p"), "age": older_than(NOW - age * DAY)}
        picks = {
            "session": lambda line: line[0] == session,
            "project": lambda line: line[1] == "/p",
            "age": lambda line: line[2] > age,
        }
        stay = [f"d{number}" for number, line in enumerate(lines_of) if not picks[kind](line)]

        told, removed = (work(store, scope[kind], folder, now=NOW) for work in (count, remove))

        assert told == removed
        assert removed.decisions == removed.calls == len(lines_of) - len(stay)
        assert sorted(row[0] for row in store.rows("SELECT id FROM decisions")) == sorted(stay)
        assert sorted(row[0] for row in store.rows("SELECT decision_id FROM calls")) == sorted(stay)
