"""
Lines to write to a ledger.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def a_start(at: datetime = NOW, **fields: object) -> CallStart:
    return CallStart(at, "anthropic", "claude-sonnet-5-5", "api.anthropic.com", "turn_end@1", "abc")._replace(**fields)  # pyright: ignore[reportArgumentType]


def a_call(ledger: Ledger, cost: str | None, at: datetime = NOW, **fields: object) -> str:
    start = a_start(at, **fields)
    end = CallEnd("answered", cost_usd=None if cost is None else Decimal(cost))
    return ledger.settle_call(ledger.open_call(start), start, end)


COSTS = st.decimals(min_value=0, max_value=10**6, allow_nan=False, allow_infinity=False, places=15)
