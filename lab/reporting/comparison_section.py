"""
One run beside the baseline, as a section of a report.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ...costing.screen import money
from ..comparing.compare import POWER, Comparison, Paired
from ..comparing.differences import Difference
from ..comparing.price_of_asking import Ratio
from ..comparing.text import repeats_notes
from ..scoring.text import UNKNOWN
from .document import Block, Plot, Prose, Section, Table
from .report import Compared
from .shown_text import plain


def comparison_section(each: Compared) -> Section:
    """
    Give the section of one comparison, or why there is none.
    """
    title = f"{each.arm} beside {each.baseline}, the baseline"
    name = f"compared-{each.arm}"
    if each.comparison is None:
        return Section(name, title, (Prose(f"Not decidable: {each.why_not}", is_warning=True),))
    return Section(name, title, tuple(_compared(each, each.comparison)))


def _compared(each: Compared, found: Comparison) -> Iterator[Block]:
    word = f"{found.verdict} ({found.margin:g})" if found.verdict == "equal within the margin" else found.verdict
    subjects = (found.held, *found.faults)
    a, b = each.baseline, each.arm
    left_out = f", {found.left_out} left out" if found.left_out else ""
    yield Prose(f"{b} is {word}: {plain(found.why)}.")
    yield Prose(
        f"{found.cases} labelled cases of the {found.split} split in {found.sessions} sessions{left_out}. {_could_show(found.held)}"
    )
    for note in repeats_notes(found):
        yield Prose(f"{note[0].upper()}{note[1:]}.")
    yield Plot(f"difference-{b}", f"Accuracy, {b} less {a}, with 95 % intervals")
    yield Table(
        "Cases that each got right",
        ("", "cases with it", "both", f"only {a}", f"only {b}", "neither", "p", "Holm's p"),
        tuple(_count_row(one) for one in subjects),
    )
    yield Table(
        "Figures",
        ("", a, b, f"{b} less {a}"),
        tuple(row for one in subjects for row in _difference_rows(one)),
    )
    price = found.price
    yield Table(
        "Per question",
        ("", a, b, f"{b} / {a}"),
        (
            _ratio_row("cost", price.cost_usd),
            _ratio_row("input tokens", price.input_tokens),
            _ratio_row("output tokens", price.output_tokens),
            _ratio_row("latency, median ms", price.latency_ms),
        ),
    )
    yield Prose(plain(found.rule))


def _could_show(held: Paired) -> str:
    if held.could_show is None:
        return f"{held.cases} cases are too few to show any difference."
    return (
        f"If as many cases differ again, {held.cases} cases show a difference of {held.could_show:.3f} or more "
        f"in accuracy of holding with a power of {POWER:.0%}."
    )


def _count_row(of: Paired) -> tuple[str, ...]:
    counts = map(str, (of.with_it, of.both, of.only_a, of.only_b, of.neither))
    return of.subject, *counts, _p(of.p), _p(of.p_holm) if of.subject != "held" else ""


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else "<0.001"


def _difference_rows(of: Paired) -> Iterator[tuple[str, ...]]:
    shares = (
        ("accuracy", of.accuracy),
        ("recall", of.recall),
        ("precision", of.precision),
        ("false blocks", of.false_blocks),
    )
    for name, figure in shares:
        if figure.a is not None or figure.b is not None:
            yield f"{of.subject}: {name}", _share(figure.a), _share(figure.b), _difference(figure)


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"


def _difference(figure: Difference) -> str:
    if figure.difference is None:
        return UNKNOWN
    if figure.low is None or figure.high is None:
        return f"{figure.difference:+.3f} [unknown]"
    return f"{figure.difference:+.3f} [{figure.low:+.3f}, {figure.high:+.3f}]"


def _ratio_row(name: str, of: Ratio) -> tuple[str, ...]:
    return name, _amount(of.a), _amount(of.b), UNKNOWN if of.ratio is None else f"{of.ratio:.2f}"


def _amount(value: Decimal | float | None) -> str:
    return money(value) if value is None or isinstance(value, Decimal) else f"{value:,.0f}"
