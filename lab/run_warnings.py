"""
What a person should know of a run before believing its figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from .looks import seen_as_test
from .runs import ANSWERS, Run


def run_warnings(environ: Mapping[str, str], runs: Sequence[Run]) -> list[str]:
    """
    Give a line for each run with damaged answers, and one where turns were moved from the test split to the dev split.
    """
    warnings = [warning for run in runs for warning in damaged(run)]
    if seen := seen_as_test(environ, runs):
        warnings.append(
            f"{seen} turns of the dev split were looked at as test turns before: what was tuned on them fits that test"
        )
    return warnings


def opening_warnings(run: Run) -> list[str]:
    """
    Give a line where `open_run` took other labels than the run had, and one where answers are damaged: they are asked again.
    """
    taken = [f"{run.folder}: labels of {run.relabelled} cases changed since; the run has the new ones"]
    return [*(taken if run.relabelled else []), *damaged(run)]


def damaged(run: Run) -> list[str]:
    """
    Give a line where answers are damaged: what they cost is lost.
    """
    if not run.damaged:
        return []
    lines = ", ".join(map(str, run.damaged[:_MOST_NAMED])) + (", ..." if len(run.damaged) > _MOST_NAMED else "")
    what = f"{len(run.damaged)} lines are no JSON, as a crash leaves them (lines {lines})"
    return [f"{run.folder / ANSWERS}: {what}: passed over; what no other line answers is unanswered"]


_MOST_NAMED: Final = 5
