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
from .paired_rates import paired_rates_interval
from .pairing import HELD, Matched, Pair, Right, Unread, match, right
from .price_of_asking import Price, price_of_asking

if TYPE_CHECKING:
    from ..statistics import Resamples

Word: TypeAlias = Literal["better", "equal within the margin", "worse", "not decidable"]

ALPHA: Final = 0.05
POWER: Final = 0.8
_READ: Final[Unread] = "left out"
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
    ties_a: int
    ties_b: int
    """Cases with as many right repeats as wrong ones: they stand as wrong in the four counts."""
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
        equal = f"the interval's lower end is at or above {loss}, or {equal}"
    return (
        f"Accuracy of holding, B less A, with its 95 % interval. Better: the interval is above 0 and McNemar's exact p < {ALPHA:g}. "
        f"Equal: {equal}. Worse: the interval is below {loss}, or p < {ALPHA:g} against B; "
        f"or any fault is so by Holm's p. Else not decidable."
    )


def compare(a: Run, b: Run, *, margin: float = 0.0, seed: int = 0, sure_only: bool = False) -> Comparison:
    """
    Compare B with the baseline A on their labelled cases, by the rule that `rule` tells.

    A fault counts against B only where its own accuracy may have fallen by more than the margin. An interval is the wider of the
    cluster bootstrap's and of Tango's for so few differing cases. Raises `NotDecidable` where the runs cannot be compared: see
    `match`; the baseline is right on each case; questions without a readable answer could turn the verdict.
    """
    matched = match(a, b, sure_only=sure_only)
    _check_room_for_gain(matched)
    draws = _draws(matched, _READ, seed)
    outcomes = _outcomes(matched, _READ, draws)
    word, why = _verdict(outcomes, margin)
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
    _, only_a, only_b, _ = found.table()
    p = mcnemar_exact(only_a, only_b)
    return _Outcome(subject, pairs, found, only_a, only_b, p, *_interval(found, [True] * len(found.a), draws))


def _adjusted(outcomes: Sequence[_Outcome]) -> list[float]:
    from ..statistics import holm

    return [outcomes[0].p, *holm([outcome.p for outcome in outcomes[1:]])]


def _verdict(outcomes: Sequence[_Outcome], margin: float) -> tuple[Word, str]:
    for outcome, p in zip(outcomes[1:], _adjusted(outcomes)[1:], strict=True):
        if p < ALPHA and outcome.only_a > outcome.only_b and outcome.low < -margin:
            return "worse", (
                f"{outcome.subject}: right only with A on {outcome.only_a} cases, only with B on {outcome.only_b}, "
                f"Holm's p = {p:.3g}"
            )

    held = outcomes[0]
    found = f"accuracy of holding {held.difference:+.3f} [{held.low:+.3f}, {held.high:+.3f}], p = {held.p:.3g}"
    if all(outcome.identical for outcome in outcomes):
        return "equal within the margin", f"B is right where A is right, on all {len(held.right.a)} cases"
    if held.low > 0 and held.p < ALPHA and held.only_b > held.only_a:
        return "better", found
    if margin and held.low >= -margin:
        return "equal within the margin", f"{found}: at most {margin:g} is lost"
    if held.high < -margin or (held.p < ALPHA and held.only_a > held.only_b):
        return "worse", found
    return "not decidable", f"{found}: these cases leave both open"


def _check_errors_cannot_turn(matched: Matched, word: Word, margin: float, seed: int) -> None:
    count = sum(matched.unread())
    if not count or word == "not decidable":
        return

    fills: tuple[Unread, ...] = ("for a", "for b")
    for unread in fills:
        other, _ = _verdict(_outcomes(matched, unread, _draws(matched, unread, seed)), margin)
        if other != word:
            raise NotDecidable(
                f"{count} questions without a readable answer could turn {word!r} into {other!r}: ask them again"
            )


def _paired(outcome: _Outcome, p_holm: float, draws: Resamples) -> Paired:
    from ..statistics import smallest_difference

    found = outcome.right
    n = len(found.a)
    both, only_a, only_b, neither = found.table()
    read = [pair for pair in outcome.pairs if pair.a.readable and pair.b.readable]
    with_it = [pair.truth for pair in read]
    return Paired(
        subject=outcome.subject,
        cases=n,
        with_it=sum(with_it),
        both=both,
        only_a=only_a,
        only_b=only_b,
        neither=neither,
        ties_a=found.a.count(0.5),
        ties_b=found.b.count(0.5),
        p=outcome.p,
        p_holm=p_holm,
        accuracy=_accuracy(found, [True] * n, draws),
        recall=_accuracy(found, with_it, draws),
        precision=_precision(read, draws),
        false_blocks=_reversed(_accuracy(found, [not truth for truth in with_it], draws)),
        could_show=smallest_difference(n, (only_a + only_b) / n, power=POWER, alpha=ALPHA),
    )


def _accuracy(found: Right, counted: Sequence[bool], draws: Resamples) -> Difference:
    """
    The share of right cases among those that count: the recall where these are the ones that have the subject.
    """
    of = found.only(counted)
    if not of.a:
        return Difference(None, None, None, None, None)
    n = len(of.a)
    return Difference(sum(of.a) / n, sum(of.b) / n, *_interval(found, counted, draws))


def _interval(found: Right, counted: Sequence[bool], draws: Resamples) -> tuple[float, float, float]:
    of = found.only(counted)
    n = len(of.a)
    difference = (sum(of.b) - sum(of.a)) / n
    rows = [[(b - a) * count, count] for a, b, count in zip(found.a, found.b, counted, strict=True)]
    low, high = draws.interval(rows, lambda sums: sums[:, 0] / sums[:, 1]) or (-1.0, 1.0)
    if high - low < _SURELY:
        # No draw differs, which is no certainty: so many sessions without a difference leave that much open.
        low, high = (difference + end for end in paired_rates_interval(0, 0, len(set(of.clusters))))

    _, only_a, only_b, _ = of.table()
    counts_low, counts_high = paired_rates_interval(only_a, only_b, n)
    return difference, max(-1.0, min(low, counts_low)), min(1.0, max(high, counts_high))


def _reversed(of: Difference) -> Difference:
    def turned(value: float | None, whole: int) -> float | None:
        return None if value is None else whole - value

    return Difference(turned(of.a, 1), turned(of.b, 1), turned(of.difference, 0), turned(of.high, 0), turned(of.low, 0))


def _precision(pairs: Sequence[Pair], draws: Resamples) -> Difference:
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
