"""
Two runs case by case: which cases can be compared at all, and who was right on each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Literal, NamedTuple, TypeAlias

from ..cases import Case
from ..errors import NotDecidable
from ..runs import Reading, Run, cases_hash
from ..scoring.scorable import HELD, check_failures, check_scorable

Unread: TypeAlias = Literal["left out", "for a", "for b"]
"""What becomes of questions without a readable answer: left out, or counted as right for one run and wrong for the other."""


class Side(NamedTuple):
    """
    One case in one run: how often the subject was named, in how many of its readings.
    """

    named: int
    readable: int
    asked: int

    @property
    def share(self) -> float:
        """
        Of the readable ones that named it.
        """
        return self.named / self.readable if self.readable else 0.0


class Pair(NamedTuple):
    """
    One case in both runs.
    """

    cluster: str
    truth: bool
    """Whether the label has the subject."""
    a: Side
    b: Side


class Right(NamedTuple):
    """
    How right each run was, case by case: the shares of right repeats.
    """

    clusters: list[str]
    truth: list[bool]
    """Whether the label has the subject."""
    a: list[float]
    b: list[float]

    def only(self, counted: Sequence[bool]) -> Right:
        """
        Give the cases that count.
        """
        return Right(
            list(compress(self.clusters, counted)),
            list(compress(self.truth, counted)),
            list(compress(self.a, counted)),
            list(compress(self.b, counted)),
        )

    def table(self) -> Table:
        """
        Count the cases that each run got right by the majority of its repeats.
        """
        told = [(a > 0.5, b > 0.5) for a, b in zip(self.a, self.b, strict=True) if 0.5 not in (a, b)]
        return Table(
            both=told.count((True, True)),
            only_a=told.count((True, False)),
            only_b=told.count((False, True)),
            neither=told.count((False, False)),
            tied=len(self.a) - len(told),
        )


class Table(NamedTuple):
    """
    Cases, by who was right.
    """

    both: int
    only_a: int
    only_b: int
    neither: int
    tied: int
    """As often right as wrong in one of the runs: nobody's loss."""


class Matched(NamedTuple):
    """
    What of two runs can be compared.
    """

    cases: list[Case]
    """With labels, and sure ones only where that was asked."""
    left_out: int
    subjects: tuple[str, ...]
    """`held`, then the faults that both rubrics know."""
    repeats: int
    """The first ones of each run, as many as both have."""
    a: dict[str, list[Reading]]
    """By case id."""
    b: dict[str, list[Reading]]

    def pairs(self, subject: str) -> list[Pair]:
        """
        Give each case with what both runs said of the subject.
        """
        return [
            Pair(
                case.cluster,
                bool(case.labels) if subject == HELD else subject in (case.labels or ()),
                _side(self.a[case.id], subject),
                _side(self.b[case.id], subject),
            )
            for case in self.cases
        ]

    def unread(self) -> tuple[int, int]:
        """
        Count the questions without a readable answer in A and in B.
        """
        a, b = ([reading for each in run.values() for reading in each] for run in (self.a, self.b))
        return _unread(a), _unread(b)


def match(a: Run, b: Run, *, sure_only: bool = False) -> Matched:
    """
    Put two runs beside each other. Raises `NotDecidable` where the cases, the faults or too many errors forbid it.
    """
    _check_same_cases(a, b)
    cases = [case for case in a.cases if case.labels is not None and (case.is_sure or not sure_only)]
    if not cases:
        raise NotDecidable(f"{a.folder}: no {'sure ' if sure_only else ''}labelled case in it: nothing can be compared")

    wanted = {case.id for case in cases}
    repeats = min(a.manifest.repeats, b.manifest.repeats)
    compared: list[dict[str, list[Reading]]] = []
    for run in (a, b):
        readings = [reading for reading in run.readings() if reading.repeat < repeats]
        check_scorable(run, readings)
        compared.append(_by_case(readings, wanted))
        check_failures(run, [reading for each in compared[-1].values() for reading in each], "compared questions")
    return Matched(cases, len(a.cases) - len(cases), _subjects(a, b, cases, compared), repeats, *compared)


def right(pairs: Sequence[Pair], unread: Unread = "left out") -> Right:
    """
    Give how right both runs were on each case; cases that one of them has no readable answer for are left out, or filled in.
    """
    fill_a, fill_b = {"left out": (None, None), "for a": (1, 0), "for b": (0, 1)}[unread]
    found = Right([], [], [], [])
    for pair in pairs:
        a, b = _right(pair.a, pair.truth, fill_a), _right(pair.b, pair.truth, fill_b)
        if a is None or b is None:
            continue
        found.clusters.append(pair.cluster)
        found.truth.append(pair.truth)
        found.a.append(a)
        found.b.append(b)
    return found


def _right(side: Side, truth: bool, fill: int | None) -> float | None:
    hits = side.named if truth else side.readable - side.named
    if fill is not None:
        return (hits + fill * (side.asked - side.readable)) / side.asked
    return hits / side.readable if side.readable else None


def _side(readings: Sequence[Reading], subject: str) -> Side:
    read = [reading for reading in readings if reading.verdict is not None]
    named = sum(bool(reading.faults) if subject == HELD else subject in reading.faults for reading in read)
    return Side(named, len(read), len(readings))


def _by_case(readings: Sequence[Reading], wanted: set[str]) -> dict[str, list[Reading]]:
    found: dict[str, list[Reading]] = {}
    for reading in readings:
        if reading.case.id in wanted:
            found.setdefault(reading.case.id, []).append(reading)
    return found


def _check_same_cases(a: Run, b: Run) -> None:
    # Not by the manifests alone: a file of cases may have been changed since.
    if cases_hash(a.cases) == cases_hash(b.cases):
        return

    ids_a, ids_b = ({case.id for case in run.cases} for run in (a, b))
    differ = len(ids_a ^ ids_b)
    what = (
        f"{differ} ids differ ({len(ids_a - ids_b)} only in A, {len(ids_b - ids_a)} only in B)"
        if differ
        else f"{_changed(a, b)} of {len(ids_a)} cases have other turns, labels or splits"
    )
    raise NotDecidable(f"the case sets differ: {what}: run both on the same cases")


def _changed(a: Run, b: Run) -> int:
    hashes = {case.id: cases_hash([case]) for case in b.cases}
    return sum(hashes[case.id] != cases_hash([case]) for case in a.cases)


def _subjects(a: Run, b: Run, cases: Sequence[Case], readings: Sequence[dict[str, list[Reading]]]) -> tuple[str, ...]:
    """
    What is compared. A fault that one rubric alone knows does no harm as long as no label and no answer has it.
    """
    labelled = {label for case in cases for label in case.labels or ()}
    named = {fault for asked in readings for each in asked.values() for reading in each for fault in reading.faults}
    for fault in sorted((labelled | named) & (set(a.manifest.faults) ^ set(b.manifest.faults))):
        knows = "A" if fault in a.manifest.faults else "B"
        where = "labels" if fault in labelled else "answers"
        raise NotDecidable(
            f"the rubrics differ in their faults: {fault!r} stands in the {where}, and only {knows} knows it"
        )
    return HELD, *(fault for fault in a.manifest.faults if fault in b.manifest.faults)


def _unread(readings: Sequence[Reading]) -> int:
    return sum(reading.verdict is None for reading in readings)
