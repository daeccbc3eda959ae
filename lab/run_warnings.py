"""
What a person should know of a run before believing its figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .looks import seen_as_test
from .runs import ANSWERS, Run


def run_warnings(environ: Mapping[str, str], runs: Sequence[Run]) -> list[str]:
    """
    Give a line for each run whose answers were cut off, and one where turns were moved from the test split to the dev split.
    """
    warnings = [
        f"{run.folder / ANSWERS}: {run.cut_off} lines are no JSON, as a crash leaves them: passed over"
        for run in runs
        if run.cut_off
    ]
    if seen := seen_as_test(environ, runs):
        warnings.append(
            f"{seen} turns of the dev split were looked at as test turns before: what was tuned on them fits that test"
        )
    return warnings


def labels_taken(run: Run) -> list[str]:
    """
    Give a line where `open_run` took other labels than the run had.
    """
    if not run.relabelled:
        return []
    return [f"{run.folder}: labels of {run.relabelled} cases changed since; the run has the new ones"]
