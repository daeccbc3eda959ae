"""
The marks of a judge: how often it names a fault rightly, beside what people say of the same turns.

A case asked several times counts once: what was named in two of three repeats is two thirds of a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import statistics
from ..cases import Case
from ..statistics import Interval, Resamples
from .base_rates import BaseRate, BaseRates, is_in
from .scorable import HELD as HELD


class Judged(NamedTuple):
    """
    A case with what the judge named in each repeat that could be read; at least one.
    """

    case: Case
    named: tuple[frozenset[str], ...]

    def share(self, fault: str) -> float:
        """
        Give the share of repeats that name the fault.
        """
        return sum(is_in(fault, faults) for faults in self.named) / len(self.named)

    def has(self, fault: str) -> bool:
        """
        Say whether people say that the reply has the fault.
        """
        return is_in(fault, self.case.labels or ())

    def rightly(self, fault: str) -> list[bool]:
        """
        Say of each repeat whether it agrees with the labels.
        """
        return [is_in(fault, faults) == self.has(fault) for faults in self.named]


class Rate(NamedTuple):
    """
    A share with its two intervals; all three are None where it cannot be told.
    """

    value: float | None
    hits: float
    out_of: float
    wilson: Interval | None
    """As if each case stood by itself."""
    clustered: Interval | None
    """Over sessions, whose turns resemble each other; None also where there is only one session."""


class Marks(NamedTuple):
    """
    All that is known of one fault, or of `held`.
    """

    fault: str
    tp: float
    fp: float
    fn: float
    tn: float
    support: int
    """Cases that have it."""
    others: int
    """Cases that do not: for `held`, the clean turns."""
    precision: Rate
    recall: Rate
    f1: Rate
    false_alarms: Rate
    """Of the cases without it: for `held`, the false-block rate on clean turns."""
    base_rate: BaseRate | None
    precision_in_use: float | None
    """The precision at the base rate."""
    precision_in_use_interval: Interval | None
    """Over sessions; where the base rate comes from the run's own random sample, with what is uncertain about that."""


def resamples_of(judged: Sequence[Judged], seed: int) -> Resamples:
    """
    Draw the sessions of these cases again and again.
    """
    return Resamples([one.case.cluster for one in judged], seed=seed)


def rate_of(hits: Sequence[float], out_of: Sequence[float], resamples: Resamples, *, can_be_told: bool = True) -> Rate:
    """
    Give a share, its parts told case by case, with its intervals.
    """
    up, down = float(sum(hits)), float(sum(out_of))
    if not can_be_told or down <= 0:
        return Rate(None, up, down, None, None)
    return Rate(up / down, up, down, statistics.wilson(up, down), resamples.rate(hits, out_of))


def marks(judged: Sequence[Judged], fault: str, resamples: Resamples, rates: BaseRates, seed: int) -> Marks:
    """
    Compare what was named with the labels, case by case; every case has labels.

    Where no case has the fault, or none is without it, the figures that need both cannot be told.
    """
    named = [one.share(fault) for one in judged]
    has = [one.has(fault) for one in judged]
    hits = [share * there for share, there in zip(named, has, strict=True)]
    wrong = [share * (not there) for share, there in zip(named, has, strict=True)]
    lacks = [not there for there in has]
    support, others = sum(has), sum(lacks)
    tp, fp = sum(hits), sum(wrong)
    both = support > 0 and others > 0
    # 2 tp / (named + has) is F1.
    twice, either = [2 * hit for hit in hits], [a + b for a, b in zip(named, has, strict=True)]
    f1 = rate_of(twice, either, resamples, can_be_told=both)
    if f1.value is not None:
        f1 = f1._replace(wilson=statistics.f1_wilson(tp, fp, max(0.0, support - tp)))
    recall = rate_of(hits, has, resamples)
    false_alarms = rate_of(wrong, lacks, resamples)
    base = rates.of(fault)
    in_use = statistics.reweighted_precision(recall.value, false_alarms.value, base.value) if base and both else None
    spread: Interval | None = None
    if in_use is not None and base is not None:
        spread = _in_use(judged, fault, base, rates, seed) or _corners(recall, false_alarms, base)
    return Marks(
        fault,
        tp,
        fp,
        max(0.0, support - tp),
        max(0.0, others - fp),
        support,
        others,
        rate_of(hits, named, resamples, can_be_told=both),
        recall,
        f1,
        false_alarms,
        base,
        in_use,
        spread,
    )


def _in_use(judged: Sequence[Judged], fault: str, base: BaseRate, rates: BaseRates, seed: int) -> Interval | None:
    """
    Resample the cases and the random sample together: they may be of the same sessions, or of others.
    """
    rows = [
        [
            one.share(fault) * one.has(fault),
            float(one.has(fault)),
            one.share(fault) * (not one.has(fault)),
            float(not one.has(fault)),
            0.0,
            0.0,
        ]
        for one in judged
    ]
    clusters = [one.case.cluster for one in judged]
    is_drawn = fault not in rates.given
    if is_drawn:
        rows += [[0.0, 0.0, 0.0, 0.0, float(is_in(fault, case.labels or ())), 1.0] for case in rates.drawn]
        clusters += [case.cluster for case in rates.drawn]

    def precision(sums: statistics.Array) -> statistics.Array:
        recall, false_alarms = sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]
        rate = sums[:, 4] / sums[:, 5] if is_drawn else base.value
        return recall * rate / (recall * rate + false_alarms * (1 - rate))

    found = Resamples(clusters, seed=seed).interval(rows, precision)
    return found if found and found.high - found.low > 1e-12 else None


def _corners(recall: Rate, false_alarms: Rate, base: BaseRate) -> Interval | None:
    """
    Where no resample differs from another: from the worst of each part's own interval to the best.
    """
    if recall.clustered is None or false_alarms.clustered is None:
        return None
    rates = base.wilson or Interval(base.value, base.value)
    low = statistics.reweighted_precision(recall.clustered.low, false_alarms.clustered.high, rates.low)
    high = statistics.reweighted_precision(recall.clustered.high, false_alarms.clustered.low, rates.high)
    return None if low is None or high is None else Interval(low, high)
