"""
The ledger as a judgement uses it: an answer never depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..costing.store import StoreError

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from ..costing.records import CallEnd, CallStart

T = TypeVar("T")

OPENING_WAIT_S = 0.2
"""A try waits no longer than this for a lock before it is sent: its line can be written whole when it ends."""


class QuietLedger:
    """
    A ledger that gives way where it fails. Only the end of a try waits for a lock as long as the store allows.
    """

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._fails = False

    def attempt(self, do: Callable[[Ledger], T], *, otherwise: T) -> T:
        """
        Do something with the ledger, or give `otherwise` where there is none that works.

        After a failure it is left alone until a line could be written again: each attempt could wait for a lock.
        """
        return otherwise if self._fails else self._do(do, otherwise)

    def open_call(self, start: CallStart) -> str:
        """
        Write down that a try is about to be sent; empty where that cannot be written now.
        """
        wait_s = 0.0 if self._fails else OPENING_WAIT_S
        return self._do(lambda ledger: ledger.open_call(start, wait_s=wait_s), "")

    def end_call(self, call: str, start: CallStart, end: CallEnd) -> str:
        """
        Write down what came of a try, opened or not, and give its id; empty where that cannot be written now.
        """
        return self._do(lambda ledger: ledger.settle_call(call, start, end), "")

    def _do(self, do: Callable[[Ledger], T], otherwise: T) -> T:
        if self._ledger is None:
            return otherwise
        try:
            done = do(self._ledger)
        except StoreError:
            self._fails = True
            return otherwise
        self._fails = False
        return done
