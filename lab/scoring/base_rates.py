"""
How often a fault is met in real use: as given, or as the run's random sample tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from .. import statistics
from ..cases import Case
from ..statistics import Interval
from .scorable import HELD

ENOUGH_RANDOM: Final = 30
"""Labelled turns drawn blindly from which a base rate may be told."""


class BaseRate(NamedTuple):
    """
    How often a fault is met in real use.
    """

    value: float
    source: str
    """`given`, or the random sample of the run."""
    wilson: Interval | None
    """Of a random sample."""


class BaseRates(NamedTuple):
    """
    All that base rates can be told from.
    """

    given: Mapping[str, float]
    """By fault or `held`: these come first."""
    drawn: Sequence[Case]
    """The run's random sample, labelled or not, whatever became of the questions."""

    @property
    def unlabelled(self) -> int:
        """
        Count the cases of the sample without labels: those with labels may have been chosen, and tell nothing of the rest.
        """
        return sum(case.labels is None for case in self.drawn)

    def of(self, fault: str) -> BaseRate | None:
        """
        Give the base rate of a fault, or of `held`; None where it cannot be told.
        """
        if fault in self.given:
            return BaseRate(self.given[fault], "given", None)
        if len(self.drawn) < ENOUGH_RANDOM or self.unlabelled:
            return None
        count = sum(is_in(fault, case.labels or ()) for case in self.drawn)
        # A fault that the sample does not hold is rare, not absent: a base rate of 0 would make every precision 0.
        if not count:
            return None
        of = len(self.drawn)
        return BaseRate(count / of, f"random sample of {of}", statistics.wilson(count, of))


def base_rates_of(cases: Sequence[Case], given: Mapping[str, float]) -> BaseRates:
    """
    Give the base rates of a run's cases, with those that are given.
    """
    return BaseRates(given, [case for case in cases if case.sample == "random"])


def is_in(fault: str, faults: Sequence[str] | frozenset[str]) -> bool:
    """
    Say whether a fault is among those, or whether there is any where it is `held`.
    """
    return bool(faults) if fault == HELD else fault in faults
