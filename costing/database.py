"""
The store: one SQLite file in the state directory, private to its user, used by many processes at once.

Knows how the file is opened, shared, migrated and protected, and nothing of what the tables mean. Every failure is a
`StoreError`. This file is on the hook's way: `sqlite3` is its only costly import, `pathlib` would be another.
"""

# ruff: noqa: PTH101, PTH103, PTH116, PTH208
from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, Final, Self

FILE_NAME: Final = "turngate.db"
SCHEMA: Final = 1
"""The number of the last migration; `schema_<number>.sql` holds each."""

_OUR_FILES: Final = ("turngate", "scripted")
"""How the names of all files begin that may stand in a state directory."""

_FOREIGN: Final = (sqlite3.Error, OSError, UnicodeError, OverflowError)


class StoreError(Exception):
    """
    The store cannot be opened, read or written; the text is one line that names the file.
    """


class Database:
    """
    An open store. Threads may share one; it does their work one after the other.
    """

    def __init__(self, path: str, connection: sqlite3.Connection, busy_timeout_s: float = 1.0) -> None:
        self.path: Final = path
        self._busy_timeout_s: Final = busy_timeout_s
        self._connection: Final = connection
        self._lock: Final = RLock()

    @contextmanager
    def write(self, *, durable: bool = False, wait_s: float | None = None) -> Generator[sqlite3.Connection]:
        """
        Run the block as one transaction that no other process can come between, and commit it at the block's end.

        A committed transaction survives the death of the process. With `durable` it also survives the death of the
        machine, for the price of one fsync: that is for the count of continuations, where a lost line could hold a turn
        again. The ledger's lines do without. `wait_s`: a shorter wait for other processes than the store's own.
        """
        with self._lock, _store_errors(self.path):
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with self._waiting(wait_s):
                self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """
        Give all rows of a query.
        """
        with self._lock, _store_errors(self.path):
            return self._connection.execute(sql, tuple(values)).fetchall()

    def close(self) -> None:
        """
        Close the file; closing twice does no harm.
        """
        with self._lock, suppress(sqlite3.Error):
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _waiting(self, wait_s: float | None) -> Generator[None]:
        if wait_s is None:
            yield
            return

        shorter_s = min(wait_s, self._busy_timeout_s)
        self._connection.execute(f"PRAGMA busy_timeout = {round(shorter_s * 1000)}")
        try:
            yield
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {round(self._busy_timeout_s * 1000)}")

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def open_database(folder: str | os.PathLike[str], *, busy_timeout_s: float = 1.0) -> Database:
    """
    Open the store in a folder, and make folder, file and tables where they are missing.

    Each statement waits at most `busy_timeout_s` for other processes. Raises StoreError and nothing else.
    """
    path = os.path.join(os.fspath(folder), FILE_NAME)
    with _store_errors(path):
        _make_private(path)
        connection = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)

    connection.text_factory = _text
    database = Database(path, connection, busy_timeout_s)
    try:
        _migrate(database, busy_timeout_s)
    except BaseException:
        database.close()
        raise

    return database


def _make_private(path: str) -> None:
    if "\0" in path:
        raise StoreError(f"{_one_line(path)}: a NUL in the path")

    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _close_folder(folder)
    with suppress(FileExistsError):
        # Never opened again by us once it exists: closing a descriptor of the file drops SQLite's locks on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{_one_line(path)}: not a file")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise StoreError(f"{_one_line(path)}: belongs to another user")
    if found.st_mode & 0o077:
        _tighten(path)


def _close_folder(folder: str) -> None:
    """
    Close a folder of ours to others. One that holds anything else, or is meant to be shared, keeps its mode.
    """
    found = os.stat(folder)
    if not found.st_mode & 0o077 or found.st_mode & stat.S_ISVTX:
        return
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return
    with suppress(OSError):  # the files in it are private all the same
        if all(name.startswith(_OUR_FILES) for name in os.listdir(folder)):
            os.chmod(folder, 0o700)


def _tighten(path: str) -> None:
    # SQLite gives the files beside the database the database's own mode, but only when it makes them.
    for name in (path, path + "-wal", path + "-shm"):
        with suppress(FileNotFoundError):
            os.chmod(name, 0o600)


def _migrate(database: Database, busy_timeout_s: float) -> None:
    found = _version(database)
    if found > SCHEMA:
        raise StoreError(
            f"{_one_line(database.path)}: schema {found} is newer than this turngate knows ({SCHEMA}); update turngate"
        )
    if found == SCHEMA:
        return

    _switch_to_wal(database, busy_timeout_s)
    with database.write(durable=True) as connection:
        for number in range(_version(database) + 1, SCHEMA + 1):
            for statement in _statements(number):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")


def _version(database: Database) -> int:
    return database.rows("PRAGMA user_version")[0][0]


def _switch_to_wal(database: Database, busy_timeout_s: float) -> None:
    # SQLite does not wait here when two processes switch at once, so the wait is ours.
    give_up_at = time.monotonic() + busy_timeout_s
    while True:
        try:
            database.rows("PRAGMA journal_mode = WAL")
            return
        except StoreError as exc:
            if not _is_busy(exc.__cause__) or time.monotonic() >= give_up_at:
                raise
        time.sleep(0.005)


def _text(stored: bytes) -> str:
    # A damaged text must not take the rows around it away.
    return stored.decode("utf-8", "replace")


def _is_busy(error: BaseException | None) -> bool:
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _statements(number: int) -> list[str]:
    with open(os.path.join(os.path.dirname(__file__), f"schema_{number}.sql"), encoding="utf-8") as file:
        return [statement for statement in file.read().split(";\n") if statement.strip()]


@contextmanager
def _store_errors(path: str) -> Generator[None]:
    try:
        yield
    except _FOREIGN as exc:
        raise StoreError(f"{_one_line(path)}: {_one_line(_reason(exc))}") from exc


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) or type(error).__name__


def _one_line(text: str) -> str:
    return " ".join(text.split())
