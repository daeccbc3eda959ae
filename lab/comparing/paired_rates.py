"""
How far two rates of the same cases may lie apart, however few of the cases differ.

A bootstrap cannot draw what it never saw: one case that differs among a hundred gives it an interval of almost nothing. This
interval is of the counts alone, and says what such a count leaves open.
"""

from __future__ import annotations

import math
from typing import Final

_Z: Final = 1.959963984540054
"""Of a two-sided 95 % interval."""
_STEPS: Final = 60


def paired_rates_interval(only_a: int, only_b: int, n: int) -> tuple[float, float]:
    """
    Give the 95 % score interval of the rate of B less that of A (Tango, Statistics in Medicine 17, 1998, 891-908).

    Of `n` cases, `only_a` were right with A alone and `only_b` with B alone. Raises `ValueError` without cases.
    """
    if n <= 0 or min(only_a, only_b) < 0 or only_a + only_b > n:
        raise ValueError(f"{only_a} and {only_b} of {n} cases cannot differ")
    return _where(_Z, only_b, only_a, n), _where(-_Z, only_b, only_a, n)


def _where(z: float, for_b: int, for_a: int, n: int) -> float:
    """
    The difference at which the statistic, which falls as the difference grows, passes z.
    """
    low, high = -1.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _score(middle, for_b, for_a, n) > z else (low, middle)
    return (low + high) / 2


def _score(difference: float, for_b: int, for_a: int, n: int) -> float:
    # The likeliest rate of the cases that only A gets right, if the true difference were this one.
    linear = -for_b - for_a + (2 * n - for_b + for_a) * difference
    constant = -for_a * difference * (1 - difference)
    likeliest = (math.sqrt(max(0.0, linear * linear - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * likeliest + difference * (1 - difference))
    off = for_b - for_a - n * difference
    return off / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, off) if off else 0.0
