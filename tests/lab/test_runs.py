"""
A run's folder: what was asked of whom, and each answer, whatever happened meanwhile.
"""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest

from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.judge.settings import JudgeSettings
from turngate.lab.cases import Case, new_case, write_cases
from turngate.lab.commands import run as run_command
from turngate.lab.errors import LabError
from turngate.lab.runs import ANSWERS, MANIFEST, Answered, Run, cases_hash, keep, open_run, questions, read_run
from turngate.lab.runs import CASES as CASES_FILE
from turngate.rubric.library import load
from turngate.rubric.turn import Turn

from .trials import CLEAN, command

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


@pytest.mark.parametrize("at_the_end", [False, True])
def test_a_line_may_be_cut_off_anywhere(tmp_path: Path, at_the_end: bool) -> None:
    """
    Behind the brace of a part of it too; which ones were is told.
    """
    run = opened(tmp_path)
    keep(run.folder, answer())
    usage = answer("b").model_copy(update={"raw_usage": {"input_tokens": 3}}).model_dump_json()
    with (tmp_path / ANSWERS).open("a") as file:
        file.write(usage[: usage.index('"input_tokens":3}') + len('"input_tokens":3}')])
    if not at_the_end:
        keep(run.folder, answer(repeat=1))

    read = read_run(tmp_path)
    assert (len(read.answers), read.damaged) == (1 if at_the_end else 2, (2,))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param('{"case": "b"}', "repeat: missing", id="half"),
        pytest.param(
            answer().model_dump_json().replace("{", '{"case": "b", ', 1),
            "case: stands twice in one object",
            id="key-twice",
        ),
        pytest.param("null", "", id="null"),
        pytest.param("[]", "", id="list"),
        pytest.param(answer().model_dump_json().replace('"0.0012"', "-5"), "cost_usd: expected an amount", id="minus"),
        pytest.param(answer().model_dump_json().replace('"0.0012"', '"1e999999"'), "cost_usd: ", id="endless"),
        pytest.param(answer().model_dump_json().replace('"0.0012"', '"1e-999999"'), "cost_usd: ", id="endless-below-0"),
        pytest.param(answer().model_dump_json().replace('"0.0012"', '"NaN"'), "cost_usd: ", id="no-number"),
    ],
)
def test_a_damaged_line_is_told(tmp_path: Path, line: str, told: str) -> None:
    """
    File, line and key.
    """
    run = opened(tmp_path)
    keep(run.folder, answer())
    with (tmp_path / ANSWERS).open("a") as file:
        file.write(f"{line}\n")

    with pytest.raises(LabError, match=rf"answers.jsonl: line 2: {told}"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"labels": []}, id="labels"),
        pytest.param({"labels": None}, id="labels-taken-back"),
        pytest.param({"confidence": "low"}, id="confidence"),
        pytest.param({"disputed": True}, id="disputed"),
        pytest.param({"sample": "random"}, id="sample"),
        pytest.param({"session": "s"}, id="session"),
        pytest.param({"split": "test"}, id="split"),
    ],
)
def test_a_run_that_goes_on_takes_other_labels(tmp_path: Path, said: dict[str, object]) -> None:
    """
    The answers stay, for they are of the turns alone; how many cases changed is told, and the hash is another.
    """
    cases = [CASES[0].model_copy(update=said), CASES[1]]
    before = opened(tmp_path)
    keep(tmp_path, answer())

    run = opened(tmp_path, cases)

    assert (before.relabelled, run.relabelled, opened(tmp_path, cases).relabelled) == (0, 1, 0)
    assert (run.cases, set(run.answers)) == (cases, {("a", 0)})
    assert run.manifest.cases_hash == cases_hash(cases) != cases_hash(CASES)
    assert run.manifest.split == cases[0].split
    assert run.manifest.created_at == before.manifest.created_at


def test_nobody_has_said_is_not_clean() -> None:
    """
    Nor has it the same hash.
    """
    clean, unsaid = (new_case("a", Turn("x", "y"), labels=labels) for labels in ([], None))

    assert cases_hash([clean]) != cases_hash([unsaid])


