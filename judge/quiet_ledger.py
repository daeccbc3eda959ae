"""
The ledger as a judgement uses it: an answer never depends on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..costing.database import StoreError

if TYPE_CHECKING:
    from ..costing.ledger import Ledger

T = TypeVar("T")


class QuietLedger:
    """
    A ledger that is left alone after its first failure: each further try could wait for a lock again.
    """

    def __init__(self, ledger: Ledger | None) -> None:
        self._ledger = ledger

    def attempt(self, do: Callable[[Ledger], T], *, otherwise: T) -> T:
        """
        Do something with the ledger, or give `otherwise` where there is none that works.
        """
        if self._ledger is None:
            return otherwise
        try:
            return do(self._ledger)
        except StoreError:
            self._ledger = None
            return otherwise
