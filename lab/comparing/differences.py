"""
How far B's figures lie from A's, with intervals: the wider of the cluster bootstrap's and of Tango's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from .paired_rates import paired_rates_interval
from .pairing import Pair, Right

if TYPE_CHECKING:
    from ..statistics import Resamples

_SURELY: Final = 1e-9
"""Sums of shares that should be 0 may be off by rounding."""


class Difference(NamedTuple):
    """
    A figure of both runs, and B less A with its 95 % interval; None where it is not known.
    """

    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None


def accuracy_of(found: Right, counted: Sequence[bool], draws: Resamples) -> Difference:
    """
    The share of right cases among those that count: the recall where these are the ones that have the subject.
    """
    of = found.only(counted)
    if not of.a:
        return Difference(None, None, None, None, None)
    n = len(of.a)
    return Difference(sum(of.a) / n, sum(of.b) / n, *interval_of(found, counted, draws))


def interval_of(found: Right, counted: Sequence[bool], draws: Resamples) -> tuple[float, float, float]:
    """
    Give B less A over the cases that count, at least one, and where it may lie.
    """
    from ..statistics import few_clusters

    of = found.only(counted)
    n = len(of.a)
    difference = (sum(of.b) - sum(of.a)) / n
    rows = [[(b - a) * count, count] for a, b, count in zip(found.a, found.b, counted, strict=True)]
    sessions = len(set(of.clusters))
    low, high = draws.interval(rows, lambda sums: sums[:, 0] / sums[:, 1]) or (-1.0, 1.0)
    if high - low < _SURELY:
        # No draw differs, which is no certainty: so many sessions without a difference leave that much open.
        low, high = (difference + end for end in paired_rates_interval(0, 0, sessions))
    elif sessions > 1:
        low, high = (difference + (end - difference) * few_clusters(sessions) for end in (low, high))

    table = of.table()
    counts_low, counts_high = paired_rates_interval(table.only_a, table.only_b, n)
    return difference, max(-1.0, min(low, counts_low)), min(1.0, max(high, counts_high))


def sign_turned(of: Difference) -> Difference:
    """
    Give the difference of the shares that are wrong.
    """

    def turned(value: float | None, whole: int) -> float | None:
        return None if value is None else whole - value

    return Difference(turned(of.a, 1), turned(of.b, 1), turned(of.difference, 0), turned(of.high, 0), turned(of.low, 0))


def precision_of(pairs: Sequence[Pair], draws: Resamples) -> Difference:
    """
    The share of named cases that have the subject. The two runs name different cases, so that only the bootstrap gives an interval.
    """
    from ..statistics import rate

    rows = [[pair.truth * pair.a.share, pair.a.share, pair.truth * pair.b.share, pair.b.share] for pair in pairs]
    hits_a, named_a, hits_b, named_b = (sum(column) for column in zip(*rows, strict=True))
    a, b = rate(hits_a, named_a), rate(hits_b, named_b)
    if a is None or b is None:
        return Difference(a, b, None, None, None)

    drawn = draws.interval(rows, lambda sums: sums[:, 2] / sums[:, 3] - sums[:, 0] / sums[:, 1])
    # Where no draw differs, they say nothing of what the next case may bring.
    unknown = drawn is None or drawn.high - drawn.low < _SURELY
    return Difference(a, b, b - a, *((None, None) if drawn is None or unknown else drawn))
