"""
A comparison in words and tables, as a person reads it.
"""

from __future__ import annotations

import textwrap
from decimal import Decimal
from typing import Final

from ...costing.screen import money, one_line
from ...costing.tables import table
from .compare import POWER, Arm, Comparison, Paired
from .differences import Difference
from .price_of_asking import Ratio

_WIDTH: Final = 110
_COUNTS: Final = ("cases\nwith it", "both\nright", "only\nA", "only\nB", "neither")


def compare_text(comparison: Comparison, *, styled: bool = False) -> str:
    """
    Give all of a comparison: who was compared, figures with intervals, cost, what could have been shown, and the verdict.
    """
    subjects = [comparison.held, *comparison.faults]
    blocks = [
        _arms(comparison),
        table(
            ["subject", *_COUNTS, "p", "Holm's p"], [_count_row(each) for each in subjects], right=_RIGHT, styled=styled
        ),
        table(["figure", "A", "B", "B less A"], _figure_rows(subjects), right=("A", "B"), styled=styled),
        table(["per question", "A", "B", "B / A"], _price_rows(comparison), right=("A", "B", "B / A"), styled=styled),
        [_could_show(comparison.held), *textwrap.wrap(one_line(comparison.rule), _WIDTH)],
        [one_line(f"B is {_told(comparison)}: {comparison.why}")],
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


_RIGHT: Final = (*_COUNTS, "p", "Holm's p")


def _arms(comparison: Comparison) -> list[str]:
    left_out = f", {comparison.left_out} left out" if comparison.left_out else ""
    lines = [
        f"A, the baseline: {_arm(comparison.a)}",
        f"B:               {_arm(comparison.b)}",
        f"{comparison.cases} labelled cases of the {comparison.split} split in {comparison.sessions} sessions{left_out}",
    ]
    unread = comparison.a.unread + comparison.b.unread
    if unread:
        lines.append(f"without a readable answer: {comparison.a.unread} questions in A, {comparison.b.unread} in B")
    return [*lines, *repeats_notes(comparison)]


def repeats_notes(comparison: Comparison) -> list[str]:
    """
    Say which repeats count, and how many cases are tied, where that is not plain.
    """
    lines: list[str] = []
    if comparison.a.repeats != comparison.b.repeats:
        count = f"{comparison.repeats} repeats" if comparison.repeats > 1 else "one"
        lines.append(f"of each question only the first {count} of both runs")
    if comparison.held.tied:
        lines.append(f"as often right as wrong over repeats, and in none of the counts: {comparison.held.tied} cases")
    return lines


def _arm(arm: Arm) -> str:
    judge = arm.judge or arm.model
    effort = f" ({arm.effort})" if arm.effort and not arm.judge else ""
    repeats = f", {arm.repeats} repeats" if arm.repeats > 1 else ""
    return one_line(f"{arm.folder}: {arm.rubric} {arm.rubric_hash[:8]} by {judge}{effort}{repeats}")


def _count_row(of: Paired) -> list[str]:
    counts = of.with_it, of.both, of.only_a, of.only_b, of.neither
    return [of.subject, *map(str, counts), _p(of.p), _p(of.p_holm) if of.subject != "held" else ""]


def _figure_rows(subjects: list[Paired]) -> list[list[str]]:
    return [
        [f"{of.subject}: {name}", _share(figure.a), _share(figure.b), _interval(figure)]
        for of in subjects
        for name, figure in (
            ("accuracy", of.accuracy),
            ("recall", of.recall),
            ("precision", of.precision),
            ("false blocks", of.false_blocks),
        )
        if figure.a is not None or figure.b is not None
    ]


def _price_rows(comparison: Comparison) -> list[list[str]]:
    price = comparison.price
    return [
        _price_row("cost", price.cost_usd),
        _price_row("input tokens", price.input_tokens),
        _price_row("output tokens", price.output_tokens),
        _price_row("latency, median ms", price.latency_ms),
    ]


def _price_row(name: str, of: Ratio) -> list[str]:
    return [name, _amount(of.a), _amount(of.b), "unknown" if of.ratio is None else f"{of.ratio:.2f}"]


def _amount(value: Decimal | float | None) -> str:
    if value is None or isinstance(value, Decimal):
        return money(value)
    return f"{value:,.0f}"


def _could_show(held: Paired) -> str:
    if held.could_show is None:
        return f"{held.cases} cases are too few to show any difference."
    return (
        f"If as many cases differ again, {held.cases} cases show a difference of {held.could_show:.3f} or more "
        f"in accuracy of holding with a power of {POWER:.0%}."
    )


def _told(comparison: Comparison) -> str:
    word = comparison.verdict
    return f"{word} ({comparison.margin:g})" if word == "equal within the margin" else word


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _interval(figure: Difference) -> str:
    if figure.difference is None:
        return "unknown"
    if figure.low is None or figure.high is None:
        return f"{figure.difference:+.3f} [unknown]"
    return f"{figure.difference:+.3f} [{figure.low:+.3f}, {figure.high:+.3f}]"


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"
