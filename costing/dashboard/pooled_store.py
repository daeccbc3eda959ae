"""
A store for many readers at once: a few connections, of which each statement takes one that is free.

A page that adds up years takes a connection for one statement at a time, and so no other page waits for all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import BoundedSemaphore, Lock
from typing import Any, Final, Self

from ..reopened_store import ReopenedStore
from ..store import Store, StoreError, Transaction

READERS: Final = 3
"""Connections, and statements that run at once: what is left of the machine belongs to the work."""

WAIT_S: Final = 30.0
"""For a connection that is free. Each statement has a limit of its own, where the database knows one."""


class PooledStore:
    """
    Opened as it is used: a page that is alone reads on one connection. Writers have another of their own.
    """

    def __init__(self, open_database: Callable[[], Store], readers: int = READERS) -> None:
        self._open_database: Final = open_database
        self._writer: Final = ReopenedStore(open_database)
        self._turn: Final = BoundedSemaphore(readers)
        self._changing: Final = Lock()
        self._free: Final[list[ReopenedStore]] = []
        self._is_closed = False

    def reopen(self) -> str:
        """
        Open the database where there is none or it was lost, and say why there is none now; empty where there is one.
        """
        return self._writer.reopen()

    @property
    def path(self) -> str:
        """
        Give the name of the database, or why there is none.
        """
        return self._writer.path

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """
        Give all rows of a query.
        """
        with self._reader() as reader:
            if error := reader.reopen():
                raise StoreError(error)
            return reader.rows(sql, values)

    def write(
        self, *, durable: bool = False, wait_s: float | None = None, alone: str = "", settled: Sequence[str] = ()
    ) -> AbstractContextManager[Transaction]:
        """
        Run the block as one transaction, and commit it at the block's end: see `Store.write`.
        """
        return self._writer.write(durable=durable, wait_s=wait_s, alone=alone, settled=settled)

    def checkpoint(self) -> None:
        """
        Do the upkeep of the database, where there is one.
        """
        self._writer.checkpoint()

    def scrub(self) -> bool:
        """
        Clear the files of what was deleted: see `Store.scrub`.
        """
        return self._writer.scrub()

    def is_lost(self) -> bool:
        """
        Say whether there is no database, or it is one that nobody else reads any more.
        """
        return self._writer.is_lost()

    def close(self) -> None:
        """
        Close all connections; those in use as soon as they are free.
        """
        with self._changing:
            self._is_closed = True
            free, self._free[:] = list(self._free), []
        for reader in free:
            reader.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _reader(self) -> Generator[ReopenedStore]:
        if not self._turn.acquire(timeout=WAIT_S):
            raise StoreError(f"{self.path}: busy: other pages have read for {WAIT_S:.0f} s")
        try:
            with self._changing:
                if self._is_closed:
                    raise StoreError("the store is not open")
                # The latest first: those that are seldom needed are never opened.
                reader = self._free.pop() if self._free else ReopenedStore(self._open_database)
            try:
                yield reader
            finally:
                self._give_back(reader)
        finally:
            self._turn.release()

    def _give_back(self, reader: ReopenedStore) -> None:
        with self._changing:
            if not self._is_closed:
                self._free.append(reader)
                return
        reader.close()
