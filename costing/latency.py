"""
How long things took: counted by size since the start, and the latest ones one by one. Knows no metric and no clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple, TypeVar

_T = TypeVar("_T")

LATEST: Final = 1000


class Percentiles(NamedTuple):
    """
    The middle and the slow end of the latest durations, in seconds; None where there are none.
    """

    p50_s: float | None = None
    p95_s: float | None = None


class LatestDurations:
    """
    The latest durations, at most a thousand.
    """

    def __init__(self) -> None:
        self._seconds: Final[deque[float]] = deque(maxlen=LATEST)

    def add(self, seconds: float) -> None:
        """
        Take one in; the oldest goes.
        """
        self._seconds.append(seconds)

    def percentiles(self) -> Percentiles:
        """
        Give the percentiles by the nearest rank: each is a duration that was measured.
        """
        found = sorted(self._seconds)
        if not found:
            return Percentiles()
        return Percentiles(nearest_rank(found, 50), nearest_rank(found, 95))


class Histogram:
    """
    How many durations lay below each of some bounds, in seconds, and their sum.
    """

    def __init__(self, bounds_s: Sequence[float]) -> None:
        self._bounds_s: Final = bounds_s
        self._counts: Final = [0] * (len(bounds_s) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        """
        Count one; a bound belongs to what lies below it.
        """
        self._counts[bisect_left(self._bounds_s, seconds)] += 1
        self.sum_s += seconds

    def cumulative(self) -> list[tuple[float, int]]:
        """
        Give each bound, infinity last, with the number of durations up to it.
        """
        return list(zip([*self._bounds_s, float("inf")], accumulate(self._counts), strict=True))


def nearest_rank(ordered: Sequence[_T], percent: int) -> _T:
    """
    Give the percentile of values in order: one of them.
    """
    # In whole numbers, where 0.95 is exact: rounded up.
    return ordered[-(-len(ordered) * percent // 100) - 1]
