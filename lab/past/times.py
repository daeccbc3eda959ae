"""
The times that transcripts tell.
"""

from __future__ import annotations

from datetime import UTC, datetime


def time_of(text: str) -> datetime | None:
    """
    Read a time as the client writes it, in UTC; None where it is none.
    """
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
