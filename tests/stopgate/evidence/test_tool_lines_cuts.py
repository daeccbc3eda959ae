"""
What is kept and understood of long commands and outputs.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from turngate.stopgate.evidence.builder import build_turn
from turngate.stopgate.transcript import read

from ..transcripts import Session
from .one_call import bash, line_of


def test_a_line_is_one_line_of_visible_characters_and_bounded(tmp_path: Path):
    """
    Escape sequences, carriage returns, lone surrogates and what hides text are gone; long texts are cut with a mark.
    """
    nasty = "\x1b[31mred\x1b[0m\r\n\u202eback\ud800\0 " + "word " * 5_000

    call = line_of("Bash", f"{nasty}\n{'z' * 9_000}", tmp_path, bash(nasty))

    assert call.line.isprintable()
    assert "left out" in call.line
    assert len(call.line) < 500
    call.line.encode()


def test_the_last_lines_that_say_something_are_shown(tmp_path: Path):
    """
    Rulers and blank lines say nothing.
    """
    output = "\n".join(["noise " * 50, "", "FAIL x", "======", "1 failed", "-----", "   "])

    assert line_of("Bash", output, tmp_path, bash("run")).line == (
        "Bash: run -> exit 0: [… lines left out …] | FAIL x | 1 failed"
    )


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        pytest.param("@@ -1 +1 @@\n-old = 1\n+new = 2", "@@ -1 +1 @@ | -old = 1 | +new = 2", id="a difference"),
        pytest.param("-1", "-1", id="a number below zero"),
        pytest.param("- [ ] write it\n* [x] done", "- [ ] write it | * [x] done", id="a list"),
        pytest.param("--- FAIL: TestX", "--- FAIL: TestX", id="a failure of Go"),
        pytest.param("===== 2 failed in 1.2s =====\n~~~~~~", "2 failed in 1.2s", id="rulers"),
        pytest.param("x" * 300 + "\nexit: 0", "[… lines left out …] | exit: 0", id="behind a long line"),
        pytest.param("a\n\n=====\nb", "a | b", id="what says nothing is no loss"),
    ],
)  # fmt: skip
def test_the_end_of_an_output_keeps_its_meaning(output: str, shown: str, tmp_path: Path):
    """
    A sign in front is part of a line, and lines that are left out are marked.
    """
    assert line_of("Bash", output, tmp_path, bash("run")).line == f"Bash: run -> exit 0: {shown}"


def test_what_is_left_out_of_a_very_long_output_is_marked(tmp_path: Path):
    """
    Also where its kept end is shown whole.
    """
    line = line_of("Bash", "noise\n" * 5_000 + "\n" * 5_000 + "2 failed", tmp_path, bash("run")).line

    assert line == "Bash: run -> exit 0: [… lines left out …] | 2 failed"


@pytest.mark.parametrize("newer", [0, 1_010])
@pytest.mark.parametrize("lines", [200, 400, 3_000])
def test_a_command_behind_a_long_here_document_is_understood_and_shown(lines: int, newer: int, tmp_path: Path):
    """
    However long its text, and however old the call is.
    """
    session = Session()
    session.prompt("go")
    command = "cat > gen.py <<'EOF'\n" + "print('some line')\n" * lines + "EOF\npython gen.py && pytest -q"
    session.runs("Bash", "ok", command=command)
    for number in range(newer):
        session.runs("Read", "ok", file_path=f"{number}")

    turn = build_turn(read(session.write(tmp_path)), reply="")

    assert [(check.command, check.passed) for check in turn.facts.checks] == [("pytest -q", True)]
    assert turn.facts.edited_files == ("gen.py",)
    assert turn.tool_calls[0].line.startswith("Bash: cat > gen.py <<'EOF' […] EOF python gen.py && pytest -q -> exit 0")


def test_both_ends_of_a_long_command_are_shown(tmp_path: Path):
    """
    With a mark between them.
    """
    line = line_of("Bash", "ok", tmp_path, bash(f"make first {'x ' * 20_000} last")).line

    assert line.startswith("Bash: make first x x")
    assert re.search(r"x\[… [\d,]+ characters left out …\] x .* last -> exit 0: ok$", line)


@pytest.mark.parametrize(
    ("command", "checks"),
    [
        pytest.param("cat > a.py <<'EOF'\n" + "x = 1\n" * 50_000 + "EOF\npytest -q", [("pytest -q", True)], id="behind a here-document"),
        pytest.param("pytest -q && echo '" + "x " * 100_000 + "' | tail", [("pytest -q", None)], id="before what is not known"),
        pytest.param("echo a && echo '" + "x " * 100_000 + "\npytest -q\n'", [], id="in a text that was cut"),
    ],
)  # fmt: skip
def test_a_long_command_is_understood_as_far_as_it_is_known(
    command: str, checks: list[tuple[str, bool | None]], tmp_path: Path
):
    """
    A check behind a long here-document counts; one whose status may be hidden in the part left out is not said to have passed.
    """
    session = Session()
    session.prompt("go")
    session.runs("Bash", "ok", command=command)

    facts = build_turn(read(session.write(tmp_path)), reply="").facts

    assert [(check.command, check.passed) for check in facts.checks] == checks


def test_what_old_failures_said_is_kept(tmp_path: Path):
    """
    However many calls followed.
    """
    session = Session()
    session.prompt("go")
    session.runs("Bash", "Exit code 1\n" + "noise\n" * 5_000 + "2 failed", error=True, command="pytest")
    for number in range(1_010):
        session.runs("Bash", "ok", command=f"echo {number}")

    assert build_turn(read(session.write(tmp_path)), reply="").tool_calls[0].line.endswith("| 2 failed")


@pytest.mark.parametrize(
    ("command", "shows_both_ends"),
    [
        pytest.param("pytest; git diff", True, id="its status is hidden"),
        pytest.param("pytest && git diff", True, id="something prints behind it"),
        pytest.param("bash -c 'pytest && git diff'", True, id="something prints behind it in a shell"),
        pytest.param("git diff && pytest", False, id="the last of the line"),
    ],
)
def test_a_checks_summary_before_other_output_is_shown(command: str, shows_both_ends: object, tmp_path: Path):
    """
    Where the exit status does not tell, or other commands print behind the check, both ends of the output are kept.
    """
    printed = "3 failed, 5 passed\n" + "+ a changed line\n" * 100 + "the end"

    line = line_of("Bash", printed, tmp_path, bash(command)).line

    assert ("3 failed, 5 passed" in line) is shows_both_ends
    assert line.endswith("the end")
    assert len(line) < 600
