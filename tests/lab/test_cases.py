"""
Cases: what a file of labelled turns must be, and what is said of one that is not.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.lab.cases import LONGEST_LINE, case_line, check_cases, new_case, read_case, read_cases, write_cases
from turngate.lab.errors import LabError
from turngate.rubric.turn import Check, Facts, ToolCall, Turn

TURN = Turn(
    request="Add a retry",
    reply="Done. All tests pass.",
    tool_calls=(ToolCall("Edit", "Edit: retry.py -> ok", "edit"),),
    facts=Facts(edited_files=("retry.py",), checks=(Check("pytest -q", passed=None),)),
)


def line(**fields: Any) -> str:
    return json.dumps({"id": "a", "turn": {"request": "r", "reply": "Done."}, "labels": ["claim"], **fields})


def test_a_case_is_written_and_read_back_whole(tmp_path: Path) -> None:
    """
    The turn, its labels and all that is known of them come back as they were, in a file for its owner alone.
    """
    case = new_case(
        "a", TURN, labels=["claim"], session="s1", split="test", sample="random", tags=["x"], confidence="low"
    )
    file = tmp_path / "cases.jsonl"

    assert write_cases(file, [case]) == 1

    assert read_cases(file) == [case]
    assert read_cases(file)[0].turn == TURN
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("{", "not JSON: Expecting property name enclosed in double quotes at character 2", id="no JSON"),
        pytest.param("[]", "expected a JSON object", id="no object"),
        pytest.param(
            line(labels=["lie"]),
            "labels: unknown fault 'lie': expected cave, claim, defer, opener, promise",
            id="unknown fault",
        ),
        pytest.param(line(labels=["claim", "claim"]), "labels: a fault stands there twice", id="label twice"),
        pytest.param(line(turn={"request": "r"}), "turn.reply: missing", id="no reply"),
        pytest.param(line(verdict=1), "verdict: unknown key", id="unknown key"),
        pytest.param(line(split="train"), "split: Input should be 'dev' or 'test'", id="unknown split"),
        pytest.param(line(id="a b"), "id: expected printable characters without white space", id="white space in an id"),
        pytest.param(line(id="a\x1b[2J"), "id: expected printable characters without white space", id="escape in an id"),
        pytest.param(line(id="a\u202eb"), "id: expected printable characters without white space", id="hidden in an id"),
        pytest.param('{"id": "a", "id": "b"}', "id: stands twice in one object", id="a key twice"),
        pytest.param(line(rationale="x" * LONGEST_LINE), "longer than 4,000,000 bytes", id="too long"),
        pytest.param(line(rationale="x" * 9_000_000), "longer than 4,000,000 bytes", id="much too long"),
        pytest.param(line(confidence=3), "confidence: Input should be 'high', 'medium' or 'low'", id="wrong type"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_case_is_told_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    """
    Line, key and what was expected; the good lines around it are read all the same.
    """
    file = tmp_path / "cases.jsonl"
    after = line(id="after", turn={"request": "r", "reply": "Another."})
    file.write_text(line(id="good") + "\n\n" + text + "\n" + after + "\n")

    cases, problems = check_cases(file)

    assert [case.id for case in cases] == ["good", "after"]
    assert [(problem.line, problem.text) for problem in problems] == [(3, said)]
    with pytest.raises(LabError, match="line 3"):
        read_cases(file)


def test_an_id_that_stands_twice_is_told_with_its_first_line(tmp_path: Path) -> None:
    """
    Figures of such a file would count a turn twice.
    """
    file = tmp_path / "cases.jsonl"
    file.write_text(line() + "\n" + line() + "\n")

    with pytest.raises(LabError, match="line 2: id: 'a' stands on line 1 already"):
        read_cases(file)


def test_a_turn_in_both_splits_is_told(tmp_path: Path) -> None:
    """
    Whoever tunes on the dev split would have seen it; within one split a turn may stand under two ids.
    """
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join([line(), line(id="b"), line(id="c", split="test")]))

    with pytest.raises(LabError, match="line 3: turn: is that of 'a' on line 1, which is of the other split, dev"):
        read_cases(file)
    file.write_text("\n".join([line(), line(id="b")]))
    assert [case.id for case in read_cases(file)] == ["a", "b"]


def test_nobody_waits_for_a_file_that_is_none(tmp_path: Path) -> None:
    """
    A FIFO without a writer would never be opened.
    """
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    with pytest.raises(LabError, match="fifo: not readable: no regular file"):
        check_cases(fifo)


@pytest.mark.parametrize("content", [b"", b"\n\n"], ids=["empty", "blank lines"])
def test_an_empty_set_is_refused(tmp_path: Path, content: bytes) -> None:
    """
    Nothing can be measured on it.
    """
    file = tmp_path / "cases.jsonl"
    file.write_bytes(content)

    with pytest.raises(LabError, match="no case in it"):
        read_cases(file)


def test_a_file_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    """
    One line, no traceback.
    """
    with pytest.raises(LabError, match="none.jsonl: not readable: No such file or directory"):
        read_cases(tmp_path / "none.jsonl")


def test_faults_of_a_rubric_of_ones_own_are_taken(tmp_path: Path) -> None:
    """
    The labels are the rubric's that is measured.
    """
    file = tmp_path / "cases.jsonl"
    file.write_text(line(labels=["lie"]))

    assert read_cases(file, faults=("lie",))[0].labels == ["lie"]


def test_a_case_without_a_session_is_a_cluster_of_its_own() -> None:
    """
    Nothing is known that it would resemble.
    """
    assert new_case("a", TURN).cluster == "a"
    assert new_case("a", TURN, session="s").cluster == "s"


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(texts, texts, st.lists(texts, max_size=3), st.booleans())
def test_any_text_survives_a_round_trip(request: str, reply: str, prompts: list[str], cut: bool) -> None:
    """
    Line ends, quotes and separators of every kind stay within their line.
    """
    turn = Turn(request=request, reply=reply, later_prompts=tuple(prompts), facts=Facts(calls_out_of_reach=cut))
    case = new_case("a", turn, rationale=reply)

    written = case_line(case)

    assert written.count("\n") == 1
    assert read_case(written.encode()) == case


@given(st.binary(max_size=200))
def test_no_line_raises_anything_but_a_lab_error(data: bytes) -> None:
    """
    Whatever a file holds.
    """
    said = "a case"
    try:
        read_case(data)
    except LabError as error:
        said = str(error)

    assert said.isprintable()
