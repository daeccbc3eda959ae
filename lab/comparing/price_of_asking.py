"""
What a question took in each of two runs, and how many times as much in B as in A.

What any answer leaves unknown is unknown for the run: a mean of the known ones would flatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from statistics import median
from typing import NamedTuple

from ...costing.usage import Usage, read_usage
from ..runs import Reading
from .pairing import Matched


class Ratio(NamedTuple):
    """
    What a question took in both runs, and B divided by A; None where it is not known.
    """

    a: Decimal | float | None
    b: Decimal | float | None
    ratio: float | None


class Price(NamedTuple):
    """
    Per question, that is, per case and repeat.
    """

    cost_usd: Ratio
    input_tokens: Ratio
    """Cached or not."""
    output_tokens: Ratio
    latency_ms: Ratio
    """The median."""


def price_of_asking(matched: Matched) -> Price:
    """
    Tell it for the questions that are compared.
    """
    a, b = ([reading for each in run.values() for reading in each] for run in (matched.a, matched.b))
    usages = _usages(a), _usages(b)
    return Price(
        cost_usd=_ratio(_cost(a), _cost(b)),
        input_tokens=_ratio(*(_mean(of, "prompt_tokens") for of in usages)),
        output_tokens=_ratio(*(_mean(of, "output_tokens") for of in usages)),
        latency_ms=_ratio(_latency(a), _latency(b)),
    )


def _ratio(a: Decimal | float | None, b: Decimal | float | None) -> Ratio:
    return Ratio(a, b, None if a is None or b is None or not a else float(b) / float(a))


def _cost(readings: Sequence[Reading]) -> Decimal | None:
    """
    The mean of all that was asked, failures included; None where any cost is unknown.
    """
    costs = [reading.answer.cost_usd for reading in readings if reading.answer]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) / len(known) if known and len(known) == len(costs) else None


def _usages(readings: Sequence[Reading]) -> list[Usage] | None:
    raw = [reading.answer.raw_usage for reading in readings if reading.answer and reading.verdict is not None]
    known = [usage for usage in (read_usage(each) for each in raw if each) if usage]
    return known if known and len(known) == len(raw) else None


def _mean(usages: Sequence[Usage] | None, name: str) -> float | None:
    return sum(getattr(usage, name) for usage in usages) / len(usages) if usages else None


def _latency(readings: Sequence[Reading]) -> float | None:
    took = [reading.answer.latency_ms for reading in readings if reading.answer and reading.verdict is not None]
    known = [each for each in took if each is not None]
    return float(median(known)) if known and len(known) == len(took) else None
