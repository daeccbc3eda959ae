"""
A store for many readers at once: statements that do not wait for each other, on few connections.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import pytest

from turngate.costing.dashboard.pooled_store import PooledStore
from turngate.costing.database import Database, open_database
from turngate.costing.store import Store, StoreError

PATIENCE_S = 20.0


class Opened:
    """
    Opens databases of a folder, and knows them; a statement `together` runs once so many of them run at once.
    """

    def __init__(self, folder: Path, together: int = 1) -> None:
        self.folder = folder
        self.databases: list[Database] = []
        self._meeting = Barrier(together)
        self._lock = Lock()

    def __call__(self) -> Store:
        database = open_database(self.folder)
        with self._lock:
            self.databases.append(database)
        rows = database.rows

        def met(sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
            if sql == "SELECT 'together'":
                self._meeting.wait(PATIENCE_S)
            return rows(sql, values)

        database.rows = met
        return database


Pool = Callable[[int], tuple[PooledStore, Opened]]


@pytest.fixture(name="pool")
def _pool(tmp_path: Path) -> Iterator[Pool]:
    made: list[PooledStore] = []

    def pool(together: int) -> tuple[PooledStore, Opened]:
        opened = Opened(tmp_path, together)
        made.append(PooledStore(opened))
        assert made[-1].reopen() == ""
        return made[-1], opened

    yield pool
    for store in made:
        store.close()


def test_statements_run_beside_each_other(pool: Pool) -> None:
    """
    Three of them wait for each other's presence, which they would in vain on one connection.
    """
    store, _ = pool(3)
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(store.rows, ["SELECT 'together'"] * 3))

    assert found == [[("together",)]] * 3


def test_connections_are_few(pool: Pool) -> None:
    """
    However many ask, there are three readers and a writer; and who is alone needs one reader.
    """
    store, opened = pool(1)
    store.rows("SELECT 1")
    store.rows("SELECT 1")
    alone = len(opened.databases)
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(store.rows, ["SELECT 1"] * 200))

    assert alone == 2
    assert found == [[(1,)]] * 200
    assert len(opened.databases) <= 4


def test_what_is_written_is_read_by_all(pool: Pool) -> None:
    """
    Writers have a connection of their own, and readers see what they committed.
    """
    store, _ = pool(1)
    before = store.rows("SELECT COUNT(*) FROM labels")
    with store.write() as transaction:
        transaction.execute("INSERT INTO labels (decision_id, label, at, note) VALUES ('d1', 'none', '2026', '')")

    assert (before, store.rows("SELECT COUNT(*) FROM labels")) == ([(0,)], [(1,)])


def test_a_closed_store_keeps_no_connection(pool: Pool) -> None:
    """
    What is in use at its end is closed when it is free, and nothing is opened again.
    """
    store, opened = pool(2)
    with ThreadPoolExecutor(2) as threads:
        busy = threads.submit(store.rows, "SELECT 'together'")
        assert store.rows("SELECT 'together'") == [("together",)]
        assert busy.result(PATIENCE_S) == [("together",)]
    with store._reader() as reader:  # pyright: ignore[reportPrivateUsage]
        reader.reopen()
        store.close()
        assert reader.rows("SELECT 2") == [(2,)]

    for database in opened.databases:
        with pytest.raises(StoreError, match="closed"):
            database.rows("SELECT 1")
    with pytest.raises(StoreError, match="not open"):
        store.rows("SELECT 1")


def test_a_ledger_that_was_replaced_is_opened_anew(pool: Pool, tmp_path: Path) -> None:
    """
    Every connection follows, and none reads what nobody else does.
    """
    store, _ = pool(1)
    with store.write() as transaction:
        transaction.execute("INSERT INTO labels (decision_id, label, at, note) VALUES ('d1', 'none', '2026', '')")
    assert store.rows("SELECT COUNT(*) FROM labels") == [(1,)]
    for file in tmp_path.glob("turngate.db*"):
        file.unlink()

    assert store.is_lost()
    assert store.reopen() == ""
    assert store.rows("SELECT COUNT(*) FROM labels") == [(0,)]


def test_a_store_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    """
    Each use fails for that reason.
    """
    (tmp_path / "turngate.db").mkdir()
    store = PooledStore(lambda: open_database(tmp_path))

    assert "not a file" in store.reopen()
    with pytest.raises(StoreError, match="not a file"):
        store.rows("SELECT 1")
