"""
A file that one long-lived owner shares between its threads, and how long they wait.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import turngate.costing.database
from turngate.costing.database import FILE_NAME, Database, open_database
from turngate.costing.store import StoreError

NOTICE = "INSERT INTO notices (session_id, kind, at) VALUES ('s', ?, '')"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(tmp_path / "state", busy_timeout_s=0.5, checkpoints=False) as database:
        yield database


def note(database: Database, kind: str) -> None:
    with database.write() as connection:
        connection.execute(NOTICE, (kind,))


def kinds(database: Database) -> list[str]:
    return [kind for (kind,) in database.rows("SELECT kind FROM notices ORDER BY kind")]


def in_threads(count: int, database: Database) -> list[str]:
    """
    Write from so many threads at once, and give the errors.
    """
    errors: list[str] = []

    def work(number: int) -> None:
        try:
            note(database, str(number))
        except StoreError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_a_thread_waits_for_the_others_longer_than_for_other_processes(database: Database) -> None:
    """
    Threads that write all get their turn, although together they take longer than a lock would be waited for.
    """
    errors: list[list[str]] = []
    others = threading.Thread(target=lambda: errors.append(in_threads(3, database)))

    with database.write():
        others.start()
        others.join(0.7)
        assert others.is_alive()
    others.join()

    assert errors == [[]]
    assert kinds(database) == ["0", "1", "2"]


def test_a_thread_waits_for_the_others_not_for_ever(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    One that never ends lets the others fail, in one line.
    """
    monkeypatch.setattr(turngate.costing.database, "QUEUE_S", 0.1)
    with database.write():
        errors = in_threads(3, database)

    assert len(errors) == 3
    assert all(f"{FILE_NAME}: busy: other threads" in error for error in errors)
    assert in_threads(3, database) == []


def test_sixty_four_threads_that_find_a_locked_file_do_not_queue_up(database: Database) -> None:
    """
    Another process holds it: all give up after one busy timeout, not one after the other.
    """
    holder = sqlite3.connect(database.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    started = time.monotonic()

    errors = in_threads(64, database)
    lasted = time.monotonic() - started
    holder.execute("ROLLBACK")
    holder.close()

    assert len(errors) == 64
    assert lasted < 64 * 0.5 / 4


def test_readers_wait_for_no_writer(database: Database) -> None:
    """
    What was committed is read beside a transaction of another thread, which itself sees what it wrote.
    """
    note(database, "before")
    found: list[list[str]] = []
    reader = threading.Thread(target=lambda: found.append(kinds(database)))

    with database.write() as connection:
        connection.execute(NOTICE, ("under way",))
        reader.start()
        reader.join()
        assert kinds(database) == ["before", "under way"]

    assert found == [["before"]]


def test_a_file_that_was_removed_or_replaced_is_lost(database: Database) -> None:
    """
    Its owner can tell, and a second connection never reads another file than the first.
    """
    file = Path(database.path)
    assert not database.is_lost()

    kept = file.rename(file.with_name("kept"))
    assert database.is_lost()
    shutil.copy(kept, file)
    assert database.is_lost()
    with pytest.raises(StoreError, match="was removed or replaced"):
        database.checkpoint()

    kept.rename(file)
    assert not database.is_lost()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_what_goes_into_a_file_that_was_lost_is_not_written(database: Database, is_replaced: bool) -> None:
    """
    The write fails, also where the file is lost under it, so that nobody takes for kept what nobody else will read.
    """
    file = Path(database.path)

    def lose() -> Path:
        kept = file.rename(file.with_name("kept"))
        if is_replaced:
            shutil.copy(kept, file)
        return kept

    def write() -> None:
        with database.write() as connection:
            connection.execute(NOTICE, ("in the middle",))
            kept.append(lose())

    kept: list[Path] = []
    with pytest.raises(StoreError, match="was removed or replaced"):
        write()
    with pytest.raises(StoreError, match="was removed or replaced"):
        note(database, "after")

    kept[0].rename(file)
    note(database, "there again")


def test_an_owner_that_wrote_nothing_does_no_checkpoint(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It opens no file; the first one is for what owners before it left, and what was written beside a reader is tried again.
    """
    opened: list[str] = []
    monkeypatch.setattr(
        "turngate.costing.database.connected",
        lambda path, wait_s, _options: opened.append(path) or sqlite3.connect(path, timeout=wait_s),
    )

    def times(checkpoints: int) -> int:
        before = len(opened)
        for _ in range(checkpoints):
            database.checkpoint()
        return len(opened) - before

    assert times(3) == 1
    note(database, "first")
    database.rows("SELECT 1")
    assert times(3) == 1

    with closing(sqlite3.connect(database.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM notices").fetchall()
        note(database, "second")
        assert times(3) == 3
    assert times(3) == 1


def test_an_owner_that_took_over_the_checkpoints_does_them(database: Database, tmp_path: Path) -> None:
    """
    Until then what is written stands in the log alone; afterwards the database has it without its log.
    """

    def in_the_file_alone() -> int:
        copy = tmp_path / "copy"
        shutil.copy(database.path, copy)
        with sqlite3.connect(copy) as alone:
            (count,) = alone.execute("SELECT COUNT(*) FROM notices").fetchone()
        alone.close()
        return count

    database.checkpoint()
    for number in range(3):
        note(database, f"{number}" + "x" * 3_000_000)  # more than a checkpoint of SQLite's own would leave

    assert in_the_file_alone() == 0
    database.checkpoint()
    assert in_the_file_alone() == 3


def test_the_log_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Beside others that never pause a checkpoint is never complete; where the log is long, it waits for them once.
    """
    monkeypatch.setattr("turngate.costing.database.MOST_FRAMES", 100)
    with open_database(tmp_path, busy_timeout_s=30, checkpoints=False) as database:
        log = Path(f"{database.path}-wal")
        reader = sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)
        note(database, "first")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM notices").fetchall()
        note(database, "x" * 1_000_000)
        long = log.stat().st_size
        threading.Timer(0.1, lambda: reader.execute("COMMIT")).start()

        database.checkpoint()
        note(database, "last")

        assert log.stat().st_size == long
        reader.close()


def test_without_a_word_sqlite_does_its_checkpoints_itself(tmp_path: Path) -> None:
    """
    A hook's process lives too short to care for them.
    """
    with open_database(tmp_path) as database:
        assert database.rows("PRAGMA wal_autocheckpoint") == [(1000,)]
    with open_database(tmp_path, checkpoints=False) as database:
        assert database.rows("PRAGMA wal_autocheckpoint") == [(0,)]
