"""
What cannot be parsed, or not in time, passes and is counted apart.
"""

from __future__ import annotations

import pytest

from turngate.stopgate.jobs.check import checked
from turngate.stopgate.jobs.shell_tree import LONGEST


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("if true; then pkill x", id="no end"),
        pytest.param("echo 'pkill x", id="an open quote"),
        pytest.param("a &; b", id="another shell's"),
        pytest.param("pkill x\0", id="a NUL"),
        pytest.param("pkill " + "x" * LONGEST, id="over a megabyte"),
        pytest.param("a=(" * 20_000, id="takes the parser a time that grows with its square"),
        pytest.param("echo x | " * 10_000, id="takes the parser a memory that grows with its square"),
        pytest.param("(" * 300 + "pkill x" + ")" * 300, id="deeper than people write"),
        pytest.param(
            "".join(f"f{n}() {{ f{n + 1}; f{n + 1}; }};" for n in range(60)) + "f0", id="functions without end"
        ),
        pytest.param("f() { f; }; " * 3 + "bash -c 'a &; b'; if", id="broken behind a text"),
    ],
)
def test_what_cannot_be_followed_passes(command: str) -> None:
    """
    Without an error, and with an outcome of its own.
    """
    assert checked(command).outcome == "jobs_unparsed"


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        pytest.param("f() { f; }; f; pkill x", "jobs_deny", id="a function that calls itself"),
        pytest.param(" && ".join(["a"] * 5_000) + " && pkill x", "jobs_deny", id="a long list"),
        pytest.param("a & p=$!; wait $p\n" * 2_000, "jobs_pass", id="many jobs"),
        pytest.param("find . " + "-exec find " * 8_000 + "pkill x ;", "jobs_pass", id="circles of find"),
        pytest.param("nohup a & disown\n" * 3_000, "jobs_deny", id="many that are cut loose"),
        pytest.param("bash -c 'a &; b'; pkill x", "jobs_deny", id="a broken text inside of a sound one"),
        pytest.param("\n", "jobs_pass", id="nothing"),
        pytest.param("echo \ud800; pkill x", "jobs_deny", id="half of a surrogate pair"),
        pytest.param("cat <<A <<B &\na &\nA\nb &\nB\n", "jobs_deny", id="a job with two here-documents"),
        pytest.param("cat <<EOF; wait\na & b\nEOF\n", "jobs_pass", id="a wait behind the start of a here-document"),
        pytest.param("x <<'E F' && b &\n$(a &)\nE F\nwait", "jobs_pass", id="a delimiter of two words"),
        pytest.param("time { a & }; wait", "jobs_pass", id="a timed group is the same shell"),
        pytest.param("time ( a & ); wait", "jobs_deny", id="a timed subshell is another"),
    ],
)
def test_odd_but_sound_commands_are_followed(command: str, outcome: str) -> None:
    """
    The parser's gaps are closed, and circles end.
    """
    assert checked(command).outcome == outcome
