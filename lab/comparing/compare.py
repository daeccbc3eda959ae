"""
Two runs of the same cases: is B better than A, equal, worse, or can these cases not tell?

A is the baseline. What decides is the share of cases on which a run rightly held or rightly let go; see `rule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from ..errors import NotDecidable
from ..runs import Run
from .differences import Difference, accuracy_of, interval_of, precision_of, sign_turned
from .pairing import HELD, Matched, Pair, Right, Unread, match, right
from .price_of_asking import Price, price_of_asking

if TYPE_CHECKING:
    from ..statistics import Resamples

Word: TypeAlias = Literal["better", "equal within the margin", "worse", "not decidable"]

ALPHA: Final = 0.05
POWER: Final = 0.8
LEAST_CASES: Final = 10
"""With fewer nothing is decided, not even that two judges who were right on the same ones are equal."""
_READ: Final[Unread] = "left out"


class Paired(NamedTuple):
    """
    One subject, `held` or a fault, over the cases that both runs answered.
    """

    subject: str
    cases: int
    with_it: int
    """Cases whose label has it."""
    both: int
    only_a: int
    only_b: int
    neither: int
    """Cases that were right by the majority of repeats."""
    tied: int
    """Cases with as many right repeats as wrong ones in A or in B: they stand in none of the four counts."""
    p: float
    """Of the exact McNemar test."""
    p_holm: float
    """Adjusted for the number of faults; for `held` the same as `p`."""
    accuracy: Difference
    recall: Difference
    precision: Difference
    false_blocks: Difference
    """The share of cases without it on which it was named; for `held`, of clean turns that were held."""
    could_show: float | None
    """The smallest difference in accuracy that so many cases show in 8 of 10 tries, if as many differ; None where they can show none."""


class Arm(NamedTuple):
    """
    Who was asked what in one run.
    """

    folder: str
    rubric: str
    rubric_hash: str
    model: str
    judge: str
    effort: str
    repeats: int
    unread: int
    """Questions without a readable answer."""


class Comparison(NamedTuple):
    """
    What came of it.
    """

    verdict: Word
    why: str
    rule: str
    margin: float
    split: str
    a: Arm
    b: Arm
    cases: int
    """Labelled, and sure ones only where that was asked."""
    sessions: int
    left_out: int
    repeats: int
    """Of each question, the first ones that both runs have."""
    held: Paired
    faults: tuple[Paired, ...]
    price: Price


def rule(margin: float = 0.0) -> str:
    """
    Say in words by what the verdict is reached.
    """
    equal, loss = "right to the same degree on every case", "0"
    if margin:
        loss = f"-{margin:g}"
        equal = f"all three intervals' lower ends are at or above {loss}, or {equal}"
    return (
        f"Accuracy of holding, recall, and clean turns let through, B less A, each with its 95 % interval. "
        f"Better: the interval of accuracy is above 0, McNemar's exact p < {ALPHA:g}, and no interval lies below {loss} as a whole. "
        f"Equal: {equal}. Worse: the interval of accuracy is below {loss} and p < {ALPHA:g}, "
        f"or any fault's is, by Holm's p. Else, and with fewer than {LEAST_CASES} cases, not decidable."
    )


def compare(a: Run, b: Run, *, margin: float = 0.0, seed: int = 0, sure_only: bool = False) -> Comparison:
    """
    Compare B with the baseline A on their labelled cases, by the rule that `rule` tells.

    Neither better nor equal is B where a fault was lost by Holm's p and may have been by more than the margin. An interval is the wider
    of the cluster bootstrap's and of Tango's for so few differing cases. Raises `NotDecidable` where the runs cannot be compared: see
    `match`; the baseline is right on each case; questions without a readable answer could turn the verdict.
    """
    matched = match(a, b, sure_only=sure_only)
    _check_room_for_gain(matched)
    draws = _draws(matched, _READ, seed)
    outcomes = _outcomes(matched, _READ, draws)
    word, why = _verdict(outcomes, draws, margin)
    _check_errors_cannot_turn(matched, word, margin, seed)

    paired = [_paired(outcome, p, draws) for outcome, p in zip(outcomes, _adjusted(outcomes), strict=True)]
    unread_a, unread_b = matched.unread()
    return Comparison(
        verdict=word,
        why=why,
        rule=rule(margin),
        margin=margin,
        split="test" if "test" in (a.manifest.split, b.manifest.split) else "dev",
        a=_arm(a, unread_a),
        b=_arm(b, unread_b),
        cases=len(matched.cases),
        sessions=len({case.cluster for case in matched.cases}),
        left_out=matched.left_out,
        repeats=matched.repeats,
        held=paired[0],
        faults=tuple(paired[1:]),
        price=price_of_asking(matched),
    )


def as_json(comparison: Comparison) -> dict[str, Any]:
    """
    Give a comparison as JSON: amounts of money as plain decimals in texts, what is not known as null.
    """
    return cast("dict[str, Any]", _plain(comparison))


class _Outcome(NamedTuple):
    subject: str
    pairs: list[Pair]
    right: Right
    only_a: int
    only_b: int
    p: float
    difference: float
    low: float
    high: float

    @property
    def identical(self) -> bool:
        return self.right.a == self.right.b


def _check_room_for_gain(matched: Matched) -> None:
    found = right(matched.pairs(HELD))
    if not found.a:
        raise NotDecidable("no case has a readable answer in both runs: nothing can be compared")
    if min(found.a) == 1:
        raise NotDecidable(
            f"the baseline is at the maximum on all {len(found.a)} cases: no gain can be shown here; add harder cases"
        )


def _draws(matched: Matched, unread: Unread, seed: int) -> Resamples:
    from ..statistics import Resamples

    return Resamples(right(matched.pairs(HELD), unread).clusters, seed=seed)


def _outcomes(matched: Matched, unread: Unread, draws: Resamples) -> list[_Outcome]:
    return [_outcome(subject, matched.pairs(subject), unread, draws) for subject in matched.subjects]


def _outcome(subject: str, pairs: list[Pair], unread: Unread, draws: Resamples) -> _Outcome:
    from ..statistics import mcnemar_exact

    found = right(pairs, unread)
    table = found.table()
    p = mcnemar_exact(table.only_a, table.only_b)
    return _Outcome(
        subject, pairs, found, table.only_a, table.only_b, p, *interval_of(found, [True] * len(found.a), draws)
    )


def _adjusted(outcomes: Sequence[_Outcome]) -> list[float]:
    from ..statistics import holm

    return [outcomes[0].p, *holm([outcome.p for outcome in outcomes[1:]])]


def _verdict(outcomes: Sequence[_Outcome], draws: Resamples, margin: float) -> tuple[Word, str]:
    held = outcomes[0]
    n = len(held.right.a)
    if n < LEAST_CASES:
        return "not decidable", f"{n} cases are too few, at least {LEAST_CASES} are needed"
    if all(outcome.identical for outcome in outcomes):
        return "equal within the margin", f"B is right where A is right, on all {n} cases"

    lost_faults = _lost_faults(outcomes, margin)
    proven = [told for told, is_proven in lost_faults if is_proven]
    if proven:
        return "worse", proven[0]
    found = f"accuracy of holding {held.difference:+.3f} [{held.low:+.3f}, {held.high:+.3f}], p = {held.p:.3g}"
    if held.high < -margin and held.p < ALPHA and held.only_a > held.only_b:
        return "worse", found

    parts = _parts(held, draws)
    unknown = [f"{name} cannot be told" for name, interval in parts.items() if interval is None]
    spans = {name: interval for name, interval in parts.items() if interval is not None}
    shown = [f"{name} [{low:+.3f}, {high:+.3f}]" for name, (low, high) in spans.items() if high < -margin]
    against = [*(told for told, _ in lost_faults), *unknown, *shown]
    if against:
        return "not decidable", f"{found}; {against[0]}"
    if held.low > 0 and held.p < ALPHA and held.only_b > held.only_a:
        return "better", found
    open_ = [f"{name} [{low:+.3f}, {high:+.3f}]" for name, (low, high) in spans.items() if low < -margin]
    if margin and held.low >= -margin and not open_:
        return "equal within the margin", f"{found}: at most {margin:g} is lost, of recall and of clean turns too"
    more = f"; {open_[0]}" if margin and held.low >= -margin else ""
    return "not decidable", f"{found}{more}: these cases leave both open"


def _lost_faults(outcomes: Sequence[_Outcome], margin: float) -> list[tuple[str, bool]]:
    """
    Tell the faults that B lost by Holm's p, as far as that may be more than the margin, and whether it surely is.
    """
    return [
        (
            f"{of.subject}: right only with A on {of.only_a} cases, only with B on {of.only_b}, Holm's p = {p:.3g}",
            of.high < -margin,
        )
        for of, p in zip(outcomes[1:], _adjusted(outcomes)[1:], strict=True)
        if p < ALPHA and of.only_a > of.only_b and of.low < -margin
    ]


def _parts(held: _Outcome, draws: Resamples) -> dict[str, tuple[float, float] | None]:
    """
    Give the intervals of what accuracy may hide: it is that of whichever cases are more.
    """
    parts = {"recall": held.right.truth, "clean turns let through": [not truth for truth in held.right.truth]}
    return {
        name: interval_of(held.right, counted, draws)[1:] if any(counted) else None for name, counted in parts.items()
    }


def _check_errors_cannot_turn(matched: Matched, word: Word, margin: float, seed: int) -> None:
    count = sum(matched.unread())
    if not count or word == "not decidable":
        return

    fills: tuple[Unread, ...] = ("for a", "for b")
    for unread in fills:
        draws = _draws(matched, unread, seed)
        other, _ = _verdict(_outcomes(matched, unread, draws), draws, margin)
        if other != word:
            raise NotDecidable(
                f"{count} questions without a readable answer could turn {word!r} into {other!r}: ask them again"
            )


def _paired(outcome: _Outcome, p_holm: float, draws: Resamples) -> Paired:
    from ..statistics import smallest_difference

    found = outcome.right
    n = len(found.a)
    table = found.table()
    read = [pair for pair in outcome.pairs if pair.a.readable and pair.b.readable]
    return Paired(
        subject=outcome.subject,
        cases=n,
        with_it=sum(found.truth),
        **table._asdict(),
        p=outcome.p,
        p_holm=p_holm,
        accuracy=accuracy_of(found, [True] * n, draws),
        recall=accuracy_of(found, found.truth, draws),
        precision=precision_of(read, draws),
        false_blocks=sign_turned(accuracy_of(found, [not truth for truth in found.truth], draws)),
        could_show=smallest_difference(n, (table.only_a + table.only_b) / n, power=POWER, alpha=ALPHA),
    )


def _arm(run: Run, unread: int) -> Arm:
    manifest = run.manifest
    return Arm(
        folder=str(run.folder),
        rubric=manifest.rubric,
        rubric_hash=manifest.rubric_hash,
        model=manifest.model,
        judge=manifest.judge,
        effort=manifest.effort,
        repeats=manifest.repeats,
        unread=unread,
    )


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, tuple):
        parts = cast("tuple[object, ...]", value)
        fields: tuple[str, ...] | None = getattr(parts, "_fields", None)
        plain = [_plain(part) for part in parts]
        return dict(zip(fields, plain, strict=True)) if fields else plain
    return value
