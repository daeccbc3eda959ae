"""
A store that stays while the database under it is opened, lost and opened again, so that what stands on it can stay too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, Final, Self

from .store import Store, StoreError, Transaction

FAILED_S: Final = 1.0
"""How long an opening that failed is not tried again by those who could not wait for it."""

OPENING_S: Final = 1.0
"""How long one waits for another who is opening it. A disk that hangs must not hold up everybody."""


class ReopenedStore:
    """
    Closed at first: while there is no database, each use fails for the reason for which it could not be opened.

    It changes databases in `reopen` alone, and never under a transaction.
    """

    def __init__(self, open_database: Callable[[], Store]) -> None:
        self._open_database: Final = open_database
        self._opening: Final = Lock()
        self._database: Store | None = None
        self._error = ""
        self._failed_at = 0.0

    @property
    def is_open(self) -> bool:
        """
        Whether there is a database, lost or not.
        """
        return self._database is not None

    def reopen(self, *, at_once: bool = False) -> str:
        """
        Open a database where there is none or it was lost, and say why there is none now; empty where there is one.

        Of all who come at once, one tries, and for a second its failure is that of all others; `at_once` tries all the same.
        """
        if not self.is_lost():
            return ""
        # Whoever knows of a failure already has no reason to wait for the next one.
        if not self._opening.acquire(timeout=0.0 if self._error else OPENING_S):
            return self._error or "the store is still being opened"

        try:
            was_tried = self._error and time.monotonic() < self._failed_at + FAILED_S
            if self.is_lost() and (at_once or not was_tried):
                self._replace()
            return self._error
        finally:
            self._opening.release()

    @property
    def path(self) -> str:
        """
        Give the name of the database, or why there is none.
        """
        found = self._database
        return self._reason if found is None else found.path

    def write(
        self, *, durable: bool = False, wait_s: float | None = None, alone: str = "", settled: Sequence[str] = ()
    ) -> AbstractContextManager[Transaction]:
        """
        Run the block as one transaction, and commit it at the block's end: see `Store.write`.
        """
        return self._found.write(durable=durable, wait_s=wait_s, alone=alone, settled=settled)

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """
        Give all rows of a query.
        """
        return self._found.rows(sql, values)

    def checkpoint(self) -> None:
        """
        Do the upkeep of the database, where there is one.
        """
        found = self._database
        if found is not None:
            found.checkpoint()

    def scrub(self) -> bool:
        """
        Clear the files of what was deleted: see `Store.scrub`.
        """
        return self._found.scrub()

    def is_lost(self) -> bool:
        """
        Say whether there is no database, or it is one that nobody else reads any more.
        """
        found = self._database
        return found is None or found.is_lost()

    def close(self) -> None:
        """
        Close the database; it can be opened again.
        """
        found, self._database = self._database, None
        if found is not None:
            found.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _found(self) -> Store:
        found = self._database
        if found is None:
            raise StoreError(self._reason)
        return found

    @property
    def _reason(self) -> str:
        return self._error or "the store is not open"

    def _replace(self) -> None:
        self.close()
        try:
            self._database = self._open_database()
            self._error = ""
        except StoreError as error:
            self._error = str(error)
            self._failed_at = time.monotonic()
