"""
`turngate lab report`: the files that it writes, the looks that it counts, and what it refuses.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turngate.lab import cli
from turngate.lab.cases import Case
from turngate.lab.looks import looks_before
from turngate.lab.runs import Answered

from .scored_runs import cases, fails, half_right, right, run_on_disk


@pytest.fixture(autouse=True)
def _command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "COMMANDS", ("report",))


def asked(tmp_path: Path, *arguments: str | Path) -> int:
    return cli.main(["report", *map(str, arguments)], {"TURNGATE_STATE_DIR": str(tmp_path / "state")})


def test_a_page_with_markdown_and_json_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The three files are in the run's folder, for their owner alone, and are named on the screen.
    """
    folder = run_on_disk(tmp_path / "run", half_right).folder
    files = [folder / f"report.{ending}" for ending in ("html", "md", "json")]

    assert asked(tmp_path, folder) == 0

    assert capsys.readouterr().out.splitlines() == list(map(str, files))
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600] * 3
    assert files[0].read_text().startswith("<!doctype html>")
    assert "| held | 16 | 72.7% (16 of 22; Wilson 51.8-86.8," in files[1].read_text()
    assert json.loads(files[2].read_text())["arms"][0]["score"]["labelled"]["held"]["fp"] == 6.0
    assert list(folder.glob(".*")) == []


def test_runs_beside_the_first(tmp_path: Path) -> None:
    """
    Each other run is compared with the first, in one page in the last one's folder; it is written again over itself.
    """
    folders = [run_on_disk(tmp_path / name, judge).folder for name, judge in (("a", half_right), ("b", right))]

    assert asked(tmp_path, *folders, folders[1]) == 0
    assert asked(tmp_path, *folders, "--base-rates", "held=0.2", "--seed", "3") == 0
    data = json.loads((folders[1] / "comparison.json").read_text())

    assert [arm["letter"] for arm in data["arms"]] == ["A", "B"]
    assert data["comparisons"][0]["comparison"]["verdict"] == "better"
    assert data["arms"][0]["score"]["labelled"]["held"]["base_rate"]["value"] == 0.2


def test_a_run_without_a_score_is_reported_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The page is written, and why it holds no figure is said on stderr.
    """

    def crashing(one: Case, repeat: int) -> Answered:
        return fails(one, repeat) if int(one.id[1:]) % 3 == 0 else right(one, repeat)

    folder = run_on_disk(tmp_path / "run", crashing).folder

    assert asked(tmp_path, folder) == 0
    assert capsys.readouterr().err.startswith(f"turngate: {folder}: no score: 14 of 40 questions have no verdict")
    assert (folder / "report.html").is_file()


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        pytest.param("run.html", "run.json", id="the-run-itself"),
        pytest.param("README.html", "README.md", id="somebody's-document"),
        pytest.param("index.html", "index.html", id="somebody's-page"),
    ],
)
def test_no_file_of_another_is_written_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, taken: str
) -> None:
    """
    Where any of the three names is taken by what is no report, nothing is written.
    """
    folder = run_on_disk(tmp_path / "run", right).folder
    place = folder / taken
    if not place.exists():
        place.write_text("mine")
    before = {file: file.read_bytes() for file in folder.iterdir()}

    assert asked(tmp_path, folder, "--out", folder / name) == 2

    assert capsys.readouterr().err == f"turngate: {place}: exists and is no report: choose another name by --out\n"
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["report.pdf", "report", ".html"])
def test_the_page_is_html(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    """
    Another ending is refused in one line.
    """
    folder = run_on_disk(tmp_path / "run", right).folder

    assert asked(tmp_path, folder, "--out", tmp_path / name) == 2
    assert capsys.readouterr().err.startswith("turngate: --out: expected a name that ends in .html, found '")


def test_a_place_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    One line says so.
    """
    folder = run_on_disk(tmp_path / "run", right).folder
    (tmp_path / "file").write_text("")

    assert asked(tmp_path, folder, "--out", tmp_path / "file" / "report.html") == 2
    assert capsys.readouterr().err == f"turngate: {tmp_path}/file/report.html: not readable: Not a directory\n"


def test_other_cases_and_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Runs of different cases, and a folder without a run, are refused in one line each.
    """
    one = run_on_disk(tmp_path / "one", right).folder
    other = run_on_disk(tmp_path / "other", right, cases()[1:]).folder

    assert asked(tmp_path, one, other) == 2
    assert asked(tmp_path, tmp_path / "none") == 2
    first, second = capsys.readouterr().err.splitlines()

    assert first.startswith("turngate: the case sets differ: ")
    assert second == f"turngate: {tmp_path}/none: no run in it (run.json is missing)"


def test_a_report_of_test_cases_is_a_look(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    It is counted and told in the page; a comparison after a look at other answers needs --look-again.
    """
    tests = [one.model_copy(update={"split": "test"}) for one in cases()]
    first, second = (run_on_disk(tmp_path / name, judge, tests) for name, judge in (("a", half_right), ("b", right)))
    environ = {"TURNGATE_STATE_DIR": str(tmp_path / "state")}

    assert asked(tmp_path, first.folder) == 0
    assert "The first look at these test turns." in (first.folder / "report.html").read_text()
    assert len(looks_before(environ, [second])) == 1

    run_on_disk(tmp_path / "c", right, tests)
    assert asked(tmp_path, second.folder, tmp_path / "c") == 2
    assert "`--look-again` shows the figures all the same" in capsys.readouterr().err
    assert not (tmp_path / "c" / "comparison.html").exists()
    assert asked(tmp_path, second.folder, tmp_path / "c", "--look-again") == 0
    assert "Look 2 at these test turns" in (tmp_path / "c" / "comparison.html").read_text()


def test_without_a_place_for_looks_no_test_figure_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A look that cannot be kept is not taken.
    """
    tests = [one.model_copy(update={"split": "test"}) for one in cases()]
    folder = run_on_disk(tmp_path / "run", right, tests).folder
    (tmp_path / "state").write_text("a file")

    assert asked(tmp_path, folder) == 2
    assert "figures of test cases are not shown" in capsys.readouterr().err
    assert not (folder / "report.html").exists()
