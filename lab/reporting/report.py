"""
What stands in a report: runs, their scores, the comparisons with the first of them, what failed, and each disagreement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..comparing.compare import Comparison, compare
from ..comparing.compare import as_json as comparison_as_json
from ..comparing.pairing import match
from ..errors import LabError, NotDecidable
from ..runs import Manifest, Reading, Run
from ..scoring.marks import HELD, Judged
from ..scoring.scorable import outcome_of
from ..scoring.score import Score, score
from ..scoring.score import as_json as score_as_json
from .disagreements import Disagreement, disagreements, judged_of, readings_by_case
from .shown_text import plain

FORMAT: Final = 1
CLEAN: Final = "clean"
LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Failure(NamedTuple):
    """
    A question without a verdict.
    """

    case: str
    repeat: int
    """From 1."""
    outcome: str
    """`unanswered`, `unreadable`, or as the answer says."""
    detail: str


class ConfusionRow(NamedTuple):
    """
    The cases that people gave one label.
    """

    label: str
    cases: int
    named: tuple[float, ...]
    """Cases on which each column's fault was named, repeats as parts of a case."""


class Confusion(NamedTuple):
    """
    Labels beside what was named; a case with two labels stands in two rows.
    """

    columns: tuple[str, ...]
    """The rubric's faults, and `clean` where nothing was named."""
    rows: tuple[ConfusionRow, ...]


class Arm(NamedTuple):
    """
    One run, with its score or why it has none.
    """

    letter: str
    folder: str
    manifest: Manifest
    cases: int
    models_answered: tuple[str, ...]
    via: tuple[str, ...]
    score: Score | None
    why_no_score: str
    confusion: Confusion | None
    failures: tuple[Failure, ...]

    @property
    def judge(self) -> str:
        """
        Who answered.
        """
        return plain(self.manifest.judge or self.manifest.model)


class Compared(NamedTuple):
    """
    An arm beside the baseline, or why these cannot be compared.
    """

    baseline: str
    arm: str
    comparison: Comparison | None
    why_not: str


class Report(NamedTuple):
    """
    All of a report.
    """

    arms: tuple[Arm, ...]
    comparisons: tuple[Compared, ...]
    disagreements: tuple[Disagreement, ...]
    """Of the arms that have a score."""
    look: int
    """Which look at these test turns it is; 0 for the dev split."""
    turngate: str


def report(
    runs: Sequence[Run],
    *,
    margin: float = 0.0,
    rates: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Report:
    """
    Put together what is known of runs of the same cases, the first of which is the baseline. Looks are the caller's to count.

    Raises `LabError` where there are too many runs, and `NotDecidable` where their cases differ.
    """
    from importlib.metadata import version

    if not 0 < len(runs) <= len(LETTERS):
        raise LabError(f"a report takes 1 to {len(LETTERS)} runs, not {len(runs)}")
    for other in runs[1:]:
        check_same_cases(runs[0], other)

    arms = [_arm(letter, run, rates or {}, seed) for letter, run in zip(LETTERS, runs, strict=False)]
    scored = {arm.letter: run for arm, run in zip(arms, runs, strict=True) if arm.score}
    return Report(
        tuple(arms),
        tuple(_compared(arms[0], arm, runs[0], run, margin, seed) for arm, run in zip(arms[1:], runs[1:], strict=True)),
        tuple(disagreements(scored)),
        0,
        version("turngate"),
    )


def check_same_cases(a: Run, b: Run) -> None:
    """
    Say how two runs' cases differ. Raises `NotDecidable`.
    """
    if a.manifest.cases_hash != b.manifest.cases_hash:
        match(a, b)  # tells more
        raise NotDecidable(f"the case sets of {a.folder} and {b.folder} differ")


def as_json(of: Report) -> dict[str, Any]:
    """
    Give a report as JSON: amounts of money as plain decimals in texts, what is not known as null.
    """
    return {
        "report": FORMAT,
        "turngate": of.turngate,
        "look": of.look,
        "arms": [_arm_as_json(arm) for arm in of.arms],
        "comparisons": [
            {**each._asdict(), "comparison": comparison_as_json(each.comparison) if each.comparison else None}
            for each in of.comparisons
        ],
        "disagreements": score_as_json(of.disagreements),
    }


def _arm_as_json(arm: Arm) -> dict[str, Any]:
    rest = {name: score_as_json(value) for name, value in arm._asdict().items() if name != "manifest"}
    return {**rest, "manifest": arm.manifest.model_dump(mode="json")}


def _arm(letter: str, run: Run, rates: Mapping[str, float], seed: int) -> Arm:
    known = {fault: rate for fault, rate in rates.items() if fault == HELD or fault in run.manifest.faults}
    found: Score | None = None
    why = ""
    try:
        found = score(run, rates=known, seed=seed)
    except NotDecidable as error:
        why = plain(str(error))
    by_case = readings_by_case(run)
    judged = [one for readings in by_case.values() if (one := judged_of(readings))]
    answers = run.answers.values()
    return Arm(
        letter,
        str(run.folder),
        run.manifest,
        len(run.cases),
        tuple(sorted({plain(answer.model_answered) for answer in answers if answer.model_answered})),
        tuple(sorted({answer.via for answer in answers})),
        found,
        why,
        _confusion(judged, run.manifest.faults) if found else None,
        tuple(failure for readings in by_case.values() for failure in map(_failure, readings) if failure),
    )


def _confusion(judged: Sequence[Judged], faults: Sequence[str]) -> Confusion:
    rows: list[ConfusionRow] = []
    for label in (*faults, CLEAN):
        some = [one for one in judged if (label in (one.case.labels or ()) if label != CLEAN else not one.case.labels)]
        named = [sum(one.share(fault) for one in some) for fault in faults]
        nothing = sum(named.count(frozenset()) / len(named) for named in (one.named for one in some))
        rows.append(ConfusionRow(label, len(some), (*named, float(nothing))))
    return Confusion((*faults, CLEAN), tuple(rows))


def _failure(reading: Reading) -> Failure | None:
    if reading.verdict is not None:
        return None
    answer, outcome = reading.answer, outcome_of(reading)
    detail = "" if answer is None else answer.text[:2000] if outcome == "unreadable" else answer.detail
    return Failure(reading.case.id, reading.repeat + 1, outcome, plain(detail)[:300])


def _compared(baseline: Arm, arm: Arm, a: Run, b: Run, margin: float, seed: int) -> Compared:
    try:
        return Compared(baseline.letter, arm.letter, compare(a, b, margin=margin, seed=seed), "")
    except NotDecidable as error:
        return Compared(baseline.letter, arm.letter, None, plain(str(error)))
