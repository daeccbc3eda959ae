"""
`turngate lab label` as a person and a script use it: the real program, on a real pseudo-terminal and without one.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import pytest

from turngate.lab.cases import new_case, read_cases, write_cases
from turngate.lab.cli import main
from turngate.rubric.turn import Turn

PROGRAM = Path(sys.executable).with_name("turngate")
PATIENCE_S = 30.0


class Terminal:
    """
    A terminal of 80 columns and 24 lines with the labeller in it.
    """

    def __init__(self, arguments: Sequence[object], environ: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(self._ours, (24, 80))
        self._shown = ""
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs

        def take_the_terminal() -> None:
            os.setsid()
            os.close(os.open(os.ttyname(0), os.O_RDWR))  # the first that a session opens becomes its own

        self.process = subprocess.Popen(
            [PROGRAM, "lab", "label", *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={"TERM": "xterm", **environ},
            preexec_fn=take_the_terminal,
        )

    def until(self, text: str) -> str:
        """
        Read until this is shown, and give all that came since the last time.
        """
        while text not in self._shown:
            ready, _, _ = select.select([self._ours], [], [], PATIENCE_S)
            assert ready, f"{text!r} does not come: {self._shown!r}"
            self._shown += os.read(self._ours, 65536).decode()
        shown, _, self._shown = self._shown.partition(text)
        return shown + text

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def resize(self, lines: int, columns: int) -> None:
        termios.tcsetwinsize(self._ours, (lines, columns))

    def end(self) -> int:
        """
        Give the exit code; the terminal must be as it was before.
        """
        code = self.process.wait(PATIENCE_S)
        assert termios.tcgetattr(self._theirs) == self.before
        return code

    def go_away(self) -> None:
        """
        Close both sides.
        """
        for descriptor in (self._theirs, self._ours):
            with suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def terminals(environ: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """
    Give what opens a terminal; in the end none is left.
    """
    opened: list[Terminal] = []

    def opens(*arguments: object, **variables: str) -> Terminal:
        opened.append(Terminal(arguments, {**environ, **variables}))
        return opened[-1]

    yield opens
    for terminal in opened:
        terminal.process.kill()
        terminal.process.wait(PATIENCE_S)
        terminal.go_away()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "USER": "anna"}


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    file = tmp_path / "cases.jsonl"
    write_cases(
        file, [new_case(name, Turn(f"Do {name}", f"Did {name}."), split="dev") for name in ("one", "two", "three")]
    )
    return file


class Result(NamedTuple):
    """
    What the command printed and gave.
    """

    code: int
    stdout: str
    stderr: str


Run = Callable[..., Result]


@pytest.fixture
def run(environ: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """
    Give what runs the command in this process, which has no terminal.
    """

    def runs(*arguments: object, stdin: str = "") -> Result:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(stdin.encode())))
        code = main(["label", *map(str, arguments)], environ)
        stdout, stderr = capsys.readouterr()
        return Result(code, stdout, stderr)

    return runs


def kept(cases: Path) -> list[tuple[str, list[str], bool]]:
    lines = Path(f"{cases}.labels.jsonl").read_text().splitlines()
    return [(line["case"], line["labels"], line.get("undone", False)) for line in map(json.loads, lines)]


def answers(*labelled: tuple[str, list[str]]) -> str:
    return "".join(json.dumps({"case": case, "labels": labels}) + "\n" for case, labels in labelled)


def test_label_undo_quit_and_resume_on_a_terminal(cases: Path, terminals: Callable[..., Terminal]) -> None:
    """
    Each label is on the disk at Enter; the next session begins where this one ended; the terminal is given back as it was.
    """
    terminal = terminals(cases)
    assert "0 of 3 done" in terminal.until("[ ] c claim")
    terminal.press("c\r")
    terminal.until("two, 1 of 3 done")
    terminal.press("u")
    terminal.until("taken back")
    terminal.press("cn\r")
    terminal.until("two, 1 of 3 done")
    terminal.press("vr")
    terminal.until("Esc leaves it")
    terminal.press("no reason\r")
    terminal.until("note: no reason")
    terminal.press("\rq")
    assert "2 kept of anna, 1 left" in terminal.until("labels.jsonl")
    assert terminal.end() == 0

    assert kept(cases) == [
        ("one", ["claim"], False),
        ("one", ["claim"], True),
        ("one", [], False),
        ("two", ["cave"], False),
    ]
    again = terminals(cases)
    again.until("three, 2 of 3 done")
    again.press("u")
    again.until("two, 1 of 3 done")
    assert "[x] v cave" in again.until("[ ] n none")
    again.press("\rq")
    again.until("labels.jsonl")
    assert again.end() == 0


def test_ctrl_c_keeps_what_was_saved(cases: Path, terminals: Callable[..., Terminal]) -> None:
    """
    Exit code 130, no traceback, and the terminal is as it was.
    """
    terminal = terminals(cases)
    terminal.until("[ ] n none")
    terminal.press("o\r")
    terminal.until("two, 1 of 3 done")
    terminal.press("c")
    terminal.until("[x] c claim")
    terminal.until("q quit")  # the end of the page: the program waits for the next key
    terminal.press("\x03")
    shown = terminal.until("\x1b[?1049l")

    assert terminal.end() == 130
    assert "Traceback" not in shown
    assert kept(cases) == [("one", ["opener"], False)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda number: number.name)
def test_a_signal_that_ends_it_gives_the_terminal_back(
    cases: Path, terminals: Callable[..., Terminal], number: signal.Signals
) -> None:
    """
    The process ends by the signal, and what was saved is kept.
    """
    terminal = terminals(cases)
    terminal.until("[ ] n none")
    terminal.press("o\r")
    terminal.until("two, 1 of 3 done")
    terminal.until("q quit")
    terminal.process.send_signal(number)
    shown = terminal.until("\x1b[?2004l\x1b[?1049l")

    assert terminal.end() == -number
    assert "Traceback" not in shown
    assert kept(cases) == [("one", ["opener"], False)]


def test_keys_that_move_the_cursor_write_nothing_into_a_note(cases: Path, terminals: Callable[..., Terminal]) -> None:
    """
    Nor does the Esc that begins them leave the note, though they come in pieces; what is pasted is text.
    """
    terminal = terminals(cases)
    terminal.until("\x1b[?2004h")
    terminal.until("[ ] n none")
    terminal.press("nr")
    terminal.until("Esc leaves it")
    terminal.press("so\x1b[A\x1b[5~\x1b[1;5C, \x1b[200~q\rq\x1b[201~")
    terminal.until("note: so, q q_")
    terminal.press("\r")
    terminal.until("note: so, q q")
    terminal.press("\rq")
    terminal.until("labels.jsonl")

    assert terminal.end() == 0
    (line,) = Path(f"{cases}.labels.jsonl").read_text().splitlines()
    assert json.loads(line)["note"] == "so, q q"


def test_a_label_of_an_earlier_session_is_told_as_taken_back(
    cases: Path, terminals: Callable[..., Terminal], run: Run
) -> None:
    """
    It was not kept now, so that none is less.
    """
    run(cases, "--answers", "-", stdin=answers(("one", ["claim"])))
    terminal = terminals(cases)
    terminal.until("two, 1 of 3 done")
    terminal.press("u")
    terminal.until("taken back")
    terminal.press("q")
    terminal.until("0 kept of anna, 1 of before taken back, 3 left")

    assert terminal.end() == 0


def test_a_terminal_of_another_size_is_drawn_anew(cases: Path, terminals: Callable[..., Terminal]) -> None:
    """
    A page takes what room there is, with no key pressed.
    """
    terminal = terminals(cases)
    wide = terminal.until("q quit")
    terminal.resize(12, 40)
    narrow = terminal.until("q quit")
    terminal.press("q")
    terminal.until("labels.jsonl")

    assert terminal.end() == 0
    assert wide.count("\n") == 22
    assert narrow.count("\n") < 12


def test_a_terminal_that_goes_away_ends_the_session(cases: Path, terminals: Callable[..., Terminal]) -> None:
    """
    What was saved is kept, and no process is left behind.
    """
    terminal = terminals(cases)
    terminal.until("[ ] n none")
    terminal.press("p\r")
    terminal.until("two, 1 of 3 done")
    terminal.go_away()

    assert terminal.process.wait(PATIENCE_S) in (0, 2, -signal.SIGHUP)
    assert kept(cases) == [("one", ["promise"], False)]


def test_a_plain_terminal_gets_no_escapes(cases: Path, terminals: Callable[..., Terminal]) -> None:
    """
    With TERM=dumb each page follows the one before it.
    """
    terminal = terminals(cases, TERM="dumb")
    shown = terminal.until("q quit")
    terminal.press("c")
    shown += terminal.until("[x] c claim")
    terminal.press("q")
    shown += terminal.until("labels.jsonl")

    assert terminal.end() == 0
    assert "\x1b" not in shown


def test_without_a_terminal_nothing_is_asked(cases: Path, environ: dict[str, str]) -> None:
    """
    One line says what to do instead.
    """
    result = subprocess.run(
        [PROGRAM, "lab", "label", cases],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environ,
        check=False,
    )

    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "turngate: labelling needs a terminal: give the labels with --answers FILE, or --answers - for stdin\n"
    )


def test_two_labellers_agree_decide_and_write(cases: Path, run: Run, tmp_path: Path) -> None:
    """
    From labels to agreement, to a decision, to cases that `read_cases` takes; nothing of it needs a terminal.
    """
    first = tmp_path / "anna.jsonl"
    first.write_text(answers(("one", ["claim"]), ("two", []), ("three", ["opener"])))
    assert run(cases, "--answers", first).stdout == f"3 kept of anna, 0 left: {cases}.labels.jsonl\n"
    second = answers(("one", ["claim"]), ("two", ["defer"]))
    assert "2 kept of ben, 1 left" in run(cases, "--labeller", "ben", "--answers", "-", stdin=second).stdout

    agreement = run(cases, "--agreement")
    assert agreement.code == 0
    assert "A: anna, B: ben, 2 cases that both labelled" in agreement.stdout
    undecided = run(cases, "--write", tmp_path / "undecided.jsonl")
    assert "disputed and not decided, without labels: 1" in undecided.stdout
    assert [case.labels for case in read_cases(tmp_path / "undecided.jsonl")] == [["claim"], None, ["opener"]]

    agreed_already = run(cases, "--adjudicate", "--answers", "-", stdin=answers(("one", [])))
    assert agreed_already.code == 2
    assert "stdin: line 1: case: 'one' is none of the cases asked for" in agreed_already.stderr
    assert run(cases, "--adjudicate", "--answers", "-", stdin=answers(("two", ["defer"]))).code == 0
    written = run(cases, "--write", tmp_path / "final.jsonl")
    final = read_cases(tmp_path / "final.jsonl")
    assert [(case.labels, case.disputed) for case in final] == [
        (["claim"], False),
        (["defer"], True),
        (["opener"], False),
    ]
    assert "disputed and decided: 1" in written.stdout


def test_a_file_of_cases_may_be_written_anew_and_no_other(cases: Path, run: Run, tmp_path: Path) -> None:
    """
    Neither the cases themselves, by whatever name, nor labels, nor anything that is not cases; nothing of them is touched.
    """
    run(cases, "--answers", "-", stdin=answers(("one", ["claim"])))
    labels, out = Path(f"{cases}.labels.jsonl"), tmp_path / "out.jsonl"
    (tmp_path / "link").symlink_to(cases)
    (tmp_path / "hard").hardlink_to(cases)
    (tmp_path / "thesis.txt").write_text("Chapter 1\n")
    (tmp_path / "other.jsonl.labels.jsonl").write_bytes(labels.read_bytes())
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    for name, said in {
        cases.name: "is the file of cases itself",
        "link": "is the file of cases itself",
        "hard": "is the file of cases itself",
        labels.name: "is the file of the labels",
        "thesis.txt": "exists, and is no file of cases (line 1: not JSON",
        "other.jsonl.labels.jsonl": "exists, and is no file of cases (line 1: ",
        ".": "no regular file",
        "x" * 300: "cannot be written: File name too long",
    }.items():
        told = run(cases, "--write", tmp_path / name)
        assert (told.code, told.stdout, told.stderr.count("\n")) == (2, "", 1)
        assert said in told.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before

    out.touch()
    for _ in range(2):
        assert run(cases, "--write", out).code == 0
    assert [case.labels for case in read_cases(out)] == [["claim"], None, None]


def test_labels_of_a_turn_that_was_replaced_are_not_put_on_the_new_one(cases: Path, run: Run, tmp_path: Path) -> None:
    """
    It is told how many there are; the labeller is asked again.
    """
    run(cases, "--answers", "-", stdin=answers(("one", ["claim"]), ("two", [])))
    write_cases(cases, [new_case("one", Turn("Do one", "Did nothing.")), *read_cases(cases)[1:]])

    written = run(cases, "--write", tmp_path / "out.jsonl")

    assert [case.labels for case in read_cases(tmp_path / "out.jsonl")] == [None, [], None]
    assert written.stderr == (
        f"turngate: {cases}.labels.jsonl: labels of other words under the same id, which do not count: 1\n"
    )
    assert "1 kept of anna, 1 left" in run(cases, "--answers", "-", stdin=answers(("one", []))).stdout


def test_half_a_file_of_answers_keeps_none(cases: Path, run: Run) -> None:
    """
    The line is named; the whole file can be given again.
    """
    result = run(cases, "--answers", "-", stdin=answers(("one", []), ("two", []))[:-12])

    assert result.code == 2
    assert result.stderr.startswith("turngate: stdin: line 2: not JSON: ")
    assert not Path(f"{cases}.labels.jsonl").exists()


def test_differences_are_decided_on_a_terminal(cases: Path, run: Run, terminals: Callable[..., Terminal]) -> None:
    """
    Only they are shown, with both labels.
    """
    run(cases, "--answers", "-", stdin=answers(("one", ["claim"]), ("two", [])))
    run(cases, "--labeller", "ben", "--answers", "-", stdin=answers(("one", []), ("two", [])))
    terminal = terminals(cases, "--adjudicate", "--labeller", "cleo")
    shown = terminal.until("[ ] n none")
    terminal.press("c\rq")
    terminal.until("1 kept of cleo, 0 left")
    terminal.until("labels.jsonl")

    assert terminal.end() == 0
    assert "anna says: claim" in shown
    assert "ben says: none" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--agreement"], "no agreement to be told: two labellers are needed, and nobody labelled", id="none"),
        pytest.param(["--adjudicate"], "nothing to decide: 0 labeller so far, two are needed", id="nothing to decide"),
        pytest.param(["--labeller", "a b"], "--labeller 'a b': a name is one word", id="a name of two words"),
        pytest.param(["--rubric", "none"], "unknown rubric 'none'", id="unknown rubric"),
        pytest.param(["--answers", "gone.jsonl"], "gone.jsonl: not readable: No such file or directory", id="no answers"),
        pytest.param(["--agreement", "--answers", "-"], "neither --agreement nor --write goes with it", id="two things"),
        pytest.param(["--write", "x", "--answers", "-"], "neither --agreement nor --write goes with it", id="two more"),
        pytest.param(["--write", "."], ".: not readable: no regular file", id="a folder"),
        pytest.param(["--write", "{cases}"], "is the file of cases itself: name another", id="onto itself"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line(cases: Path, run: Run, arguments: list[str], said: str) -> None:
    """
    Exit code 2, and nothing is written.
    """
    result = run(cases, *(argument.format(cases=cases) for argument in arguments))

    assert (result.code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert said in result.stderr
    assert not Path(f"{cases}.labels.jsonl").exists()


def test_agreement_of_one_labeller_is_not_told(cases: Path, run: Run) -> None:
    """
    Nor is there anything to decide.
    """
    run(cases, "--answers", "-", stdin=answers(("one", ["claim"])))

    assert run(cases, "--agreement").code == 2
    assert "1 labeller so far, two are needed" in run(cases, "--adjudicate").stderr
