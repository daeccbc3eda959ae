"""
`turngate lab score`: its tables, its JSON, its options, and what it refuses.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from turngate.lab import cli
from turngate.lab.cases import Case
from turngate.lab.commands.score import add, base_rates
from turngate.lab.errors import LabError
from turngate.lab.looks import looks_before
from turngate.lab.runs import ANSWERS, Answered
from turngate.stopgate.console import Parser

from .scored_runs import (
    FAULTS,
    cases,
    fails,
    half_right,
    right,
    run_on_disk,
)


def command(folder: Path, state: Path, *arguments: str) -> int:
    parser = Parser(prog="turngate lab")
    add(parser.add_subparsers())
    asked: argparse.Namespace = parser.parse_args(["score", str(folder), *arguments])
    environ: Mapping[str, str] = {"TURNGATE_STATE_DIR": str(state)}
    return asked.command(asked, environ)


def crashing(one: Case, repeat: int) -> Answered:
    """
    Fail on each third case.
    """
    return fails(one, repeat) if int(one.id[1:]) % 3 == 0 else right(one, repeat)


def test_a_judge_that_crashes_on_a_third_of_the_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It gets no score, however right the rest is: exit 2, and one line with the counts and the commonest cause.
    """
    monkeypatch.setattr(cli, "COMMANDS", ("score",))
    run = run_on_disk(tmp_path / "run", crashing)

    assert cli.main(["score", str(run.folder)], {"TURNGATE_STATE_DIR": str(tmp_path)}) == 2
    printed = capsys.readouterr()

    assert printed.out == ""
    assert printed.err == (
        f"turngate: {run.folder}: no score: 14 of 40 questions have no verdict (35.0%, at most 1 % may): "
        "14 error; most often: 500: overloaded\n"
    )


def test_the_command_prints_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The screen names the judge, the split, the number of cases, and each rate with both intervals.
    """
    run = run_on_disk(tmp_path / "run", half_right)

    assert command(run.folder, tmp_path / "state", "--base-rates", "held=0.2") == 0
    shown = capsys.readouterr().out

    assert shown.startswith("judge: claude-sonnet-5-5\nrubric: turn_end@")
    assert "cases: cases.jsonl, dev split: 40, each asked once" in shown
    assert "all labelled cases: 40 in 9 sessions, 24 clean" in shown
    assert "false blocks on clean turns: 25.0% (6 of 24; Wilson 12.0-44.9, over sessions " in shown
    assert max(map(len, shown.splitlines())) <= 140


def test_the_command_prints_json_that_a_seed_repeats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The same seed gives the same bytes.
    """
    run = run_on_disk(tmp_path / "run", half_right)
    printed: list[str] = []
    for seed in ("7", "7", "8"):
        assert command(run.folder, tmp_path / "state", "--json", "--seed", seed) == 0
        printed.append(capsys.readouterr().out)

    assert printed[0] == printed[1] != printed[2]
    figures = json.loads(printed[0])
    assert figures["labelled"]["held"]["precision"]["value"] == pytest.approx(16 / 22, abs=1e-6)
    assert figures["labelled"]["faults"][0]["fault"] == FAULTS[0]
    assert figures["costs"]["usd"] is None


def test_the_command_counts_looks_at_the_test_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A look at test cases is kept, and a second one, at other answers, is told; the dev split may be looked at freely.
    """
    tests = [one.model_copy(update={"split": "test"}) for one in cases()]
    state = tmp_path / "state"
    environ = {"TURNGATE_STATE_DIR": str(state)}
    dev = run_on_disk(tmp_path / "dev", right)
    first = run_on_disk(tmp_path / "first", right, tests)

    assert command(dev.folder, state) == command(first.folder, state) == 0
    assert "look" not in capsys.readouterr().err
    second = run_on_disk(tmp_path / "second", half_right, tests)
    assert len(looks_before(environ, [second])) == 1
    assert command(second.folder, state) == 0
    assert "look 2 at these test turns" in capsys.readouterr().err


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    """
    It is told in a line that names it.
    """
    with pytest.raises(LabError, match="no run in it"):
        command(tmp_path, tmp_path)


@pytest.mark.parametrize("seed", ["-1", "x", "1" * 30])
def test_a_bad_seed(tmp_path: Path, seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It ends the command with exit 2 and one line.
    """
    with pytest.raises(SystemExit) as raised:
        command(tmp_path, tmp_path, f"--seed={seed}")

    assert raised.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_base_rates_from_files_and_pairs(tmp_path: Path) -> None:
    """
    A file and pairs may stand together; the later one counts.
    """
    file = tmp_path / "rates.json"
    file.write_text('{"held": 0.283, "claim": 0.1}')

    assert base_rates([str(file), "claim=0.2"], FAULTS) == {"held": 0.283, "claim": 0.2}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param("lie=0.1", "unknown fault 'lie'", id="fault"),
        pytest.param("claim=2", "claim: expected a number from 0 to 1, found '2'", id="above one"),
        pytest.param("claim=nan", "found 'nan'", id="no number"),
        pytest.param("claim=", "found ''", id="empty"),
        pytest.param("missing.json", "missing.json: not readable", id="no file"),
    ],
)
def test_bad_base_rates(given: str, told: str) -> None:
    """
    A rate that is none is told in a line with its fault and value.
    """
    with pytest.raises(LabError, match=told):
        base_rates([given], FAULTS)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param('{"claim": "much"}', "claim: expected", id="text"),
        pytest.param('{"claim": true}', "claim: expected", id="true"),
        pytest.param('{"claim": NaN}', "claim: expected", id="nan"),
        pytest.param("[]", "JSON object", id="list"),
        pytest.param("{", "not JSON", id="half"),
    ],
)
def test_bad_base_rate_files(tmp_path: Path, content: str, told: str) -> None:
    """
    A file that is none is told by its name.
    """
    file = tmp_path / "rates.json"
    file.write_text(content)

    with pytest.raises(LabError, match=told) as raised:
        base_rates([str(file)], FAULTS)

    assert str(raised.value).startswith(str(file))


def test_a_rate_of_minus_nothing_is_nothing() -> None:
    """
    It is shown without a sign.
    """
    assert str(base_rates(["claim=-0"], FAULTS)["claim"]) == "0.0"


def test_what_is_wrong_with_a_run_is_told_beside_its_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Answers that a crash cut off, and turns of the dev split that were test turns before.
    """
    tests = [one.model_copy(update={"split": "test"}) for one in cases()]
    first = run_on_disk(tmp_path / "first", right, tests)
    moved = run_on_disk(tmp_path / "moved", right)
    with (moved.folder / ANSWERS).open("a") as file:
        file.write('{"case": "c000", "raw_usage": {}')
    command(first.folder, tmp_path / "state")
    assert capsys.readouterr().err == ""

    assert command(moved.folder, tmp_path / "state") == 0
    told = capsys.readouterr().err
    assert "answers.jsonl: 1 lines are no JSON" in told
    assert "40 turns of the dev split were looked at as test turns before" in told
