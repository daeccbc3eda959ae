"""
Sums for many pages at once: the same are added up once for all who ask, and those that take long one after the other.
"""

from __future__ import annotations

from concurrent.futures import Future
from datetime import datetime
from threading import Lock
from typing import Final, NamedTuple

from ..store import Store
from ..windows import zone_name
from .asked import Asked
from .state import state_of
from .sums import Sums, read_sums

FEW_DAYS: Final = 8
"""To be added up anew, as on the first page of a new service. Who needs no more does not wait for those who need a year."""


class Seen(NamedTuple):
    """
    Sums, with the state of the ledger before they were read: what came meanwhile is read next time.
    """

    state: str
    sums: Sums


class SingleSums:
    """
    Nothing is kept here: a sum that nobody waits for is forgotten at once.
    """

    def __init__(self) -> None:
        self._flights: Final[dict[tuple[str, str, str], Future[Seen]]] = {}
        self._changing: Final = Lock()
        self._few: Final = Lock()
        self._many: Final = Lock()

    def read(self, store: Store, asked: Asked, now: datetime) -> Seen:
        """
        Add up, or wait for the one who does. Raises StoreError.
        """
        key = (store.path, asked.query, zone_name(asked.zone))
        with self._changing:
            flight = self._flights.get(key)
            own = Future[Seen]()
            if flight is None:
                self._flights[key] = own
        if flight is not None:
            return flight.result()
        try:
            own.set_result(self._read(store, asked, now))
        except BaseException as error:
            own.set_exception(error)
        finally:
            with self._changing:
                del self._flights[key]
        return own.result()

    def _read(self, store: Store, asked: Asked, now: datetime) -> Seen:
        due = 0

        def tell(days: int) -> None:
            nonlocal due
            due = days
            raise _NotKept

        state = state_of(store, now)
        try:
            return Seen(state, read_sums(store, asked, now, tell=tell))
        except _NotKept:
            pass
        # Whoever waited here finds the days that both need kept.
        with self._few if due <= FEW_DAYS else self._many:
            return Seen(state_of(store, now), read_sums(store, asked, now))


class _NotKept(Exception):
    pass
