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
from contextlib import closing, contextmanager, suppress
from threading import Lock, RLock
from typing import Any, Final, Self

from .schema import SCHEMA, newer_schema, statements
from .store import BadValue, StoreError, one_line

FILE_NAME: Final = "turngate.db"
MOST_FRAMES: Final = 16_000
"""Pages in the write-ahead log, 64 MB, above which a checkpoint makes the writers wait once, so that the log begins anew."""

QUEUE_S: Final = 5.0
"""For the other threads of this process: they work, each for a millisecond or so, and what they wait for is counted apart."""

_OUR_FILES: Final = ("turngate", "scripted", "lab-")
"""How the names of all files begin that may stand in a state directory."""

_BAD_VALUES: Final = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    UnicodeError,
    OverflowError,
)
_FOREIGN: Final = (sqlite3.Error, OSError, *_BAD_VALUES)


class Database:
    """
    An open store. Threads may share one: writers come one after the other, and readers wait for none of them.

    Whoever waits for another process waits `busy_timeout_s`, the time included in which another thread waited for it in vain.
    """

    def __init__(
        self, path: str, connection: sqlite3.Connection, busy_timeout_s: float = 1.0, *, options: str = ""
    ) -> None:
        self.path: Final = path
        self._options: Final = options
        self._busy_timeout_s: Final = busy_timeout_s
        self._connection: Final = connection
        self._lock: Final = RLock()
        self._reader: sqlite3.Connection | None = None
        self._reader_lock: Final = Lock()
        self._file: Final = _identity(path)
        self._is_set: Final[dict[str, str]] = {}
        self._refused_at = 0.0
        """When another process last kept a writer out for longer than it would wait."""
        self._commits = 1
        """The first are those of owners before."""
        self._moved = 0
        """How many of them the last checkpoint found, and moved whole."""

    @contextmanager
    def write(
        self,
        *,
        durable: bool = False,
        wait_s: float | None = None,
        alone: str = "",  # noqa: ARG002
        settled: Sequence[str] = (),  # noqa: ARG002
    ) -> Generator[sqlite3.Connection]:
        """
        Run the block as one transaction that nobody else can come between, and commit it at the block's end.

        A committed transaction survives the death of the process. With `durable` it also survives the death of the
        machine, for the price of one fsync: that is for the count of continuations, where a lost line could hold a turn
        again. The ledger's lines do without. `wait_s`: a shorter wait for others than the store's own. `alone` and
        `settled` are for other databases: here every transaction is. What went into a file that is lost was not written: it fails.
        """
        asked_at = time.monotonic()
        queue_s, locked_s = QUEUE_S, self._busy_timeout_s
        if wait_s is not None:
            queue_s = locked_s = max(0.0, min(wait_s, self._busy_timeout_s))
        with self._in_turn(self._lock, queue_s), _store_errors(self.path):
            self._set("synchronous", "FULL" if durable else "NORMAL")
            # The threads before this one have waited for the same lock already, if there was one.
            waited_s = time.monotonic() - asked_at if self._refused_at > asked_at else 0.0
            self._begin(max(0.0, locked_s - waited_s))
            try:
                yield self._connection
                self._connection.execute("COMMIT")
                self._commits += 1
            except BaseException:
                self._roll_back()
                raise
            self._check_is_there()

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """
        Give all rows of a query.
        """
        # The writers' connection, where no other thread writes: most owners need no second one.
        if self._lock.acquire(blocking=False):
            try:
                self._set("busy_timeout", str(round(self._busy_timeout_s * 1000)))
                return self._rows(self._connection, sql, values)
            finally:
                self._lock.release()

        with self._in_turn(self._reader_lock, QUEUE_S):
            return self._rows(self._reading(), sql, values)

    def checkpoint(self) -> None:
        """
        Move what stands in the write-ahead log into the database, beside all who read and write; nothing where nothing came.

        For an owner that opened it with `checkpoints=False`, about once a second, in a thread of its own.
        """
        commits = self._commits
        if commits == self._moved:
            return

        with _store_errors(self.path), closing(self._connect()) as connection:
            _, frames, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if frames > MOST_FRAMES:
                # Writers that never pause would let the log grow without end.
                connection.execute("PRAGMA wal_checkpoint(RESTART)")
        if moved == frames:
            self._moved = commits

    def scrub(self) -> bool:
        """
        Write the file anew, without what was deleted, and empty the write-ahead log; False where a reader still needs it.
        """
        # New pages would be filled with what was in memory before.
        self.rows("PRAGMA secure_delete = ON")
        self.rows("VACUUM")
        is_busy, *_ = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        return not is_busy

    def is_lost(self) -> bool:
        """
        Say whether the file was removed or replaced since it was opened: nobody else reads what is written here.
        """
        return _identity(self.path) != self._file

    def close(self) -> None:
        """
        Close the file; closing twice does no harm.
        """
        with self._lock, self._reader_lock, suppress(sqlite3.Error):
            if self._reader is not None:
                self._reader.close()
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _in_turn(self, lock: Any, wait_s: float) -> Generator[None]:
        if not lock.acquire(timeout=wait_s):
            raise StoreError(f"{one_line(self.path)}: busy: other threads have written for {wait_s:.1f} s")
        try:
            yield
        finally:
            lock.release()

    def _begin(self, wait_s: float) -> None:
        self._set("busy_timeout", str(round(wait_s * 1000)))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            self._refused_at = time.monotonic()
            raise

    def _set(self, name: str, value: str) -> None:
        # Of a hundred statements in a row these would be half.
        if self._is_set.get(name) != value:
            with _store_errors(self.path):
                self._connection.execute(f"PRAGMA {name} = {value}")
            self._is_set[name] = value

    def _rows(self, connection: sqlite3.Connection, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        with _store_errors(self.path):
            return connection.execute(sql, tuple(values)).fetchall()

    def _reading(self) -> sqlite3.Connection:
        if self._reader is None:
            self._reader = self._connect()
        return self._reader

    def _connect(self) -> sqlite3.Connection:
        self._check_is_there()
        return connected(self.path, self._busy_timeout_s, self._options)

    def _check_is_there(self) -> None:
        if self.is_lost():
            raise StoreError(f"{one_line(self.path)}: was removed or replaced since it was opened")

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def open_database(folder: str | os.PathLike[str], *, busy_timeout_s: float = 1.0, checkpoints: bool = True) -> Database:
    """
    Open the store in a folder, and make folder, file and tables where they are missing.

    Each statement waits at most `busy_timeout_s` for other processes. Without `checkpoints` no write pauses to move the
    write-ahead log into the database: the owner calls `checkpoint()`. Raises StoreError and nothing else.
    """
    path = os.path.join(os.fspath(folder), FILE_NAME)
    with _store_errors(path):
        _make_private(path)
    connection = connected(path, busy_timeout_s)

    database = Database(path, connection, busy_timeout_s)
    try:
        _migrate(database, busy_timeout_s)
        if not checkpoints:
            database.rows("PRAGMA wal_autocheckpoint = 0")
    except BaseException:
        database.close()
        raise

    return database


def connected(path: str, busy_timeout_s: float, options: str = "") -> sqlite3.Connection:
    """
    Connect to the file; `options` are those of SQLite's URLs, as `mode=ro`. Raises StoreError.
    """
    name = path
    if options:
        from urllib.parse import quote  # which the hook does without

        name = f"file:{quote(os.fsencode(path))}?{options}"
    with _store_errors(path):
        connection = sqlite3.connect(
            name, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False, uri=bool(options)
        )
    connection.text_factory = _text
    return connection


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _make_private(path: str) -> None:
    if "\0" in path:
        raise StoreError(f"{one_line(path)}: a NUL in the path")

    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    _close_folder(folder)
    with suppress(FileExistsError):
        # Never opened again by us once it exists: closing a descriptor of the file drops SQLite's locks on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    found = os.stat(path)
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{one_line(path)}: not a file")
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise StoreError(f"{one_line(path)}: belongs to another user")
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
        raise newer_schema(database.path, found)
    if found == SCHEMA:
        return

    _switch_to_wal(database, busy_timeout_s)
    with database.write(durable=True) as connection:
        for number in range(_version(database) + 1, SCHEMA + 1):
            for statement in statements(number, "sqlite"):
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


@contextmanager
def _store_errors(path: str) -> Generator[None]:
    try:
        yield
    except _FOREIGN as exc:
        kind = BadValue if isinstance(exc, _BAD_VALUES) else StoreError
        raise kind(f"{one_line(path)}: {one_line(_reason(exc))}") from exc


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return str(error) or type(error).__name__
