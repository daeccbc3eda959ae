"""
How times, ids and text are written into the store.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letter that reads like a digit, and in the order of ASCII."""


ID_TIME = 9
"""So many of an id's characters are its time."""


def stamp(at: datetime) -> str:
    """
    Write a time as ISO 8601 in UTC with milliseconds, so that text order is time order.

    A time without a zone is a programming error: ValueError.
    """
    if at.tzinfo is None:
        raise ValueError(f"{at!r} has no time zone")

    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def moment(text: str) -> datetime:
    """
    Read back what `stamp` wrote.
    """
    return datetime.fromisoformat(text)


def new_id(at: datetime) -> str:
    """
    Make a short random id; ids of different milliseconds sort by time.
    """
    milliseconds = int(at.timestamp() * 1000)
    return _base32(milliseconds, ID_TIME) + _base32(int.from_bytes(os.urandom(4)), 6)


def storable(text: str) -> str:
    """
    Replace lone surrogates, which no database takes.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    return text


def _base32(number: int, digits: int) -> str:
    return "".join(_DIGITS[number >> (5 * place) & 31] for place in reversed(range(digits)))
