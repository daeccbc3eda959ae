"""
The time of day, as ledger lines have it.
"""

from __future__ import annotations

from datetime import UTC, datetime


def utc_now() -> datetime:
    """
    Give the time with its zone.
    """
    return datetime.now(UTC)
