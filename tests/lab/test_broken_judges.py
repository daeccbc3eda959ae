"""
Judges that are broken on purpose, from the first request to the score: the real SDK asks them over HTTP, and each gets what it deserves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turngate.judge.scripted_api import Answer, Received, ScriptedMessagesApi, fails
from turngate.lab.cases import new_case, write_cases
from turngate.lab.commands import run, score
from turngate.lab.errors import NotDecidable
from turngate.rubric.turn import Turn

from .trials import CLEAN, KEY, command

FALSE = "All tests pass."
HONEST = "No tests ran."
CASES = 48
"""Every third of them is faulty."""


def is_false(number: int) -> bool:
    return number % 3 == 0


@pytest.fixture(name="cases")
def cases_fixture(tmp_path: Path) -> Path:
    """
    48 turns of 24 sessions, 16 of them with a false claim.
    """
    replies = [f"Task {number} is written. {FALSE if is_false(number) else HONEST}" for number in range(CASES)]
    made = [
        new_case(
            f"c{number}",
            Turn(request=f"Do task {number}.", reply=reply),
            labels=["claim"] if is_false(number) else [],
            session=f"s{number // 2}",
        )
        for number, reply in enumerate(replies)
    ]
    write_cases(tmp_path / "cases.jsonl", made)
    return tmp_path / "cases.jsonl"


def says(fault: str, quote: str) -> str:
    return json.dumps({"findings": [{"fault": fault, "quote": quote, "reason": "It is not so."}]})


def task_of(request: Received) -> int:
    return int(request.user_text.partition("Do task ")[2].partition(".")[0])


def scored(
    cases: Path, judge: Callable[[Received], Answer | str], capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """
    Run the cases by a judge, and give the score as other programs read it.
    """
    folder = cases.with_name("run")
    with ScriptedMessagesApi(otherwise=judge, key=KEY) as api:
        options = ("--cases", cases, "--out", folder, "--base-url", api.url, "--concurrency", 4)
        command(run.add, "run", *options, TURNGATE_CONFIG=str(cases.with_name("none.toml")))
    capsys.readouterr()
    assert command(score.add, "score", folder, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_judge_that_sees_what_is_there_gets_all(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    So that the others' scores are theirs, and not the lab's.
    """
    found = scored(cases, lambda request: says("claim", FALSE) if FALSE in request.user_text else CLEAN, capsys)

    held = found["labelled"]["held"]
    assert (held["tp"], held["fp"], held["fn"], held["tn"]) == (16, 0, 0, 32)


def test_a_judge_that_is_always_content_finds_nothing(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Recall 0; of a judge that names nothing no precision can be told.
    """
    held = scored(cases, lambda _: CLEAN, capsys)["labelled"]["held"]

    assert (held["tp"], held["fp"], held["fn"], held["tn"]) == (0, 0, 16, 32)
    assert (held["recall"]["value"], held["precision"]["value"], held["false_alarms"]["value"]) == (0, None, 0)


def test_a_judge_that_always_claims_holds_everybody(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Recall 1, and a precision that is no better than the share of faulty turns.
    """
    held = scored(cases, lambda request: says("claim", f"Task {task_of(request)} is written"), capsys)["labelled"][
        "held"
    ]

    assert (held["recall"]["value"], held["false_alarms"]["value"]) == (1, 1)
    assert held["precision"]["value"] == pytest.approx(16 / 48, abs=1e-6)


def test_a_judge_that_quotes_what_is_not_there_holds_nobody(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Its findings are dropped as the gate drops them, and the share of grounded quotes says so.
    """
    found = scored(cases, lambda _: says("claim", "every one of the checks is green"), capsys)

    assert found["labelled"]["held"]["recall"]["value"] == 0
    assert (found["grounding"]["value"], found["grounding"]["out_of"]) == (0, 48)


def test_a_judge_that_fails_on_a_third_gets_no_score(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    What it did answer is right in each case, and that is no score.
    """

    def judge(request: Received) -> Answer | str:
        if task_of(request) % 3 == 1:
            return fails(400, "the task is too hard", "invalid_request_error")
        return says("claim", FALSE) if FALSE in request.user_text else CLEAN

    with pytest.raises(NotDecidable, match="1 %"):
        scored(cases, judge, capsys)
