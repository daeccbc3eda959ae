"""
What the ledger and the count of continuations ask of a database, whichever it is.

SQL is written once, with `?` for values, in what SQLite 3.24 and PostgreSQL 12 both take. A PostgreSQL transaction reads what
others commit meanwhile (READ COMMITTED), so that whoever decides by what it read says what it must be `alone` with.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self


class StoreError(Exception):
    """
    The store cannot be opened, read or written; the text is one line that names it.
    """


class BadValue(StoreError):
    """
    The store works, and takes none of these values: trying again is no use.
    """


class Result(Protocol):
    """
    What a statement did or found.
    """

    @property
    def rowcount(self) -> int:
        """
        Give the number of rows that were changed.
        """
        ...

    def fetchone(self) -> Any:
        """
        Give the next row, or None.
        """
        ...

    def fetchall(self) -> list[Any]:
        """
        Give all rows that are left.
        """
        ...


class Transaction(Protocol):
    """
    A transaction under way.
    """

    def execute(self, sql: str, values: Sequence[object] = (), /) -> Result:
        """
        Run one statement.
        """
        ...


class Store(Protocol):
    """
    An open database that threads may share. Raises StoreError and nothing else.
    """

    @property
    def path(self) -> str:
        """
        Give the name that messages call it by: a file, or an address without user, password and options.
        """
        ...

    def write(
        self, *, durable: bool = False, wait_s: float | None = None, alone: str = "", settled: Sequence[str] = ()
    ) -> AbstractContextManager[Transaction]:
        """
        Run the block as one transaction, and commit it at the block's end.

        With `durable` a committed transaction survives the death of the machine, for the price of one fsync. Without, that
        of our process; a PostgreSQL that dies may lose what was committed within the last second. `wait_s`: a shorter wait
        for others than the store's own. `alone`: no other transaction that says the same word runs between this one's start
        and its end. `settled`: tables to which no other transaction writes from this one's start to its end.
        """
        ...

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """
        Give all rows of a query.
        """
        ...

    def checkpoint(self) -> None:
        """
        Do the upkeep that an owner has taken over from the writers; nothing where there is none.
        """
        ...

    def scrub(self) -> bool:
        """
        Clear the files of what was deleted, and say whether nothing of it is left in them; others wait while it runs.

        A server's own logs and copies keep what they hold.
        """
        ...

    def is_lost(self) -> bool:
        """
        Say whether what was opened is gone or was replaced, so that nobody else will ever read what is written here.
        """
        ...

    def close(self) -> None:
        """
        Close it; closing twice does no harm.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def one_line(text: str) -> str:
    """
    Give a text without line breaks and runs of white space.
    """
    return " ".join(text.split())
