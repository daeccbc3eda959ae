"""
The stores of a service, and that no line is lost with the database under them.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from turngate.costing.database import FILE_NAME, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store
from turngate.costing.records import CallEnd, CallStart, DecisionLine
from turngate.costing.store import Store as Database
from turngate.costing.store import StoreError
from turngate.stopgate.gate import Store
from turngate.stopgate.stores import BUSY_TIMEOUT_S, MOST_OPEN, Stores

from ..costing.places import BOTH, Place, a_place

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
START = CallStart(NOW, "anthropic", "claude-sonnet-5-5", "api.anthropic.com", "turn_end@1", "abc")
ELSEWHERE = [f"postgresql://127.0.0.1:1/{number}" for number in range(MOST_OPEN)]
"""As many ledgers as stay open; where nobody listens, a store is opened without a server."""


@pytest.fixture(name="state")
def name_state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture(name="stores")
def keep_stores(state: Path) -> Iterator[Stores]:
    stores = Stores(str(state), Ledger)
    yield stores
    stores.close()


def decide(store: Store, decision_id: str) -> None:
    """
    Write a decision as the gate does, who goes on where that fails.
    """
    assert store.ledger is not None
    with suppress(StoreError):
        store.ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean", id=decision_id), wait_s=0.02)


def settle(store: Store, call_id: str) -> None:
    assert store.ledger is not None
    with suppress(StoreError):
        store.ledger.settle_call(call_id, START, CallEnd("answered"))


def pay_all(stores: Stores) -> None:
    # A connection that was not made in time is there for the next try.
    while stores.owed():
        stores.pay(wait_s=5)


def lines(state: Path, url: str = "") -> list[str]:
    """
    Read the decisions and the calls as another process does.
    """
    with open_ledger_store(state, url) as database:
        ledger = Ledger(database)
        return [decision.line.id for decision in ledger.decisions()] + [call.id for call in ledger.calls()]


@contextmanager
def locked(state: Path) -> Generator[None]:
    with closing(sqlite3.connect(state / FILE_NAME, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


def test_a_store_is_opened_once_for_all(stores: Stores) -> None:
    """
    Each stop gets the same ledger and the same counts.
    """
    store = stores.get("")

    assert store.counts is not None
    assert stores.get("") is store
    assert stores.opened() == {"": store}


def test_what_could_not_be_written_where_no_store_could_be_opened_is_written_later(stores: Stores, state: Path) -> None:
    """
    A billed call and its decision, each by a stop of its own: nothing can be counted, the lines are owed, and paid by the
    upkeep without another stop.
    """
    (state / FILE_NAME).mkdir(parents=True)
    for number in range(3):
        store = stores.get("")
        assert store.counts is None
        assert "not a file" in store.error
        settle(store, f"c{number}")
        decide(store, f"d{number}")
    stores.pay()
    assert stores.owed() == 6
    assert stores.opened() == {}

    (state / FILE_NAME).rmdir()
    stores.pay()

    assert stores.owed() == 0
    assert lines(state) == ["d0", "d1", "d2", "c0", "c1", "c2"]
    assert stores.get("").counts is not None


def removed(state: Path) -> None:
    for path in state.glob(f"{FILE_NAME}*"):
        path.unlink()


def removed_with_its_folder(state: Path) -> None:
    shutil.rmtree(state)


def replaced(state: Path) -> None:
    with open_database(state / "turngate.new"):
        pass
    for path in state.glob(f"{FILE_NAME}*"):
        path.unlink()
    (state / "turngate.new" / FILE_NAME).rename(state / FILE_NAME)


LOSSES = [removed, removed_with_its_folder, replaced]


@pytest.mark.parametrize("lose", LOSSES)
def test_what_was_owed_when_the_file_was_lost_is_written_to_the_next(
    stores: Stores, state: Path, lose: Callable[[Path], None]
) -> None:
    """
    By whom the store is opened again does not matter.
    """
    store = stores.get("")
    with locked(state):
        decide(store, "d1")
    assert stores.owed() == 1

    lose(state)
    assert stores.get("").error == ""

    assert stores.owed() == 1
    stores.pay()
    assert stores.owed() == 0
    assert lines(state) == ["d1"]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_call_in_flight_while_the_file_is_lost_is_written_to_the_next(
    stores: Stores, state: Path, lose: Callable[[Path], None]
) -> None:
    """
    Its end and its decision go into no file that nobody reads; they are owed, and the upkeep makes a new file for them.
    """
    store = stores.get("")
    assert store.ledger is not None
    call_id = store.ledger.open_call(START)

    lose(state)
    settle(store, call_id)
    decide(store, "d1")
    assert stores.owed() == 2
    stores.pay()

    assert stores.owed() == 0
    assert lines(state) == ["d1", call_id]


def test_a_call_in_flight_while_another_stop_opens_the_next_file_is_written_there(stores: Stores, state: Path) -> None:
    """
    The store that a stop has got follows.
    """
    store = stores.get("")
    removed(state)
    stores.get("")

    settle(store, "c1")

    assert stores.owed() == 0
    assert lines(state) == ["c1"]


def test_a_file_that_was_removed_is_not_made_anew_for_nothing(stores: Stores, state: Path) -> None:
    """
    Whoever removes the state directory is rid of it, where nothing is owed.
    """
    decide(stores.get(""), "d1")
    shutil.rmtree(state)

    stores.pay()

    assert not state.exists()


@pytest.fixture(name="place", params=BOTH)
def give_place(request: pytest.FixtureRequest, state: Path) -> Iterator[Place]:
    with a_place(request.param, state) as found:
        yield found


def test_the_fifth_ledger_closes_the_one_that_was_not_asked_for_longest(stores: Stores) -> None:
    """
    It is opened again for the next stop.
    """
    first, *others = ELSEWHERE
    for url in (first, "", *others[:-1], first, others[-1]):
        stores.get(url)

    assert set(stores.opened()) == {first, *others}
    assert stores.get("").error == ""
    assert len(stores.opened()) == MOST_OPEN


def test_what_a_ledger_owes_is_not_lost_to_the_fifth(stores: Stores, place: Place, state: Path) -> None:
    """
    It stays open until it has paid.
    """
    store = stores.get(place.url)
    with place.open() as other, other.write() as transaction:
        if place.url:
            transaction.execute("LOCK TABLE decisions IN ACCESS EXCLUSIVE MODE")
        decide(store, "d1")
        assert stores.owed() == 1
    for url in ELSEWHERE:
        stores.get(url)
    assert place.url in stores.opened()

    pay_all(stores)
    stores.get(ELSEWHERE[0])

    assert lines(state, place.url) == ["d1"]
    assert set(stores.opened()) == set(ELSEWHERE)


def test_a_call_in_flight_while_the_fifth_ledger_is_opened_is_written(
    stores: Stores, place: Place, state: Path
) -> None:
    """
    Its own was closed, and is opened again for it.
    """
    store = stores.get(place.url)
    for url in ELSEWHERE:
        stores.get(url)

    settle(store, "c1")
    decide(store, "d1")
    assert stores.owed() == 2
    pay_all(stores)

    assert lines(state, place.url) == ["d1", "c1"]


def test_stops_that_find_a_store_that_cannot_be_opened_do_not_queue_up(stores: Stores, state: Path) -> None:
    """
    Twenty at once, on a new file that another process holds: together they wait for it about once.
    """
    state.mkdir()
    with closing(sqlite3.connect(state / FILE_NAME, isolation_level=None)) as other:
        other.execute("CREATE TABLE theirs (id)")
        with locked(state):
            started = time.monotonic()
            found: list[Store] = []
            threads = [threading.Thread(target=lambda: found.append(stores.get(""))) for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            lasted = time.monotonic() - started

    assert len(found) == 20
    assert all("locked" in store.error and store.counts is None for store in found)
    assert lasted < 20 * BUSY_TIMEOUT_S / 4


def test_a_store_that_hangs_when_it_is_opened_holds_up_no_other(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Ledgers at other addresses are given meanwhile, and counted.
    """
    begun, may_end = threading.Event(), threading.Event()

    def hang(folder: str, url: str, **options: bool) -> Database:
        if not url:
            begun.set()
            assert may_end.wait(30)
        return open_ledger_store(folder, url)

    monkeypatch.setattr("turngate.stopgate.stores.open_ledger_store", hang)
    first = threading.Thread(target=stores.get, args=("",))
    first.start()
    assert begun.wait(30)

    assert stores.get(ELSEWHERE[0]).error == ""
    assert stores.owed() == 0

    may_end.set()
    first.join()
    assert set(stores.opened()) == {"", ELSEWHERE[0]}
