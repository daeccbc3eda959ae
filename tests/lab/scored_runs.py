"""
Runs to be scored: forty cases with labels, and judges that answer them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turngate.judge.settings import JudgeSettings
from turngate.lab.cases import Case, new_case
from turngate.lab.runs import Answered, Manifest, Run, keep, open_run, read_run
from turngate.lab.scoring.marks import Marks
from turngate.lab.scoring.score import Score
from turngate.rubric.library import load
from turngate.rubric.turn import Turn

FAULTS = load().faults
CLAIMS, OPENERS, CLEAN = 12, 4, 24

Judge = Callable[[Case, int], "Answered | None"]


def case(number: int, labels: list[str] | None, **fields: Any) -> Case:
    turn = Turn("Fix the parser", f"Sure. Case {number}: the parser is fixed and all tests pass." + "!" * number)
    return new_case(f"c{number:03}", turn, labels=labels, **{"session": f"s{number % 9}", **fields})


def cases() -> list[Case]:
    """
    Forty cases: 12 with a claim, 4 with an opener, 24 clean.
    """
    labels = [["claim"]] * CLAIMS + [["opener"]] * OPENERS + [[]] * CLEAN
    return [case(number, list(label)) for number, label in enumerate(labels)]


def says(one: Case, repeat: int, *faults: str, quote: str = "all tests pass", **fields: Any) -> Answered:
    findings = [{"fault": fault, "quote": quote, "reason": "No test ran."} for fault in faults]
    return Answered.model_validate(
        {
            "case": one.id,
            "repeat": repeat,
            "hash": "0" * 32,
            "outcome": "answered",
            "text": json.dumps({"findings": findings}),
            **fields,
        }
    )


def fails(one: Case, repeat: int, outcome: str = "error", detail: str = "500: overloaded") -> Answered:
    return Answered.model_validate(
        {"case": one.id, "repeat": repeat, "hash": "0" * 32, "outcome": outcome, "detail": detail}
    )


def right(one: Case, repeat: int) -> Answered:
    return says(one, repeat, *(one.labels or ()))


def half_right(one: Case, repeat: int) -> Answered:
    """
    Find every fault, and hold six of the 24 clean turns.
    """
    return says(one, repeat, "claim") if not one.labels and int(one.id[1:]) < 22 else right(one, repeat)


def run_on_disk(folder: Path, judge: Judge, given: list[Case] | None = None, repeats: int = 1) -> Run:
    run = open_run(folder, given or cases(), Path("cases.jsonl"), load(), JudgeSettings(), repeats)
    for (name, repeat), answered in _answers(run.cases, judge, repeats).items():
        assert (name, repeat) == (answered.case, answered.repeat)
        keep(folder, answered)
    return read_run(folder)


def run_of(judge: Judge, given: list[Case] | None = None, repeats: int = 1) -> Run:
    """
    Make a run that is on no disk.
    """
    some = given or cases()
    manifest = Manifest(
        created_at="2026-01-01T00:00:00+00:00",
        cases_file="cases.jsonl",
        cases_hash="c" * 16,
        split="dev",
        rubric="turn_end@1",
        rubric_hash="r" * 12,
        faults=FAULTS,
        model="a-model",
        backend="anthropic",
        repeats=repeats,
        max_tokens=1024,
        max_input_tokens=2500,
        effort="medium",
    )
    return Run(Path("runs/one"), manifest, some, _answers(some, judge, repeats))


def _answers(some: list[Case], judge: Judge, repeats: int) -> dict[tuple[str, int], Answered]:
    asked = [(one, repeat) for one in some for repeat in range(repeats)]
    return {(one.id, repeat): found for one, repeat in asked if (found := judge(one, repeat)) is not None}


def of(found: Score, fault: str) -> Marks:
    return next(marks for marks in found.labelled.faults if marks.fault == fault)
