"""
Lines that could not be written in time: they are written later, once, in their order.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from turngate.costing.database import FILE_NAME, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.owed import MOST_OWED, Owed
from turngate.costing.records import CallEnd, DecisionLine
from turngate.costing.store import BadValue, Store, StoreError, Transaction

from .ledger_lines import NOW, a_start
from .places import Place

LOCK = "UPDATE holds SET reason = reason"


class Holder:
    """
    Somebody who keeps others from writing.
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def __enter__(self) -> None:
        self._store = self._place.open()
        self._writing = self._store.write()
        transaction = self._writing.__enter__()
        if self._place.url:
            transaction.execute("LOCK TABLE decisions, calls, notices IN ACCESS EXCLUSIVE MODE")

    def __exit__(self, *_: object) -> None:
        self._writing.__exit__(None, None, None)
        self._store.close()


@pytest.fixture
def impatient(place: Place) -> Iterator[Ledger]:
    with place.open(busy_timeout_s=5) as store:
        store.rows("SELECT 1")
        yield Ledger(store)


def decide(ledger: Ledger, decision_id: str, wait_s: float = 0.02) -> None:
    ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean", id=decision_id), wait_s=wait_s)


def ids(ledger: Ledger) -> list[str]:
    return [decision.line.id for decision in ledger.decisions()]


def test_a_decision_that_cannot_be_written_is_owed_and_paid(impatient: Ledger, place: Place) -> None:
    """
    While another process holds the store, lines pile up; afterwards one call writes them in the order of their coming.
    """
    with Holder(place):
        for name in ("d1", "d2", "d3"):
            with pytest.raises(StoreError):
                decide(impatient, name)
        assert impatient.pay_owed(wait_s=0.02) == 0
        assert impatient.owed == 3

    assert impatient.pay_owed(wait_s=1) == 3
    assert impatient.owed == impatient.pay_owed() == 0
    assert ids(impatient) == ["d1", "d2", "d3"]


def test_the_next_line_that_can_be_written_pays_what_is_owed(impatient: Ledger, place: Place) -> None:
    """
    Calls and decisions alike, the older before the newer.
    """
    with Holder(place), pytest.raises(StoreError):
        decide(impatient, "d1")

    impatient.settle_call("c1", a_start(), CallEnd("answered"))

    assert impatient.owed == 0
    assert ids(impatient) == ["d1"]
    assert [call.id for call in impatient.calls()] == ["c1"]


def test_a_call_that_is_written_after_its_decision_has_its_human_turn(impatient: Ledger, place: Place) -> None:
    """
    The human turn is known only when the decision is made; a call of another decision keeps its own.
    """
    start = a_start(decision_id="d1")
    with Holder(place), pytest.raises(StoreError):
        impatient.settle_call("c1", start, CallEnd("answered"), wait_s=0.02)

    with place.open(busy_timeout_s=5) as other:
        Ledger(other).record_decision(DecisionLine(NOW, "Stop", "pass_clean", id="d1", human_turn="h1"))
    assert impatient.pay_owed(wait_s=5) == 1
    impatient.settle_call("c2", start, CallEnd("answered"))
    impatient.settle_call("c3", a_start(decision_id="d2", human_turn="h2"), CallEnd("answered"))

    assert [call.start.human_turn for call in impatient.calls()] == ["h1", "h1", "h2"]


def test_a_decision_written_twice_is_one_line(ledger: Ledger) -> None:
    """
    A commit whose answer was lost is done again.
    """
    decide(ledger, "d1", wait_s=1)
    decide(ledger, "d1", wait_s=1)

    assert ids(ledger) == ["d1"]


def test_two_hundred_threads_share_a_ledger_and_lose_nothing(impatient: Ledger, place: Place) -> None:
    """
    They write while the store is held, all pay at once when it is free, and each line is there once.
    """

    def write(number: int) -> None:
        with suppress(StoreError):
            decide(impatient, f"d{number:03}", wait_s=0.0)

    with Holder(place):
        run_all([threading.Thread(target=write, args=(number,)) for number in range(200)])
        assert impatient.owed == 200
    run_all(
        [threading.Thread(target=impatient.pay_owed, args=(5,)) for _ in range(20)]
        + [threading.Thread(target=write, args=(number,)) for number in range(200, 400)]
    )
    while impatient.owed:
        impatient.pay_owed(wait_s=5)

    assert sorted(ids(impatient)) == [f"d{number:03}" for number in range(400)]


def run_all(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_what_is_owed_has_a_bound(tmp_path: Path) -> None:
    """
    The first thousand are kept: memory does not grow while a store is away.
    """
    with open_database(tmp_path) as store, open_database(tmp_path) as other:
        ledger = Ledger(store)
        with other.write():
            for number in range(MOST_OWED + 5):
                with suppress(StoreError):
                    decide(ledger, f"d{number:04}", wait_s=0)

        assert ledger.pay_owed() == MOST_OWED
        assert ids(ledger)[-1] == f"d{MOST_OWED - 1:04}"


def test_a_line_that_no_store_takes_is_not_owed(store: Store) -> None:
    """
    A number beyond 64 bits is an error once, and keeps no other line back.
    """
    ledger = Ledger(store)

    with pytest.raises(BadValue):
        ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean", id="d1", dropped=2**70))

    assert ledger.owed == 0
    decide(ledger, "d2", wait_s=1)
    assert ids(ledger) == ["d2"]


def test_an_owed_line_that_is_refused_later_keeps_no_other_back(tmp_path: Path) -> None:
    """
    Where the store has changed since, the refused line goes and the others are written.
    """

    def note(kind: str, session_id: object = "s") -> None:
        def line(transaction: Transaction) -> None:
            transaction.execute("INSERT INTO notices (session_id, kind, at) VALUES (?, ?, '')", (session_id, kind))

        owed.write_or_owe(line, 0)

    with open_database(tmp_path) as store, sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None) as other:
        owed = Owed(store)
        other.execute("BEGIN IMMEDIATE")
        for kind, session_id in (("first", "s"), ("refused", None), ("last", "s")):
            with pytest.raises(StoreError, match="locked"):
                note(kind, session_id)
        other.execute("COMMIT")

        assert owed.pay(1.0) == 2
        assert store.rows("SELECT kind FROM notices") == [("first",), ("last",)]
    other.close()
