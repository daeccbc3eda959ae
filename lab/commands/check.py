"""
`turngate lab check FILE`: is every line of it a case?
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ...stopgate.console import Commands, add_command, print_text, warn
from ..cases import Case, check_cases


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    parser = add_command(commands, "check", _check, "validate a file of cases", "turngate lab check cases.jsonl")
    parser.add_argument("file", type=Path, metavar="FILE", help="JSON Lines")


def _check(asked: argparse.Namespace, _environ: Mapping[str, str]) -> int:
    cases, problems = check_cases(asked.file)
    for problem in problems:
        warn(f"{asked.file}: line {problem.line}: {problem.text}")
    if not cases and not problems:
        warn(f"{asked.file}: no case in it")
    print_text(_summary(cases))
    return 0 if cases and not problems else 2


def _summary(cases: list[Case]) -> str:
    labelled = [case for case in cases if case.labels is not None]
    counts = Counter(label for case in labelled for label in case.labels or ())
    lines = [
        f"{len(cases)} cases in {len({case.cluster for case in cases})} sessions",
        f"labelled: {len(labelled)}, of these clean: {sum(not case.labels for case in labelled)}",
        *(f"  {fault}: {count}" for fault, count in counts.most_common()),
        f"disputed or of low confidence: {sum(not case.is_sure for case in labelled)}",
        f"test split: {sum(case.split == 'test' for case in cases)}",
    ]
    return "\n".join(lines) + "\n"
