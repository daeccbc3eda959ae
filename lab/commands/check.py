"""
`turngate lab check FILE`: is every line of it a case?
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ...stopgate.console import Commands, add_command, print_text, warn
from ..cases import Case, check_cases

_SHOWN: Final = 5
"""Ids of one turn."""


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
    alike = _of_one_turn(cases)
    contradictions = [same for same in alike if _contradict(same)]
    for same in contradictions:
        said = ", ".join(f"{case.id} ({_labels(case)})" for case in same[:_SHOWN])
        warn(f"{asked.file}: one turn under {len(same)} ids, with labels that contradict: {said}")
    if alike:
        ids = ", ".join(case.id for case in alike[0][:_SHOWN])
        warn(f"{asked.file}: turns that stand under several ids, and count as often: {len(alike)}, such as {ids}")
    print_text(_summary(cases))
    return 0 if cases and not problems and not contradictions else 2


def _of_one_turn(cases: Sequence[Case]) -> list[list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.turn_hash, []).append(case)
    return [same for same in found.values() if len(same) > 1]


def _contradict(same: Sequence[Case]) -> bool:
    return len({frozenset(case.labels) for case in same if case.labels is not None}) > 1


def _labels(case: Case) -> str:
    return "not labelled" if case.labels is None else ", ".join(case.labels) or "none"


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
