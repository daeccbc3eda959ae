"""
The breaker: an endpoint that failed several times in a row is left alone for a while.

It has no state of its own: the ledger's last calls are all it knows, so every process sees the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..costing.records import RecentCall

FAILURES_IN_A_ROW = 5
OPEN_FOR = timedelta(seconds=60)
LOOK_BACK = 50
"""Calls to read: among the latest may be many that have not ended."""

_FAILURES = ("error", "timeout")


def is_open(recent: Sequence[RecentCall], now: datetime) -> bool:
    """
    Say whether the endpoint is to be left alone; `recent` are its latest calls, newest first.

    After the pause one failure more opens it again.
    """
    last = [call for call in recent if call.outcome is not None][:FAILURES_IN_A_ROW]
    if len(last) < FAILURES_IN_A_ROW or any(call.outcome not in _FAILURES for call in last):
        return False

    ended_at = max(call.at + timedelta(milliseconds=call.latency_ms or 0) for call in last)
    # A clock that was set back must not keep it open: the newest failure may lie in the future by then.
    return abs(now - ended_at) < OPEN_FOR
