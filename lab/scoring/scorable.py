"""
Whether what a run's judge said can be scored at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...costing.screen import one_line
from ..errors import LabError, NotDecidable
from ..runs import Reading, Run

HELD: Final = "held"
"""Beside the faults' names: whether any fault is named, whichever."""

MOST_FAILED: Final = 0.01
"""Of the questions: failures are not spread by chance, and what the judge would have said of them is unknown."""


def check_scorable(run: Run, readings: Sequence[Reading]) -> None:
    """
    Look for failures among all questions, and among those of labelled cases, which others must not thin out.

    Raises `NotDecidable` where more than 1 % of them have no verdict, and `LabError` where a fault has the name `held`.
    """
    if HELD in run.manifest.faults:
        raise LabError(f"{run.folder}: its rubric has a fault named {HELD!r}, which stands for any fault in scores")
    check_failures(run, readings, "questions")
    check_failures(run, [reading for reading in readings if reading.case.labels is not None], "labelled questions")


def check_failures(run: Run, readings: Sequence[Reading], what: str) -> None:
    """
    Raise `NotDecidable`, with what came of them, where more than 1 % of the questions have no verdict.
    """
    failed = [reading for reading in readings if reading.verdict is None]
    if len(failed) <= MOST_FAILED * len(readings):
        return
    kinds = Counter(map(outcome_of, failed)).most_common()
    details = Counter(
        one_line(reading.answer.detail) for reading in failed if reading.answer and reading.answer.detail.strip()
    )
    commonest = f"; most often: {details.most_common(1)[0][0][:160]}" if details else ""
    raise NotDecidable(
        f"{run.folder}: no score: {len(failed):,} of {len(readings):,} {what} have no verdict "
        f"({len(failed) / len(readings):.1%}, at most 1 % may): "
        + ", ".join(f"{count:,} {kind}" for kind, count in kinds)
        + commonest
    )


def outcome_of(reading: Reading) -> str:
    """
    Say what came of a question: `readable`, `unreadable`, `unanswered`, or as the answer says.
    """
    if reading.verdict is not None:
        return "readable"
    if reading.answer is None:
        return "unanswered"
    return "unreadable" if reading.answer.outcome == "answered" else reading.answer.outcome
