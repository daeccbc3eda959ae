"""
The usage: what one call to a model took, in tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

_MOST = 10**12
"""More tokens than any call can take: a number above it is damage, and would not fit a database's integer."""


class Usage(NamedTuple):
    """
    The tokens of one call, by the classes that are priced apart.
    """

    input_tokens: int = 0
    """Not cached, as the Messages API counts; the cached ones stand in their own classes."""
    output_tokens: int = 0
    thinking_tokens: int = 0
    """Part of `output_tokens`."""
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    cache_read_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """
        All that the model read, cached or not.
        """
        return self.input_tokens + self.cache_write_5m_tokens + self.cache_write_1h_tokens + self.cache_read_tokens


def total(usages: Iterable[Usage]) -> Usage:
    """
    Add up usages class by class.
    """
    return Usage(*(sum(counts) for counts in zip(*usages, strict=True)))


def read_usage(raw: Mapping[str, object]) -> Usage | None:
    """
    Read a Messages API `usage` object.

    None where it says nothing certain: no input or output count, a count that is no whole number from 0 up, or cache
    writes whose parts are not the whole.
    """
    details = _part(raw, "output_tokens_details")
    counts = (
        _count(raw.get("input_tokens")),
        _count(raw.get("output_tokens")),
        _count(details.get("thinking_tokens"), missing=0),
        *_cache_writes(raw),
        _count(raw.get("cache_read_input_tokens"), missing=0),
    )
    known = [count for count in counts if count is not None]
    return Usage(*known) if len(known) == len(counts) else None


def _cache_writes(raw: Mapping[str, object]) -> tuple[int | None, int | None]:
    """
    The tokens written for five minutes and for an hour. Five minutes is the API's default, where nothing tells them apart.
    """
    whole = raw.get("cache_creation_input_tokens")
    parts = raw.get("cache_creation")
    told = {name: part for name, part in _part(raw, "cache_creation").items() if part is not None}
    if not told:
        return (_count(whole, missing=0), 0) if not parts or isinstance(parts, Mapping) else (None, None)

    short = _count(told.pop("ephemeral_5m_input_tokens", None), missing=0)
    long = _count(told.pop("ephemeral_1h_input_tokens", None), missing=0)
    if short is None or long is None or any(told.values()) or whole not in (None, short + long):
        return None, None
    return short, long


def _part(raw: Mapping[str, object], key: str) -> Mapping[str, object]:
    part = raw.get(key)
    return cast("Mapping[str, object]", part) if isinstance(part, Mapping) else {}


def _count(value: object, *, missing: int | None = None) -> int | None:
    if value is None:
        return missing
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _MOST else None
