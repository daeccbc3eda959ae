"""
Questions for somebody else, and their answers: what a file of either may and may not hold.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.lab.asking.kept_text import kept_text
from turngate.lab.asking.run_lock import alone
from turngate.lab.cases import new_case, read_cases, write_cases
from turngate.lab.commands import export_requests, import_answers
from turngate.lab.errors import LabError
from turngate.lab.runs import read_run
from turngate.rubric.library import load
from turngate.rubric.turn import Turn
from turngate.rubric.verdict import masked, parse_verdict

from .trials import CLEAN, command, write_turns

FAULTS = load().faults


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """
    A file of four cases.
    """
    return write_turns(tmp_path / "cases.jsonl", 4)


def exported(cases: Path, *options: object) -> list[dict[str, Any]]:
    out = cases.with_name("requests.jsonl")
    assert command(export_requests.add, "export-requests", "--cases", cases, "--out", out, *options) == 0
    return [json.loads(line) for line in out.read_text().splitlines()]


def answers_file(cases: Path, lines: list[Any]) -> Path:
    file = cases.with_name("answers.jsonl")
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return file


def imported(cases: Path, lines: list[Any], *options: object) -> int:
    answers = answers_file(cases, lines)
    run = cases.with_name("run")
    return command(
        import_answers.add,
        "import-answers",
        answers,
        "--cases",
        cases,
        "--run",
        run,
        "--judge",
        "a colleague",
        *options,
    )


def test_a_line_tells_nothing_but_the_question(tmp_path: Path) -> None:
    """
    No label, no case id, no source; the same order whatever the order of the cases; each repeat a line of its own.
    """
    turns = [Turn(request=f"Do task {number}.", reply="Done.") for number in range(9)]
    secret = {"labels": ["claim"], "rationale": "seen-through", "source": "seen-source", "tags": ["seen-tag"]}
    made = [new_case(f"seen-id-{number}", turn, **secret) for number, turn in enumerate(turns)]
    cases = tmp_path / "cases.jsonl"
    write_cases(cases, made)
    lines = exported(cases, "--repeats", 2)
    text = cases.with_name("requests.jsonl").read_text()
    write_cases(cases, made[::-1])

    assert exported(cases, "--repeats", 2) == lines
    assert exported(cases, "--repeats", 2, "--seed", 1) != lines
    assert "seen-" not in text
    assert len({line["id"] for line in lines}) == len(lines) == 18
    assert {line["id"].rpartition("-r")[2] for line in lines} == {"0", "1"}
    assert all(set(line) == {"id", "system", "user", "schema", "max_tokens"} for line in lines)
    assert lines[0]["system"] == load().system


def test_a_dash_prints_the_lines(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    What is printed holds the lines alone, so that they can be piped.
    """
    lines = exported(cases)
    capsys.readouterr()

    assert command(export_requests.add, "export-requests", "--cases", cases, "--out", "-") == 0

    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == lines


