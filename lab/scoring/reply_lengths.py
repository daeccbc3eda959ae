"""
Whether a judge holds longer replies more often: a length is no fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import statistics
from .marks import HELD, Judged, Rate, rate_of, resamples_of


class Length(NamedTuple):
    """
    A quarter of the cases, by the length of the reply in characters.
    """

    shortest: int
    longest: int
    cases: int
    held: Rate
    faulty: float | None
    """The share of its labelled cases that have a fault."""


class Lengths(NamedTuple):
    """
    Whether longer replies are held more often.
    """

    quarters: tuple[Length, ...]
    rho: float | None
    """Spearman's, of length and share held."""
    p: float | None


def lengths_of(judged: Sequence[Judged], seed: int) -> Lengths:
    """
    Put the share held beside the length of the reply.
    """
    if not judged:
        return Lengths((), None, None)
    characters = [len(one.case.turn.reply) for one in judged]
    edges = statistics.quantiles(characters, [0.25, 0.5, 0.75])
    quarters: list[Length] = []
    for quarter in range(4):
        # Replies of one length stay together, so that a quarter may be larger, or none at all.
        some = [one for one, length in zip(judged, characters, strict=True) if _quarter(length, edges) == quarter]
        if some:
            quarters.append(_length(some, seed))
    trend = statistics.spearman(characters, [one.share(HELD) for one in judged])
    return Lengths(tuple(quarters), *(trend or (None, None)))


def _quarter(length: int, edges: Sequence[float]) -> int:
    return sum(length > edge for edge in edges)


def _length(some: Sequence[Judged], seed: int) -> Length:
    characters = [len(one.case.turn.reply) for one in some]
    held = rate_of([one.share(HELD) for one in some], [1.0] * len(some), resamples_of(some, seed))
    labelled = [one for one in some if one.case.labels is not None]
    faulty = statistics.rate(sum(one.has(HELD) for one in labelled), len(labelled))
    return Length(min(characters), max(characters), len(some), held, faulty)
