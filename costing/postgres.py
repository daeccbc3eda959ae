"""
The store on PostgreSQL, for several machines: `postgresql://user@host:5432/turngate`, in the schema that comes first there.

The owner of psycopg. Nothing here waits without end for a server that is away or hangs, and no message holds user, password
or options of the URL. A server that could not be reached is left alone for some seconds: a stop pays for it once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from .connections import Connections
from .postgres_dialect import lock_key, numbered, shown_url, spelt, storable_value
from .schema import SCHEMA, newer_schema, statements, tables
from .store import BadValue, StoreError, one_line

_CONNECT_S: Final = 5
"""In the background, for each address. Who waits for it waits no longer than for anything else."""

_MIGRATION_S: Final = 10.0
_SLACK_S: Final = 0.5
"""The server's own limits come first; after this the answer is not waited for."""

_LOCKS: Final = 0x7467
"""The first half of our advisory locks; other programs may have some in the same database."""

_SHOWN: Final = frozenset({"host", "hostaddr", "port", "dbname", "sslmode", "connect_timeout", "target_session_attrs"})
"""Options of a URL whose values may stand in a message of the server."""

_FOREIGN: Final = (psycopg.Error, OSError, UnicodeError, OverflowError)

_T = TypeVar("_T")
_Cursor = psycopg.Cursor[tuple[Any, ...]]


class _NoAnswer(psycopg.OperationalError):
    pass


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """
    A connection that stops waiting for an answer, also where the server's machine is frozen and its timeouts with it.
    """

    answer_within_s = _MIGRATION_S
    used_at = 0.0

    def wait(self, gen: Generator[Any, Any, _T], *args: Any, **kwargs: Any) -> _T:
        return super().wait(_until(time.monotonic() + self.answer_within_s, gen), *args, **kwargs)

    def __repr__(self) -> str:
        return "<a connection of turngate's store>"


class PostgresDatabase:
    """
    A store on PostgreSQL that threads share. It connects, and makes or migrates the tables, when it is first used.

    Each operation waits `busy_timeout_s` for a connection and for others' locks; each statement may take a little longer.
    Raises StoreError and nothing else.
    """

    def __init__(self, url: str, busy_timeout_s: float = 1.0) -> None:
        self.path: Final = shown_url(url)
        self._wait_s: Final = busy_timeout_s
        self._conninfo, self._secrets = self._read(url)
        self._is_migrated = False
        self._connections: Final = Connections(self.path, self._connect, busy_timeout_s)

    @contextmanager
    def write(
        self, *, durable: bool = False, wait_s: float | None = None, alone: str = "", settled: Sequence[str] = ()
    ) -> Generator[PostgresTransaction]:
        """
        Run the block as one transaction, and commit it at the block's end.

        `durable` is `synchronous_commit`; see `Store.write`.
        """
        wait_s = self._wait_s if wait_s is None else max(0.0, min(wait_s, self._wait_s))
        begin = _begin(durable, wait_s, alone, settled)
        with self._errors(), self._connected(wait_s, lambda connection: connection.execute(begin)) as (connection, _):
            yield PostgresTransaction(connection)
            if connection.execute(b"COMMIT").statusmessage != "COMMIT":
                raise StoreError(f"{self.path}: the transaction was rolled back")

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """
        Give all rows of a query.
        """
        with self._errors(), self._connected(self._wait_s, lambda found: _execute(found, sql, values)) as (_, cursor):
            return cursor.fetchall()

    def checkpoint(self) -> None:
        """
        Do nothing: the server does it.
        """

    def scrub(self) -> bool:
        """
        Write the tables anew, each while nobody else uses it; a server's own log and copies keep what they hold.
        """
        with self._errors():
            for table in tables():
                vacuum = f"VACUUM FULL {table}".encode()
                with self._connected(self._wait_s, lambda connection, vacuum=vacuum: connection.execute(vacuum)):
                    pass
        return True

    def is_lost(self) -> bool:
        """
        Give False: a database that is gone is an error of each statement.
        """
        return False

    def close(self) -> None:
        """
        Close all connections; closing twice does no harm.
        """
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _connected(
        self, wait_s: float, start: Callable[[_Connection], _Cursor]
    ) -> Generator[tuple[_Connection, _Cursor]]:
        """
        Give a connection and what its first statement gave.
        """
        give_up_at = time.monotonic() + wait_s
        with self._connections.place(wait_s):
            connection = None
            try:
                connection, cursor = self._started(give_up_at, start)
                yield connection, cursor
            finally:
                if connection is not None:
                    self._give_back(connection)

    def _started(self, give_up_at: float, start: Callable[[_Connection], _Cursor]) -> tuple[_Connection, _Cursor]:
        while (connection := self._connections.idle()) is not None:
            try:
                return connection, start(connection)
            except BaseException as exc:
                is_broken = connection.closed and not isinstance(exc, _NoAnswer)
                self._give_back(connection)
                if not is_broken:
                    raise
                # The server was restarted: nothing of this was done, and the others are broken too.
                self._connections.drop_idle()

        connection = self._connections.new(give_up_at)
        try:
            return connection, start(connection)
        except BaseException:
            self._give_back(connection)
            raise

    def _give_back(self, connection: _Connection) -> None:
        if _status(connection) in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            with suppress(psycopg.Error):
                connection.execute(b"ROLLBACK")

        if _status(connection) == TransactionStatus.IDLE:
            self._connections.keep(connection)
        else:
            connection.close()

    def _connect(self) -> _Connection:
        try:
            connection = _Connection.connect(
                self._conninfo, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        except _FOREIGN as exc:
            raise self._error(exc) from None
        return connection

    def _prepare(self, connection: _Connection) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StoreError(f"{self.path}: the database's encoding is {encoding}: it must be UTF8")
        if not self._is_migrated:
            _migrate(connection, self.path)
            self._is_migrated = True
        limit_ms = _ms(self._wait_s)
        connection.execute(
            f"SET lock_timeout = {limit_ms}; SET statement_timeout = {limit_ms + _ms(_SLACK_S / 2)};"
            " SET idle_in_transaction_session_timeout = 10000".encode()
        )
        connection.answer_within_s = self._wait_s + _SLACK_S

    @contextmanager
    def _errors(self) -> Generator[None]:
        # Not `from` what psycopg says: that names the user.
        try:
            yield
        except _NoAnswer as exc:
            raise self._connections.down(self._error(exc)) from None
        except _FOREIGN as exc:
            raise self._error(exc) from None

    def _error(self, error: Exception) -> StoreError:
        kind = BadValue if _is_about_values(error) else StoreError
        primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
        reason = primary or str(error).strip().split("\n")[0] or type(error).__name__
        return kind(f"{self.path}: {one_line(self._without_secrets(reason))}")

    def _without_secrets(self, text: str) -> str:
        if self._secrets:
            text = re.sub("|".join(rf"(?<!\w){re.escape(secret)}(?!\w)" for secret in self._secrets), "...", text)
        return re.sub(r'\b(user|role) "[^"]*"', r"this \1", text)

    def _read(self, url: str) -> tuple[str, list[str]]:
        try:
            found = conninfo_to_dict(url)
        except (psycopg.Error, ValueError):
            # What libpq says quotes the piece that it cannot read, which may be the password.
            raise StoreError(f"{self.path}: not a URL of PostgreSQL; write @ : / ? # in a password as %XX") from None

        if not str(found.get("port", "1")).replace(",", "").isdigit():
            raise StoreError("ledger.url: no URL of PostgreSQL: its port is no number")

        hidden = [str(value) for name, value in found.items() if name not in _SHOWN and value]
        secrets = {piece for value in hidden for piece in (value, *re.findall(r"\w{3,}", value.replace("-c", " ")))}
        ours: dict[str, Any] = {
            "connect_timeout": _CONNECT_S,
            "fallback_application_name": "turngate",
            "keepalives_idle": 30,
        }
        return make_conninfo("", **{**ours, **found, "client_encoding": "UTF8"}), sorted(secrets, key=len, reverse=True)


class PostgresTransaction:
    """
    A transaction under way on PostgreSQL.
    """

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection: Final = connection

    def execute(self, sql: str, values: Sequence[object] = (), /) -> _Cursor:
        """
        Run one statement.
        """
        return _execute(self._connection, sql, values)


def _execute(connection: psycopg.Connection[tuple[Any, ...]], sql: str, values: Sequence[object]) -> _Cursor:
    return connection.execute(numbered(sql).encode(), [storable_value(value) for value in values] or None)


def _begin(durable: bool, wait_s: float, alone: str, settled: Sequence[str]) -> bytes:
    """
    Give all that comes before a transaction's first statement, to be sent at once.
    """
    steps = [
        "BEGIN ISOLATION LEVEL READ COMMITTED",
        f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}",
        f"SET LOCAL lock_timeout = {_ms(wait_s)}",
    ]
    if alone:
        steps.append(f"SELECT pg_advisory_xact_lock({_LOCKS}, {lock_key(alone)})")
    if settled:
        steps.append(f"LOCK TABLE {', '.join(settled)} IN SHARE MODE")
    return "; ".join(steps).encode()