def test_cases_that_were_changed_in_the_folder_are_told(tmp_path: Path) -> None:
    """
    Until the run goes on with its own ones.
    """
    opened(tmp_path)
    write_cases(tmp_path / CASES_FILE, [CASES[0].model_copy(update={"labels": []}), CASES[1]])

    with pytest.raises(LabError, match=r"cases.jsonl: was changed since"):
        read_run(tmp_path)
    assert opened(tmp_path).cases == CASES


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

    with pytest.raises(LabError, match="holds another run: its cases have other ids or turns"):
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


def test_an_answer_to_other_words_takes_no_answers_place(tmp_path: Path) -> None:
    """
    Whichever came first; where the question was never asked in these words, it is the answer.
    """
    asked = {one.case.id: one.hash for one in questions(CASES, load(), DEFAULTS, 1)}
    opened(tmp_path, repeats=2)
    here, there = (answer().model_copy(update={"hash": name}) for name in (asked["a"], "f" * 32))
    lines = [here, there, there.model_copy(update={"repeat": 1}), here.model_copy(update={"repeat": 1})]
    for line in [*lines, there.model_copy(update={"case": "b"})]:
        keep(tmp_path, line)

    found = read_run(tmp_path).answers

    assert [found[key].hash for key in (("a", 0), ("a", 1), ("b", 0))] == [asked["a"], asked["a"], "f" * 32]


@pytest.mark.parametrize("name", ["cases.jsonl", "answers.jsonl", "batches.jsonl", "turngate.db"])
def test_a_folder_with_somebodys_files_is_no_run(tmp_path: Path, name: str) -> None:
    """
    They stay as they are, and nothing is put beside them.
    """
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("mine")

    with pytest.raises(LabError, match=rf"holds {name} and no run \(run.json is missing\): choose another folder"):
        opened(folder)

    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_text() == "mine"


@pytest.mark.parametrize("place", ["", "."])
def test_a_run_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """
    A name that was left empty would be the folder one is in.
    """
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    with pytest.raises(LabError, match="has no name, or is the one you are in"):
        opened(Path(place))
    assert not [*folder.iterdir()]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """
    One line says so.
    """
    (tmp_path / "file").write_text("mine")

    with pytest.raises(LabError, match=r"file: is no folder$"):
        opened(tmp_path / "file")


def test_a_run_that_was_killed_before_its_cases_were_written_goes_on(tmp_path: Path) -> None:
    """
    With the same cases.
    """
    opened(tmp_path)
    (tmp_path / CASES_FILE).unlink()

    with pytest.raises(LabError, match=r"cases.jsonl: not readable"):
        opened(tmp_path, CASES[:1])
    assert opened(tmp_path).cases == CASES


@pytest.mark.parametrize("name", [ANSWERS, MANIFEST, CASES_FILE])
def test_a_fifo_in_a_runs_folder_is_told(tmp_path: Path, name: str) -> None:
    """
    Nobody waits for its writer.
    """
    opened(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)

    with pytest.raises(LabError, match=rf"{name}: not readable: no regular file"):
        read_run(tmp_path)


def test_a_run_that_goes_on_says_which_answers_are_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    They are asked and paid again: one would want to know.
    """
    cases, folder = tmp_path / "cases.jsonl", tmp_path / "run"
    write_cases(cases, CASES)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        asked = (run_command.add, "run", "--cases", cases, "--out", folder, "--base-url", api.url)
        assert command(*asked) == 0
        lines = (folder / ANSWERS).read_text().splitlines(keepends=True)
        of_a, of_b = ([line for line in lines if json.loads(line)["case"] == case] for case in ("a", "b"))
        (folder / ANSWERS).write_text(f"{of_a[-1][:-9]}\n{''.join(of_b)}")
        capsys.readouterr()

        assert command(*asked) == 0

    assert (
        "answers.jsonl: 1 lines are no JSON, as a crash leaves them (lines 1): passed over" in capsys.readouterr().err
    )
    assert len(api.requests) == 3
