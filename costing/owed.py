"""
Lines that could not be written when their time came: they are owed, in memory, until the store takes them.

A line may be written twice (a commit whose answer got lost), so whoever owes one gives statements that bear it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from threading import Lock
from typing import Final

from .store import BadValue, Store, StoreError, Transaction

Line = Callable[[Transaction], None]

MOST_OWED: Final = 1000
"""Lines kept. What comes after them is lost: memory must not grow as long as a store is away."""

_AT_ONCE: Final = 100
"""Lines paid by one transaction, so that a line that finds the store working again is not held up for long."""


class Owed:
    """
    What is owed to a store. Any number of threads may write; one of them at a time pays what is owed, oldest first.
    """

    def __init__(self, store: Store) -> None:
        self._store: Final = store
        self._lines: Final[dict[int, Line]] = {}
        """By their numbers, in the order of coming."""
        self._last = 0
        self._changing: Final = Lock()
        self._paying: Final = Lock()

    def __len__(self) -> int:
        return len(self._lines)

    def write_or_owe(self, line: Line, wait_s: float | None = None) -> None:
        """
        Write a line, after some of those that are owed; where that fails, owe it and raise what failed.

        A line that no store would take (BadValue) is not owed.
        """
        try:
            self._write(line, wait_s)
        except BadValue:
            raise
        except BaseException:
            self._owe(line)
            raise

    def pay(self, wait_s: float) -> int:
        """
        Write all that is owed, and give the number of lines; 0 where the store fails, or another thread is paying.
        """
        if not self._lines or not self._paying.acquire(blocking=False):
            return 0

        paid = 0
        try:
            for _ in range(0, len(self._lines), _AT_ONCE):
                paid += self._pay_some(wait_s)
        except StoreError:
            return paid
        finally:
            self._paying.release()
        return paid

    def _write(self, line: Line, wait_s: float | None) -> None:
        if self._lines and self._paying.acquire(blocking=False):
            try:
                self._pay_some(wait_s, line)
            finally:
                self._paying.release()
            return

        with self._store.write(wait_s=wait_s) as transaction:
            line(transaction)

    def _pay_some(self, wait_s: float | None, new: Line | None = None) -> int:
        with self._changing:
            due = list(islice(self._lines.items(), _AT_ONCE))
        paying = 0
        try:
            with self._store.write(wait_s=wait_s) as transaction:
                for number, line in due:
                    paying = number
                    line(transaction)
                paying = 0
                if new is not None:
                    new(transaction)
        except BadValue:
            if not paying:
                raise
            # The store changed since, or the line would have been refused at once: it must not keep the others back.
            self._forget([paying])
            return self._pay_some(wait_s, new)

        self._forget([number for number, _ in due])
        return len(due)

    def _owe(self, line: Line) -> None:
        with self._changing:
            if len(self._lines) < MOST_OWED:
                self._last += 1
                self._lines[self._last] = line

    def _forget(self, numbers: list[int]) -> None:
        with self._changing:
            for number in numbers:
                del self._lines[number]