def _migrate(connection: _Connection, path: str) -> None:
    if _version(connection, path) == SCHEMA:
        return

    limit_ms = _ms(_MIGRATION_S)
    connection.execute(f"BEGIN; SET LOCAL lock_timeout = {limit_ms}; SET LOCAL statement_timeout = {limit_ms}".encode())
    connection.execute(f"SELECT pg_advisory_xact_lock({_LOCKS}, {lock_key('migration')})".encode())
    for number in range(_version(connection, path) + 1, SCHEMA + 1):
        for statement in statements(number, "postgres"):
            connection.execute(spelt(statement).encode())
    connection.execute(b"CREATE TABLE IF NOT EXISTS turngate_schema (version BIGINT NOT NULL)")
    connection.execute(b"DELETE FROM turngate_schema")
    _execute(connection, "INSERT INTO turngate_schema (version) VALUES (?)", (SCHEMA,))
    connection.execute(b"COMMIT")


def _version(connection: _Connection, path: str) -> int:
    # A look into the catalogue: `to_regclass` may remember from before the wait for the lock that there is none.
    tables = "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'turngate_schema'"
    if not connection.execute(tables.encode()).fetchall():
        return 0

    found = int(connection.execute(b"SELECT max(version) FROM turngate_schema").fetchall()[0][0] or 0)
    if found > SCHEMA:
        raise newer_schema(path, found)
    return found


def _status(connection: _Connection) -> TransactionStatus:
    return connection.info.transaction_status


def _is_about_values(error: Exception) -> bool:
    # Class 54: a text too long for an index, or for anything.
    state = error.sqlstate or "" if isinstance(error, psycopg.Error) else ""
    return isinstance(error, psycopg.DataError | psycopg.IntegrityError | UnicodeError) or state.startswith("54")


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))  # 0 would be no limit


def _until(give_up_at: float, steps: Generator[Any, Any, _T]) -> Generator[Any, Any, _T]:
    """
    Go through the steps of a statement; psycopg asks for the next one at least ten times a second.
    """
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if time.monotonic() >= give_up_at:
                raise _NoAnswer("the server gives no answer")
            wanted = steps.send(ready)
    except StopIteration as end:
        return end.value
