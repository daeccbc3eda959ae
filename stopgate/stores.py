"""
The stores that a service keeps open between stops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, tzinfo
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from ..costing.day_sums import keep_sums
from ..costing.opening import open_ledger_store
from ..costing.reopened_store import ReopenedStore
from ..costing.store import StoreError
from ..costing.windows import Window
from .gate import Store
from .turn_count import TurnCounts

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from ..costing.store import Store as Database

BUSY_TIMEOUT_S: Final = 0.5
"""Shorter than in a process of its own: what cannot be written now is owed, and written later."""

MOST_OPEN: Final = 4
"""Databases at different addresses; users have one."""


class Stores:
    """
    Keeps one ledger for each address, whatever becomes of the database under it: what a ledger owes stays owed. Threads share them.
    """

    def __init__(self, folder: str, ledger_on: Callable[[Database], Ledger]) -> None:
        self._folder: Final = folder
        self._ledger_on: Final = ledger_on
        self._kept: Final[dict[str, _Kept]] = {}
        """The one asked for last is at the end."""
        self._lock: Final = Lock()
        """Nothing that takes time is done under it."""

    def get(self, url: str) -> Store:
        """
        Give the store at an address, empty for the file in the state directory; it may say why nothing can be read or counted there.
        """
        kept = self._asked_for(url)
        error = kept.database.reopen()
        self._close_spare()
        return kept.store._replace(counts=None, error=error) if error else kept.store

    def opened(self) -> Mapping[str, Store]:
        """
        Give the stores that are open.
        """
        return {url: kept.store for url, kept in self._all() if kept.database.is_open}

    def pay(self, *, wait_s: float = 0.0) -> None:
        """
        Write down what the ledgers owe, and do their upkeep.
        """
        for _, kept in self._all():
            # One that owes nothing is opened by the next stop: a state directory that was removed is not made anew for nothing.
            if kept.ledger.owed:
                kept.database.reopen(at_once=True)
            with suppress(StoreError):
                kept.ledger.pay_owed(wait_s=wait_s)
                kept.database.checkpoint()

    def keep_sums(self, zone: tzinfo, now: datetime) -> bool:
        """
        Add up a day that is over in each open store, so that no report has to; False once all stores have all of theirs.
        """
        window, is_left = Window(zone=zone), False
        for url in self.opened():
            # By a connection of its own: a stop that writes must not wait for a sum.
            with suppress(StoreError), self._opened(url) as database:
                is_left |= keep_sums(database, window, now=now) > 0
        return is_left

    def owed(self) -> int:
        """
        Give the number of lines that could not be written yet.
        """
        return sum(kept.ledger.owed for _, kept in self._all())

    def close(self) -> None:
        """
        Close all.
        """
        for _, kept in self._all():
            kept.database.close()

    def _asked_for(self, url: str) -> _Kept:
        with self._lock:
            kept = self._kept.pop(url, None) or self._new(url)
            self._kept[url] = kept
        return kept

    def _new(self, url: str) -> _Kept:
        database = ReopenedStore(lambda: self._opened(url))
        ledger = self._ledger_on(database)
        return _Kept(database, ledger, Store(ledger, TurnCounts(database)))

    def _opened(self, url: str) -> Database:
        return open_ledger_store(self._folder, url, busy_timeout_s=BUSY_TIMEOUT_S, checkpoints=False)

    def _close_spare(self) -> None:
        opened = [kept for _, kept in self._all() if kept.database.is_open]
        for kept in opened[:-MOST_OPEN]:
            # One that owes stays until it has paid. A line that comes after the closing is owed, and opens it again.
            if not kept.ledger.owed:
                kept.database.close()

    def _all(self) -> list[tuple[str, _Kept]]:
        with self._lock:
            return list(self._kept.items())


class _Kept(NamedTuple):
    database: ReopenedStore
    ledger: Ledger
    store: Store
