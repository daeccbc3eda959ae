"""
The stores that a service keeps open between stops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from ..costing.closed_store import ClosedStore
from ..costing.opening import open_ledger_store
from ..costing.store import StoreError
from .gate import Store
from .turn_count import TurnCounts

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from ..costing.store import Store as Database

BUSY_TIMEOUT_S: Final = 0.5
"""Shorter than in a process of its own: what cannot be written now is owed, and written later."""

MOST_OPEN: Final = 4
"""Ledgers at different addresses; users have one."""


class Stores:
    """
    Opens each ledger of a state directory once, and again when its file was taken away. Threads share them.
    """

    def __init__(self, folder: str, ledger_on: Callable[[Database], Ledger]) -> None:
        self._folder: Final = folder
        self._ledger_on: Final = ledger_on
        self._open: Final[dict[str, Store]] = {}
        self._lock: Final = Lock()

    def get(self, url: str) -> Store:
        """
        Give the store at an address, empty for the file in the state directory; it may say why there is none.
        """
        found = self._open.get(url)
        if found is not None and found.ledger is not None and not found.ledger.database.is_lost():
            return found
        with self._lock:
            return self._opened_again(url, found)

    def opened(self) -> Mapping[str, Store]:
        """
        Give the stores that are open.
        """
        return dict(self._open)

    def pay(self, *, wait_s: float = 0.0) -> None:
        """
        Write down what the ledgers owe, and do their upkeep.
        """
        for store in self.opened().values():
            with suppress(StoreError):
                if store.ledger is not None:
                    store.ledger.pay_owed(wait_s=wait_s)
                    store.ledger.database.checkpoint()

    def owed(self) -> int:
        """
        Give the number of lines that could not be written yet.
        """
        return sum(store.ledger.owed for store in self.opened().values() if store.ledger is not None)

    def close(self) -> None:
        """
        Close all.
        """
        for url in list(self._open):
            self._close(url)

    def _opened_again(self, url: str, before: Store | None) -> Store:
        now = self._open.get(url)
        if now is not None and now is not before:
            return now  # another thread was faster
        if now is not None:
            self._close(url)
        try:
            database = open_ledger_store(self._folder, url, busy_timeout_s=BUSY_TIMEOUT_S, checkpoints=False)
        except StoreError as error:
            return Store(self._ledger_on(ClosedStore(str(error))), None, str(error))
        self._open[url] = store = Store(self._ledger_on(database), TurnCounts(database))
        for spare in list(self._open)[:-MOST_OPEN]:
            self._close(spare)
        return store

    def _close(self, url: str) -> None:
        store = self._open.pop(url)
        if store.ledger is not None:
            store.ledger.database.close()
