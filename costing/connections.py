"""
The connections of a store that lies on another machine: made in the background, kept for the next one, and not tried again
and again while the server is away. Knows nothing of what is sent over them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import BoundedSemaphore, Event, Lock, Thread
from typing import Final, Generic, Protocol, TypeVar

from .store import StoreError

MOST: Final = 8
"""In use at a time."""

DOWN_S: Final = 5.0
"""How long a server that could not be reached is not asked again."""

IDLE_S: Final = 60.0
"""A connection unused for longer is not used again: what lies between may have forgotten it."""


class Connection(Protocol):
    """
    What has to be known of a connection.
    """

    used_at: float

    def close(self) -> None:
        """
        Close it.
        """
        ...


C = TypeVar("C", bound=Connection)


class Connections(Generic[C]):
    """
    At most `MOST` connections in use by the threads of one owner. `connect` may take long, and raises StoreError.

    Whoever takes one waits `wait_s` at most. Raises StoreError.
    """

    def __init__(self, name: str, connect: Callable[[], C], wait_s: float) -> None:
        self._name: Final = name
        self._connect: Final = connect
        self._wait_s: Final = wait_s
        self._places: Final = BoundedSemaphore(MOST)
        self._lock: Final = Lock()
        self._idle: Final[list[C]] = []
        """The one used last is at the end."""
        self._attempts = 0
        self._down_until = 0.0
        self._down_why = ""
        self._is_closed = False

    @contextmanager
    def place(self, wait_s: float) -> Generator[None]:
        """
        Wait for the right to use one.
        """
        if not self._places.acquire(timeout=wait_s):
            raise StoreError(f"{self._name}: busy: all {MOST} connections were in use for {wait_s:.1f} s")
        try:
            yield
        finally:
            self._places.release()

    def idle(self) -> C | None:
        """
        Give one that was used shortly before, if there is any; it may have broken since.
        """
        with self._lock:
            if self._idle and time.monotonic() - self._idle[-1].used_at < IDLE_S:
                return self._idle.pop()
        self.drop_idle()
        return None

    def new(self, give_up_at: float) -> C:
        """
        Connect, in a thread: looking up a host's name knows no timeout.

        A connection that comes when nobody waits for it any more is kept for the next one.
        """
        attempt = self._attempt()
        waits_s = give_up_at - time.monotonic()
        attempt.done.wait(max(0.0, waits_s))
        with self._lock:
            attempt.is_given_up = attempt.connection is None
        if attempt.connection is not None:
            return attempt.connection

        if attempt.error is None and waits_s < self._wait_s / 2:
            raise StoreError(f"{self._name}: not connected yet")  # and no reason to think that it is away
        raise self.down(attempt.error or StoreError(f"{self._name}: no connection within {self._wait_s:.1f} s"))

    def down(self, error: StoreError) -> StoreError:
        """
        Give the error back, and remember that the server is away.
        """
        self.drop_idle()
        with self._lock:
            self._down_until = time.monotonic() + DOWN_S
            self._down_why = str(error)
        return error

    def keep(self, connection: C) -> None:
        """
        Keep one that works for the next use.
        """
        connection.used_at = time.monotonic()
        with self._lock:
            if not self._is_closed and len(self._idle) < MOST:
                self._idle.append(connection)
                return
        connection.close()

    def drop_idle(self) -> None:
        """
        Close all that nobody uses.
        """
        with self._lock:
            dropped = list(self._idle)
            self._idle.clear()
        for connection in dropped:
            connection.close()

    def close(self) -> None:
        """
        Close all, those in use when they are given back.
        """
        with self._lock:
            self._is_closed = True
        self.drop_idle()

    def _attempt(self) -> _Attempt[C]:
        with self._lock:
            if self._is_closed:
                raise StoreError(f"{self._name}: closed")
            if time.monotonic() < self._down_until:
                raise StoreError(f"{self._down_why} (not tried again for {DOWN_S:.0f} s)")
            if self._attempts >= MOST:
                raise StoreError(f"{self._name}: not connected yet")
            self._attempts += 1
        attempt = _Attempt[C]()
        Thread(target=self._run, args=(attempt,), daemon=True).start()
        return attempt

    def _run(self, attempt: _Attempt[C]) -> None:
        try:
            connection = self._connect()
        except StoreError as error:
            attempt.error = error
        else:
            self._arrived(attempt, connection)
        finally:
            with self._lock:
                self._attempts -= 1
            attempt.done.set()

    def _arrived(self, attempt: _Attempt[C], connection: C) -> None:
        with self._lock:
            self._down_until = 0.0
            if not attempt.is_given_up:
                attempt.connection = connection
                return
        self.keep(connection)


class _Attempt(Generic[C]):
    """
    A connection being made, for somebody who may have given up waiting.
    """

    def __init__(self) -> None:
        self.done: Final = Event()
        self.connection: C | None = None
        self.error: StoreError | None = None
        self.is_given_up = False
