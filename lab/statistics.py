"""
The formulas: rates, intervals and tests, from numbers to numbers. The only file that imports numpy and scipy.

What is not defined is None, never 0 and never 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import scipy.special as special
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = Sequence[Sequence[float]] | Array
"""Of cases, with the same columns in each."""
RESAMPLES: Final = 2000

_special: Final[Any] = special
_MOST_UNDEFINED: Final = 0.5
"""Of the resamples: an interval of fewer would say more of the luck of the draw than of the data."""


class Interval(NamedTuple):
    """
    Where a value may lie.
    """

    low: float
    high: float


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """
    Give the score interval of a rate (Wilson 1927); 0 to 1 where nothing was counted.

    Counts may be means over repeats: a case asked five times is still one case.
    """
    if n <= 0:
        return Interval(0.0, 1.0)
    z = _z(level)
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(0.0, rate * (1 - rate)) / n + z * z / (4 * n * n))
    # At the ends the formula gives 0 and 1 exactly; floating point does not.
    low = 0.0 if successes <= 0 else max(0.0, centre - half)
    return Interval(low, 1.0 if successes >= n else min(1.0, centre + half))


def rate(hits: float, out_of: float) -> float | None:
    """
    Give a share; None where nothing was counted.
    """
    return hits / out_of if out_of > 0 else None


def f1(tp: float, fp: float, fn: float) -> float | None:
    """
    Give the harmonic mean of precision and recall; None where nothing was there and nothing was named.
    """
    return rate(2 * tp, 2 * tp + fp + fn)


def f1_wilson(tp: float, fp: float, fn: float, level: float = 0.95) -> Interval:
    """
    Give the interval of F1: Wilson's of the share j = tp / (tp + fp + fn), of which F1 = 2j / (1 + j) is a rising function.
    """
    low, high = wilson(tp, tp + fp + fn, level)
    return Interval(2 * low / (1 + low), 2 * high / (1 + high))


def reweighted_precision(recall: float | None, false_positive_rate: float | None, base_rate: float) -> float | None:
    """
    Give the precision where the fault has that base rate (Bayes); None where nothing would be named.
    """
    if recall is None or false_positive_rate is None:
        return None
    return rate(recall * base_rate, recall * base_rate + false_positive_rate * (1 - base_rate))


def cohen_kappa(a: Sequence[bool], b: Sequence[bool]) -> float | None:
    """
    Give the agreement of two labellers beyond chance (Cohen 1960); None where both said the same of every case.
    """
    n = _same_length(a, b)
    yes_a, yes_b = sum(map(bool, a)), sum(map(bool, b))
    # In whole numbers: chance agreement is 1 only where it is so exactly.
    agreed = n * sum(bool(x) == bool(y) for x, y in zip(a, b, strict=True))
    by_chance = yes_a * yes_b + (n - yes_a) * (n - yes_b)
    return (agreed - by_chance) / (n * n - by_chance) if n * n > by_chance else None


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """
    Give the two-sided p of the exact test on pairs that differ; 1 where none does.
    """
    n = only_a + only_b
    return min(1.0, 2 * _binomial_cdf(min(only_a, only_b), n, 0.5)) if n else 1.0


def holm(p: Sequence[float]) -> list[float]:
    """
    Give the p values adjusted for their number (Holm 1979), in the order in which they came.
    """
    adjusted = [0.0] * len(p)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p)), key=lambda index: p[index])):
        highest = max(highest, min(1.0, (len(p) - rank) * p[index]))
        adjusted[index] = highest
    return adjusted


def pass_hat_k(successes: Sequence[int], repeats: int, k: int) -> float | None:
    """
    Give the chance that k tries of a case all succeed: the mean of C(c, k) / C(n, k), which is unbiased.

    `successes` of `repeats` tries, one for each case; None where k is more than was tried. Source: tau-bench, arXiv:2406.12045.
    """
    if not successes or not 1 <= k <= repeats:
        return None
    return sum(math.comb(count, k) for count in successes) / (len(successes) * math.comb(repeats, k))


def spearman(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """
    Give Spearman's rho and its two-sided p; None for fewer than three pairs, or where one side never changes.
    """
    if _same_length(a, b) < 3 or len(set(a)) == 1 or len(set(b)) == 1:
        return None
    # Loaded for this one figure: scipy.stats takes half a second.
    from scipy import stats

    found: Any = stats.spearmanr(a, b)  # pyright: ignore[reportUnknownMemberType]
    return float(found.statistic), float(found.pvalue)


def quantiles(values: Sequence[float], shares: Sequence[float]) -> list[float]:
    """
    Give the values below which those shares lie, interpolated. Raises `ValueError` without values.
    """
    if not values:
        raise ValueError("no values")
    return [float(value) for value in np.quantile(np.asarray(values, float), shares)]


class Resamples:
    """
    Clusters drawn with replacement, again and again: what the data might have been, where whole sessions come and go together.

    One draw serves any number of figures; the order of the rows does not matter.
    """

    def __init__(self, clusters: Sequence[str], *, seed: int = 0, resamples: int = RESAMPLES) -> None:
        names, self._member = np.unique(np.asarray(clusters, dtype=np.str_), return_inverse=True)
        self.clusters = len(names)
        draws = np.random.default_rng(seed)
        columns = max(1, self.clusters)
        even = np.full(columns, 1 / columns)
        self._times = draws.multinomial(self.clusters, even, size=resamples).astype(np.float64)

    def sums(self, rows: Rows) -> Array:
        """
        Give the sums of columns in each resample: shape (resamples, columns) of rows (cases, columns).
        """
        columns = np.asarray(rows, float)
        by_cluster = np.zeros((self._times.shape[1], columns.shape[1]))
        np.add.at(by_cluster, self._member, columns)
        return self._times @ by_cluster

    def interval(self, rows: Rows, statistic: Callable[[Array], Array], level: float = 0.95) -> Interval | None:
        """
        Give the percentile interval of a statistic of the columns' sums: (resamples, columns) to (resamples), NaN where it is not defined.

        None for fewer than two clusters, and where more than half of the resamples leave it undefined.
        """
        if self.clusters < 2:
            return None
        with np.errstate(divide="ignore", invalid="ignore"):
            values = statistic(self.sums(rows))
        defined = values[np.isfinite(values)]
        if len(defined) < _MOST_UNDEFINED * len(values):
            return None
        low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(low), float(high))

    def rate(self, hits: Sequence[float], out_of: Sequence[float], level: float = 0.95) -> Interval | None:
        """
        Give the interval of a share, its parts told case by case.

        Where all clusters agree, no resample differs, which is no certainty: then it is Wilson's with each cluster counted once.
        """
        rows = np.column_stack([np.asarray(hits, float), np.asarray(out_of, float)])
        found = self.interval(rows, lambda sums: sums[:, 0] / sums[:, 1], level)
        if found is None or found.high - found.low > 1e-12:
            return found
        counted = len(np.unique(self._member[rows[:, 1] > 0]))
        return wilson(found.low * counted, counted, level)


def few_clusters(clusters: int) -> float:
    """
    Give how much too narrow a bootstrap's 95 % interval is for so many clusters (two or more).

    Source: the expanded percentile interval of Hesterberg, What Teachers Should Know about the Bootstrap, American Statistician 69 (2015).
    """
    return math.sqrt(clusters / (clusters - 1)) * float(_special.stdtrit(clusters - 1, 0.975)) / _z(0.95)


def smallest_difference(n: int, discordant_rate: float, power: float = 0.8, alpha: float = 0.05) -> float | None:
    """
    Give the smallest difference of two rates that the exact McNemar test on n pairs shows with that power; None where it shows none.

    `discordant_rate` is the share of pairs that differ; where the difference alone is larger, it is that. Within 0.0001.
    """
    pairs = np.arange(n + 1)
    critical = _largest_significant(pairs, alpha)
    if n < 1 or critical[-1] < 0:
        return None

    def shown(difference: float) -> float:
        discordant = min(1.0, max(discordant_rate, difference))
        for_b = (discordant + difference) / (2 * discordant)
        weights = _binomial_pmf(pairs, n, discordant)
        rejected = _binomial_cdf_of(critical, pairs, for_b) + _binomial_cdf_of(critical, pairs, 1 - for_b)
        return float(np.sum(weights * np.where(critical >= 0, rejected, 0.0)))

    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if shown(middle) >= power else (middle, high)
    return high


def _largest_significant(pairs: NDArray[np.int64], alpha: float) -> NDArray[np.int64]:
    """
    For each number of differing pairs, the largest count of the rarer side at which the test rejects; -1 where it never does.
    """
    largest = np.full(len(pairs), -1, dtype=np.int64)
    for index, count in enumerate(pairs):
        at = largest[index - 1] if index else -1
        # From one number of pairs to the next it rises by one at most.
        largest[index] = at + 1 if at + 1 <= count and mcnemar_exact(int(at + 1), int(count - at - 1)) <= alpha else at
    return largest


def _z(level: float) -> float:
    return float(_special.ndtri((1 + level) / 2))


def _binomial_cdf(k: int, n: int, p: float) -> float:
    return float(_special.bdtr(k, n, p))


def _binomial_cdf_of(k: NDArray[np.int64], n: NDArray[np.int64], p: float) -> Array:
    found: Array = _special.bdtr(np.maximum(k, 0).astype(float), n, p)
    return found


def _binomial_pmf(k: NDArray[np.int64], n: int, p: float) -> Array:
    # In logarithms: the binomial coefficients of a thousand pairs are beyond a float.
    ways: Array = _special.gammaln(n + 1) - _special.gammaln(k + 1) - _special.gammaln(n - k + 1)
    found: Array = np.exp(ways + _special.xlogy(k, p) + _special.xlog1py(n - k, -p))
    return found


def _same_length(a: Sequence[Any] | Array, b: Sequence[Any] | Array) -> int:
    if len(a) != len(b):
        raise ValueError(f"{len(a)} values cannot be paired with {len(b)}")
    return len(a)
