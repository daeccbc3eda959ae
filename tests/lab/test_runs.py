"""
A run's folder: what was asked of whom, and each answer, whatever happened meanwhile.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from turngate.judge.settings import JudgeSettings
from turngate.lab.cases import Case, new_case
from turngate.lab.errors import LabError
from turngate.lab.runs import ANSWERS, MANIFEST, Answered, Run, keep, open_run, questions, read_run
from turngate.rubric.library import load
from turngate.rubric.turn import Turn

FILE = Path("somewhere/cases.jsonl")
DEFAULTS = JudgeSettings()
CASES = [new_case(name, Turn("Add a test", f"{name}: all tests pass."), labels=["claim"]) for name in ("a", "b")]


def opened(folder: Path, cases: list[Case] = CASES, settings: JudgeSettings = DEFAULTS, repeats: int = 1) -> Run:
    return open_run(folder, cases, FILE, load(), settings, repeats)


def answer(case: str = "a", repeat: int = 0, quote: str = "all tests pass", outcome: str = "answered") -> Answered:
    text = json.dumps({"findings": [{"fault": "claim", "quote": quote, "reason": "No test ran."}]})
    fields = {"case": case, "repeat": repeat, "hash": "0" * 32, "outcome": outcome}
    return Answered.model_validate(
        {**fields, "text": text if outcome == "answered" else "", "cost_usd": Decimal("0.0012")}
    )


def test_an_answer_is_read_as_a_gate_would(tmp_path: Path) -> None:
    """
    The verdict is parsed and each quote looked for in the reply; what nobody has answered yet stands there too.
    """
    run = opened(tmp_path)
    keep(run.folder, answer())
    keep(run.folder, answer("b", quote="nothing of the kind"))

    first, second = read_run(tmp_path).readings()

    assert first.faults == {"claim"}
    assert first.answer is not None
    assert first.answer.cost_usd == Decimal("0.0012")
    assert second.faults == frozenset()
    assert second.verdict is not None
    assert (second.verdict.dropped, second.named) == (1, 1)


def test_a_failure_gives_way_to_an_answer_and_never_the_other_way(tmp_path: Path) -> None:
    """
    What was paid for is never lost to a later failure.
    """
    run = opened(tmp_path)
    for one in (answer(outcome="error"), answer(), answer(outcome="timeout")):
        keep(run.folder, one)

    assert read_run(tmp_path).answers["a", 0].outcome == "answered"


def test_a_line_that_a_crash_cut_off_is_asked_again(tmp_path: Path) -> None:
    """
    The answers before and after it count.
    """
    run = opened(tmp_path)
    keep(run.folder, answer())
    with (tmp_path / ANSWERS).open("a") as file:
        file.write('{"case": "b", "rep')
    keep(run.folder, answer(repeat=1))

    assert set(read_run(tmp_path).answers) == {("a", 0), ("a", 1)}


def test_a_damaged_line_is_told(tmp_path: Path) -> None:
    """
    File, line and key.
    """
    run = opened(tmp_path)
    keep(run.folder, answer())
    with (tmp_path / ANSWERS).open("a") as file:
        file.write('{"case": "b"}\n')

    with pytest.raises(LabError, match=r"answers.jsonl: line 2: repeat: missing"):
        read_run(tmp_path)


def test_a_run_goes_on_with_more_repeats(tmp_path: Path) -> None:
    """
    Never with fewer: the answers are there.
    """
    opened(tmp_path, repeats=2)

    assert opened(tmp_path, repeats=3).manifest.repeats == 3
    assert opened(tmp_path, repeats=1).manifest.repeats == 3


def test_a_folder_holds_one_run(tmp_path: Path) -> None:
    """
    Answers of other cases, words or models never come together.
    """
    opened(tmp_path)

    with pytest.raises(LabError, match="holds another run: cases_hash is"):
        opened(tmp_path, CASES[:1])
    with pytest.raises(LabError, match="holds another run: model is 'claude-sonnet-5-5', asked for is 'other'"):
        opened(tmp_path, settings=JudgeSettings(model="other"))


def test_a_folder_without_a_run_is_told(tmp_path: Path) -> None:
    """
    As is one with a manifest of something else.
    """
    with pytest.raises(LabError, match=r"no run in it \(run.json is missing\)"):
        read_run(tmp_path)
    (tmp_path / MANIFEST).write_text("{}")
    with pytest.raises(LabError, match=r"run.json: created_at: missing"):
        read_run(tmp_path)


def test_the_same_question_is_the_same_request() -> None:
    """
    Whenever it is rendered: so an answer can be found again. Another turn, model or effort is another question.
    """
    first, second = questions(CASES, load(), JudgeSettings(), 1)
    again, *_ = questions(CASES, load(), JudgeSettings(), 1)
    other, *_ = questions(CASES, load(), JudgeSettings(effort="low"), 1)

    assert first.request == again.request
    assert len({first.hash, second.hash, other.hash}) == 3
    assert first.request.user[:10] != second.request.user[:10]


def test_the_test_split_is_told(tmp_path: Path) -> None:
    """
    One case of it is enough.
    """
    cases = [*CASES, new_case("c", Turn("x", "y"), split="test")]

    assert opened(tmp_path, cases).manifest.split == "test"
