"""
A ledger that tells somebody of each decision and each call, once, whether or not it could be written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from .ledger import Ledger

if TYPE_CHECKING:
    from .records import CallEnd, CallStart, DecisionLine
    from .store import Store


class Watcher(Protocol):
    """
    Who is told. Raises nothing.
    """

    def decision(self, line: DecisionLine) -> None:
        """
        A decision was made.
        """
        ...

    def call_ended(self, start: CallStart, end: CallEnd) -> None:
        """
        A try at a judge has ended.
        """
        ...


class MeasuredLedger(Ledger):
    """
    The ledger of a long-lived process.
    """

    def __init__(self, database: Store, watcher: Watcher) -> None:
        super().__init__(database)
        self._watcher: Final = watcher

    def settle_call(self, call_id: str, start: CallStart, end: CallEnd, *, wait_s: float | None = None) -> str:
        """
        Tell of the call, and write it down.
        """
        self._watcher.call_ended(start, end)
        return super().settle_call(call_id, start, end, wait_s=wait_s)

    def record_decision(self, line: DecisionLine, *, wait_s: float | None = None) -> str:
        """
        Tell of the decision, and write it down.
        """
        self._watcher.decision(line)
        return super().record_decision(line, wait_s=wait_s)
