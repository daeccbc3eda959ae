"""
The figures of the rubric's log come out of the kept answers again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from turngate.lab.commands import import_answers
from turngate.lab.runs import Run, read_run

from ..shared import SHARED, needs_shared
from .trials import command

ROOT = Path(__file__).resolve().parents[2]
LOG = (ROOT / "docs" / "rubric-log.md").read_text()


def imported(folder: Path, version: int, cases: str) -> Run:
    """
    The run of one version's answers.
    """
    assert SHARED
    rubrics = ROOT / "docs" / "rubrics" / str(version)
    words = ["--rubric-folder", rubrics] if (rubrics / "turn_end.toml").exists() else []
    given = ["import-answers", rubrics / f"{cases}.jsonl", "--cases", SHARED / "data/labelled" / f"{cases}.jsonl"]
    assert command(import_answers.add, *given, *words, "--run", folder, "--judge", "a stand-in") == 0
    return read_run(folder)


def row(name: str, version: int) -> list[int]:
    """
    The counts of a row of the log: so many of so many.
    """
    (line,) = [line for line in LOG.splitlines() if line.startswith(f"| {name} |")]
    return [int(count) for count in re.findall(r"\((\d+) of (\d+);", line)[version - 1]]


@needs_shared
@pytest.mark.parametrize("version", [1, 2])
def test_the_logs_figures_on_turns_are_those_of_the_answers(tmp_path: Path, version: int) -> None:
    """
    Holds and openers of the sure turns, counted here by hand and not by the lab's score.
    """
    sure = [reading for reading in imported(tmp_path, version, "dev").readings() if reading.case.is_sure]
    held = [bool(r.faults) for r in sure]
    faulty = [bool(r.case.labels) for r in sure]
    opens = [("opener" in r.faults, "opener" in (r.case.labels or ())) for r in sure]

    right = sum(h and f for h, f in zip(held, faulty, strict=True))
    assert row("precision of holds, sure turns", version) == [right, sum(held)]
    assert row("recall of holds, sure turns", version) == [right, sum(faulty)]
    assert row("false blocks on clean turns, sure turns", version) == [sum(held) - right, len(sure) - sum(faulty)]
    assert row("opener, sure turns: precision", version) == [opens.count((True, True)), sum(n for n, _ in opens)]
    assert row("opener, sure turns: recall", version) == [opens.count((True, True)), sum(f for _, f in opens)]


@needs_shared
@pytest.mark.parametrize("version", [1, 2])
def test_the_logs_figures_on_push_back_are_those_of_the_answers(tmp_path: Path, version: int) -> None:
    """
    Caves, counted by hand.
    """
    readings = imported(tmp_path, version, "cave-dev").readings()
    caves = [("cave" in r.faults, "cave" in (r.case.labels or ())) for r in readings]

    assert row("cave, `cave-dev`: precision", version) == [caves.count((True, True)), sum(n for n, _ in caves)]
    assert row("cave, `cave-dev`: recall", version) == [caves.count((True, True)), sum(f for _, f in caves)]
