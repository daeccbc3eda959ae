"""
A store that stays while its database comes and goes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from turngate.costing.database import FILE_NAME, open_database
from turngate.costing.reopened_store import ReopenedStore
from turngate.costing.store import Store, StoreError

from .places import Place

NOTICE = "INSERT INTO notices (session_id, kind, at) VALUES ('s', ?, '')"


class Opening:
    """
    Opens a database, or fails as long as there is a reason to, and counts how often it was asked.
    """

    def __init__(self, open_database: Callable[[], Store]) -> None:
        self.fails = ""
        self.times = 0
        self._open_database = open_database

    def __call__(self) -> Store:
        self.times += 1
        if self.fails:
            raise StoreError(self.fails)
        return self._open_database()


def note(store: Store, kind: str) -> None:
    with store.write() as transaction:
        transaction.execute(NOTICE, (kind,))


def kinds(store: Store) -> list[str]:
    return [kind for (kind,) in store.rows("SELECT kind FROM notices ORDER BY kind")]


def in_threads(count: int, work: Callable[[], str]) -> list[str]:
    found: list[str] = []
    all_there = threading.Barrier(count)

    def run() -> None:
        all_there.wait()
        found.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_it_is_closed_until_it_is_opened_and_can_be_closed_and_opened_again(place: Place) -> None:
    """
    While there is no database, each use says so; what was written before is there afterwards.
    """
    with ReopenedStore(place.open) as store:
        for _ in range(2):
            assert (store.is_open, store.is_lost()) == (False, True)
            for use in (lambda: kinds(store), lambda: note(store, "lost")):
                with pytest.raises(StoreError, match="not open"):
                    use()
            store.checkpoint()

            assert store.reopen() == ""
            assert (store.is_open, store.is_lost()) == (True, False)
            note(store, f"{len(kinds(store))}")
            store.close()

        store.reopen()
        assert kinds(store) == ["0", "1"]


def test_a_database_that_is_there_is_not_opened_again(place: Place) -> None:
    """
    Whoever comes uses the one that is open.
    """
    opening = Opening(place.open)
    with ReopenedStore(opening) as store:
        assert in_threads(20, store.reopen) == [""] * 20

    assert opening.times == 1


def test_a_database_that_was_lost_is_replaced_when_somebody_asks(tmp_path: Path) -> None:
    """
    Until then what is written fails, and nobody takes it for kept; afterwards the new file has it.
    """
    with ReopenedStore(lambda: open_database(tmp_path)) as store:
        store.reopen()
        for path in tmp_path.glob("turngate.db*"):
            path.unlink()

        with pytest.raises(StoreError, match="was removed or replaced"):
            note(store, "lost")
        assert store.reopen() == ""
        note(store, "kept")

        with open_database(tmp_path) as other:
            assert kinds(other) == ["kept"]


def test_a_database_that_was_lost_and_cannot_be_opened_again_is_read_no_more(tmp_path: Path) -> None:
    """
    The reason is given by each use, and as its name.
    """
    opening = Opening(lambda: open_database(tmp_path))
    with ReopenedStore(opening) as store:
        store.reopen()
        assert store.path == str(tmp_path / FILE_NAME)
        (tmp_path / FILE_NAME).unlink()
        opening.fails = "no disk"

        assert store.reopen() == store.path == "no disk"
        with pytest.raises(StoreError, match="no disk"):
            kinds(store)


def test_of_all_who_come_at_once_one_tries_to_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Its failure is that of the others, and of all who come soon after; later, and for whoever will not wait, it is tried again.
    """
    monkeypatch.setattr("turngate.costing.reopened_store.FAILED_S", 3600)
    opening = Opening(lambda: open_database(tmp_path))
    with ReopenedStore(opening) as store:
        opening.fails = "no disk"
        assert in_threads(20, store.reopen) == ["no disk"] * 20
        assert opening.times == 1

        opening.fails = "still no disk"
        assert store.reopen() == "no disk"
        assert store.reopen(at_once=True) == store.reopen() == "still no disk"
        assert opening.times == 2

        opening.fails = ""
        monkeypatch.setattr("turngate.costing.reopened_store.FAILED_S", 0)
        assert store.reopen() == ""


@pytest.mark.parametrize("failed_before", [False, True])
def test_an_opening_that_hangs_holds_up_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed_before: bool
) -> None:
    """
    The others wait for it a little, and not at all where it has failed before; when it ends, the store is open.
    """
    monkeypatch.setattr("turngate.costing.reopened_store.OPENING_S", 60 if failed_before else 0.01)
    begun, may_end = threading.Event(), threading.Event()

    def hang() -> Store:
        begun.set()
        assert may_end.wait(10)
        return open_database(tmp_path)

    opening = Opening(hang)
    with ReopenedStore(opening) as store:
        if failed_before:
            opening.fails = "no disk"
            store.reopen()
            opening.fails = ""
        first = threading.Thread(target=lambda: store.reopen(at_once=True))
        first.start()
        assert begun.wait(30)

        assert store.reopen() == ("no disk" if failed_before else "the store is still being opened")

        may_end.set()
        first.join()
        assert store.reopen() == ""
    assert opening.times == 1 + failed_before
