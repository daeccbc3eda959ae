"""
What replayed calls would have cost: with the prompt cache as the judge would have used it, at today's prices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from statistics import median_high
from typing import Final, NamedTuple

from ...costing.database import FILE_NAME
from ...costing.ledger import Ledger
from ...costing.opening import open_ledger_store
from ...costing.prices import PriceEntry, price
from ...costing.store import StoreError
from ...costing.usage import Usage
from ...judge.asking import CACHE_LIFETIME
from ...judge.settings import Cache
from ...stopgate.places import state_dir
from .replay import Replayed

SHIPPED_OUTPUT: Final = 44
"""Tokens of a verdict with one finding, as docs/costs.md counted them."""

LOOK_BACK: Final = timedelta(days=90)


class Output(NamedTuple):
    """
    How long an answer is taken to be.
    """

    tokens: int
    source: str


class Prices(NamedTuple):
    """
    By what calls are priced.
    """

    model: str
    rubric_tokens: int
    """The part of each request that can be cached."""
    output: Output
    cache: Cache
    at: datetime
    overrides: tuple[PriceEntry, ...] | None = ()
    """The user's own prices; None where they cannot be read: then no cost is known."""


def output_of(environ: Mapping[str, str], url: str, now: datetime) -> Output:
    """
    Give the median of the answers in the user's own ledger, where it is a file and has some, else what the docs measured.

    `url` is the address of a ledger on a server.
    """
    why = "your ledger has no answers yet"
    try:
        found = [] if url else _answers(state_dir(environ), now)
    except StoreError as error:
        found, why = [], f"your ledger cannot be read: {error}"
    if found:
        return Output(median_high(found), f"the median of {len(found):,} in your ledger")
    return Output(SHIPPED_OUTPUT, f"by docs/costs.md; {'no server is asked for your ledger' if url else why}")


def costs(stops: Sequence[Replayed], prices: Prices) -> list[Decimal | None]:
    """
    Give the cost of each stop in US dollars: 0 where no call was needed, None where the price is unknown.

    The stops are in the order of time.
    """
    known = prices.overrides
    if known is None:
        return [None if stop.request else Decimal(0) for stop in stops]

    @cache
    def cost(usage: Usage) -> Decimal | None:
        return price(prices.model, usage, prices.at, overrides=known).cost_usd

    used = usages(stops, prices)
    return [Decimal(0) if usage is None else cost(usage) for usage in used]


def usages(stops: Iterable[Replayed], prices: Prices) -> list[Usage | None]:
    """
    Give the tokens of each stop by the classes that are priced apart; None where no call was needed.

    A call under five minutes after the one before asks for the cache, and reads what such a call wrote.
    """
    is_cached = _cache(prices.cache)
    return [_usage(is_cached, stop.request.tokens, stop.at, prices) if stop.request else None for stop in stops]


def _usage(cached: Callable[[datetime | None], str], tokens: int, at: datetime | None, prices: Prices) -> Usage:
    rubric, output = min(prices.rubric_tokens, tokens), prices.output.tokens
    kind = cached(at)
    if kind == "read":
        return Usage(tokens - rubric, output, cache_read_tokens=rubric)
    if kind == "write":
        return Usage(tokens - rubric, output, cache_write_5m_tokens=rubric)
    return Usage(tokens, output)


def _cache(setting: Cache) -> Callable[[datetime | None], str]:
    """
    Give a prompt cache: of each call, in the order of time, it says `plain`, `write` or `read`.
    """
    called: datetime | None = None
    kept: datetime | None = None

    def is_recent(then: datetime | None, now: datetime) -> bool:
        return then is not None and timedelta() <= now - then < CACHE_LIFETIME

    def kind(at: datetime | None) -> str:
        nonlocal called, kept
        if at is None or setting == "off":
            return "plain"
        asks, is_there = setting == "on" or is_recent(called, at), is_recent(kept, at)
        called = at
        if not asks:
            return "plain"
        kept = at  # reading keeps it for another five minutes
        return "read" if is_there else "write"

    return kind


def _answers(folder: str | None, now: datetime) -> list[int]:
    """
    Give the output tokens of the judge's latest answers; looking leaves no file behind.
    """
    if folder is None or not Path(folder, FILE_NAME).is_file():
        return []
    with open_ledger_store(folder) as database:
        calls = Ledger(database).calls(since=now - LOOK_BACK)
    ends = [call.end for call in calls if call.end and call.start.backend != "scripted"]
    return [end.usage.output_tokens for end in ends if end.outcome == "answered" and end.usage]
