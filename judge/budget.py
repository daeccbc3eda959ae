"""
The budget: whether another call may be paid for. It stops model calls, never turns.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from .settings import JudgeSettings


def spent_budget(ledger: Ledger, settings: JudgeSettings, session_id: str, now: datetime) -> str:
    """
    Name the budget that is spent, in one line; empty while there is money left.

    A day is a UTC day, so that all machines of a team agree on it. Calls of unknown cost count as nothing here: they
    are shown apart in `turngate cost`.
    """
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if settings.usd_per_day is not None and _reached(ledger, settings.usd_per_day, day, None):
        return f"budget.usd_per_day of ${settings.usd_per_day} is spent"

    if settings.usd_per_session is not None and session_id:
        ever = datetime(2000, 1, 1, tzinfo=UTC)
        if _reached(ledger, settings.usd_per_session, ever, session_id):
            return f"budget.usd_per_session of ${settings.usd_per_session} is spent"
    return ""


def _reached(ledger: Ledger, limit_usd: str, since: datetime, session_id: str | None) -> bool:
    from decimal import Decimal

    return ledger.spent_usd(since, session_id).usd >= Decimal(limit_usd)
