"""
One call for all threads of a process that ask about the same stop at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Final

from .judgement import Judgement


class SingleFlight:
    """
    Whoever asks about a stop while somebody else does waits for that answer, and gets it without calls of their own.
    """

    def __init__(self) -> None:
        self._flights: Final[dict[str, Future[Judgement]]] = {}
        self._lock: Final = Lock()

    def ask(self, stop: str, ask: Callable[[], Judgement], *, deadline_at: float) -> Judgement:
        """
        Ask, or wait for the answer until `deadline_at`, on `time.monotonic`'s clock.
        """
        with self._lock:
            flight = self._flights.get(stop)
            own = Future[Judgement]()
            if flight is None:
                self._flights[stop] = own
        if flight is None:
            return self._asked(stop, ask, own)
        try:
            return flight.result(max(0.0, deadline_at - time.monotonic()))._replace(calls=())
        except TimeoutError:
            return Judgement("timeout", detail="another hook asks about this stop, and had no answer in time")

    def _asked(self, stop: str, ask: Callable[[], Judgement], own: Future[Judgement]) -> Judgement:
        judgement = Judgement("error", detail="the hook that asked about this stop broke off")
        try:
            judgement = ask()
            return judgement
        finally:
            with self._lock:
                del self._flights[stop]
            own.set_result(judgement)