def test_answers_become_a_run(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    As text or as the verdict itself; the run says who answered, and reads as any other.
    """
    first, *others = exported(cases, "--repeats", 2)
    verdict = {"findings": [{"fault": "claim", "quote": "is done", "reason": "Nothing was done."}]}
    lines = [{"id": first["id"], "answer": verdict}, *({"id": line["id"], "text": CLEAN} for line in others)]

    assert imported(cases, lines, "--repeats", 2) == 0

    run = read_run(cases.with_name("run"))
    found = [reading for reading in run.readings() if reading.faults]
    assert len(found) == 1
    assert found[0].faults == {"claim"}
    assert all(reading.verdict is not None for reading in run.readings())
    assert (run.manifest.judge, run.manifest.model, run.manifest.backend) == ("a colleague", "stand-in", "import")
    assert {answer.via for answer in run.answers.values()} == {"import"}
    assert "8 answers kept" in capsys.readouterr().out


def test_a_span_stands_for_the_words_of_the_reply(cases: Path) -> None:
    """
    So that answers can be kept, and a score repeated, where the turns themselves may not be copied.
    """
    lines = [
        {"id": line["id"], "answer": {"findings": [{"fault": "claim", "span": [7, 14]}]}} for line in exported(cases)
    ]

    assert imported(cases, lines) == 0

    verdicts = [reading.verdict for reading in read_run(cases.with_name("run")).readings()]
    assert {finding.quote for verdict in verdicts if verdict for finding in verdict.findings} == {"is done"}


def test_one_answer_serves_all_cases_with_the_same_turn(tmp_path: Path) -> None:
    """
    The same turn in two cases is one question.
    """
    cases = tmp_path / "cases.jsonl"
    turn = Turn(request="r", reply="Done.")
    write_cases(cases, [new_case("a", turn, labels=[]), new_case("b", turn, labels=[])])
    [line] = exported(cases)

    assert imported(cases, [{"id": line["id"], "text": CLEAN}]) == 0

    assert set(read_run(tmp_path / "run").answers) == {("a", 0), ("b", 0)}


BAD: dict[str, tuple[list[Any], str]] = {
    "unknown id": ([{"id": "nobody-r0", "text": CLEAN}], "line 2: id: 'nobody-r0' is none of these questions"),
    "answered otherwise": ([{"id": "FIRST", "text": "no"}], "is answered otherwise on line 1"),
    "no id": ([{"text": CLEAN}], "line 2: id: missing"),
    "no text": ([{"id": "SECOND"}], "line 2: text: missing"),
    "empty text": ([{"id": "SECOND", "text": " "}], "line 2: text: empty"),
    "number": ([{"id": "SECOND", "text": 1}], "line 2: text: expected a text"),
    "list": ([{"id": "SECOND", "answer": []}], "line 2: answer: expected the verdict"),
    "both": ([{"id": "SECOND", "text": CLEAN, "answer": {}}], "line 2: text and answer"),
    "span outside": (
        [{"id": "SECOND", "answer": {"findings": [{"fault": "claim", "span": [3, 900]}]}}],
        "line 2: span: expected the first and the last character of a quote in a reply of 15",
    ),
    "cut off": (['{"id": "x", "te'], "line 2: not JSON"),
}


@pytest.mark.parametrize(("lines", "said"), BAD.values(), ids=BAD.keys())
def test_a_bad_line_is_named_and_nothing_kept(cases: Path, lines: list[Any], said: str) -> None:
    """
    One line with file and line number; the good lines before it leave no run behind either.
    """
    first, second, *_ = (line["id"] for line in exported(cases))
    names = {"FIRST": first, "SECOND": second}
    bad = [
        {**line, "id": names.get(line["id"], line["id"])} if isinstance(line, dict) and "id" in line else line
        for line in lines
    ]

    with pytest.raises(LabError) as caught:
        imported(cases, [{"id": first, "text": CLEAN}, *bad])

    assert said in str(caught.value)
    assert str(caught.value).startswith(str(cases.with_name("answers.jsonl")))
    assert "\n" not in str(caught.value)
    assert not cases.with_name("run").exists()


def test_a_file_without_answers_is_an_error(cases: Path) -> None:
    """
    So that an empty answer is not taken for a clean one.
    """
    with pytest.raises(LabError, match="no answer in it"):
        imported(cases, [])


def test_half_a_file_is_kept_and_told(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    What is there is kept, the missing ones are counted, and the rest can follow; the same answer twice is no trouble.
    """
    lines = [{"id": line["id"], "text": CLEAN} for line in exported(cases)]

    assert imported(cases, lines[:3]) == 2
    told = capsys.readouterr()
    assert f"1 of 4 questions have no answer yet ({lines[3]['id']}): import those too" in told.err
    assert "score" not in told.out + told.err
    assert imported(cases, lines[:3], "--partial") == 0
    assert "0 answers kept" in capsys.readouterr().out
    assert imported(cases, [*lines[2:], *lines[2:]]) == 0

    assert len(read_run(cases.with_name("run")).answers) == 4


def test_labels_that_changed_since_are_taken_and_told(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    An answer is of the turn alone: the run goes on with what is said of it now.
    """
    lines = [{"id": line["id"], "text": CLEAN} for line in exported(cases)]
    assert imported(cases, lines) == 0
    first, *others = read_cases(cases)
    write_cases(cases, [first.model_copy(update={"labels": ["claim"]}), *others])

    assert imported(cases, lines) == 0

    assert "labels of 1 cases changed since; the run has the new ones" in capsys.readouterr().err
    assert read_run(cases.with_name("run")).cases[0].labels == ["claim"]


def test_an_answer_that_was_kept_is_not_replaced(cases: Path) -> None:
    """
    Another answer to the same question is refused, and none of its file is kept.
    """
    lines = [{"id": line["id"], "text": CLEAN} for line in exported(cases)]
    assert imported(cases, lines[:1], "--partial") == 0

    with pytest.raises(LabError, match="holds another answer to it already"):
        imported(cases, [*lines[1:], {**lines[0], "text": '{"findings": [1]}'}])

    assert len(read_run(cases.with_name("run")).answers) == 1


def test_answers_to_other_options_are_unknown(cases: Path) -> None:
    """
    Another model or effort is another question.
    """
    lines = [{"id": line["id"], "text": CLEAN} for line in exported(cases, "--model", "claude-sonnet-5-5")]

    with pytest.raises(LabError, match="exported with the same options"):
        imported(cases, lines)


SECRET = "sk-ant-api03-" + "Ab3" * 30 + "-AA"
_PIECES = st.sampled_from(
    ['"', "\\", "password: ", SECRET, "token=", "é", "\u202e", "\x1b[31m", "]", "}", "\n", "done"]
)
_TEXTS = st.lists(_PIECES, max_size=8).map("".join)
_FINDINGS = st.fixed_dictionaries({"fault": st.sampled_from(FAULTS), "quote": _TEXTS, "reason": _TEXTS})


@given(findings=st.lists(_FINDINGS, max_size=3), around=_TEXTS, ascii_only=st.booleans())
def test_what_is_kept_reads_as_the_answer_and_holds_no_secret(
    findings: list[dict[str, str]], around: str, ascii_only: bool
) -> None:
    """
    Masking never makes a verdict unreadable or another one, whatever stands in it.
    """
    text = json.dumps({"findings": findings}, ensure_ascii=ascii_only) + around
    kept = kept_text(text, FAULTS)

    assert SECRET not in kept
    assert _faults(kept) == _faults(text)


def _faults(text: str) -> list[str] | None:
    try:
        # One whose quote is empty, or becomes so without what cannot be seen, is dropped by every reader.
        return [finding.fault for finding in masked(parse_verdict(text, FAULTS)).findings if finding.quote]
    except ValueError:
        return None


def test_questions_are_not_written_over_their_cases(cases: Path) -> None:
    """
    By no link either.
    """
    before = cases.read_bytes()
    link = cases.with_name("link")
    link.symlink_to(cases)

    for out in (cases, link):
        with pytest.raises(LabError, match="which is read: name another file"):
            command(export_requests.add, "export-requests", "--cases", cases, "--out", out)
    assert cases.read_bytes() == before


def test_answers_are_imported_by_one_process_at_a_time(cases: Path) -> None:
    """
    The other may be asking for what is imported here.
    """
    lines = [{"id": line["id"], "text": CLEAN} for line in exported(cases)]

    with alone(cases.with_name("run")), pytest.raises(LabError, match="another process"):
        imported(cases, lines)
    assert imported(cases, lines) == 0


def test_an_import_writes_over_nobodys_cases(cases: Path) -> None:
    """
    A folder that holds some and no run stays as it is.
    """
    lines = [{"id": line["id"], "text": CLEAN} for line in exported(cases)]
    answers = answers_file(cases, lines)
    mine = cases.with_name("mine")
    mine.mkdir()
    (mine / "cases.jsonl").write_text("mine")

    with pytest.raises(LabError, match=r"holds cases.jsonl and no run"):
        command(
            import_answers.add, "import-answers", answers, "--cases", cases, "--run", mine, "--judge", "a colleague"
        )
    assert [path.name for path in mine.iterdir()] == ["cases.jsonl"]
    assert (mine / "cases.jsonl").read_text() == "mine"


def test_answers_are_no_fifo(cases: Path) -> None:
    """
    Nobody waits for its writer; and what is not there is told.
    """
    exported(cases)
    answers = cases.with_name("fifo")
    os.mkfifo(answers)
    asked = ("--cases", cases, "--run", cases.with_name("run"), "--judge", "a colleague")

    for file, told in ((answers, "no regular file"), (cases.with_name("none"), "No such file or directory")):
        with pytest.raises(LabError, match=f"not readable: {told}"):
            command(import_answers.add, "import-answers", file, *asked)
