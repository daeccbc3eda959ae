"""
Each command of the table, which was written from the rules alone, and those that the field's pitfalls name.
"""

from __future__ import annotations

import pytest

from turngate.stopgate.jobs.check import checked

from .job_commands import KINDS, NOT_BASH, PASSED, REFUSED, Refused


def test_the_table_has_every_kind_five_ways_and_both_verdicts() -> None:
    """
    A kind with one verdict would show nothing.
    """
    assert len(PASSED) + len(REFUSED) >= 250
    assert [kind["name"] for kind in KINDS if min(len(kind["pass"]), len(kind["refuse"])) < 4] == []
    assert len({command for _, command in PASSED} | {refused.command for _, refused in REFUSED}) == len(PASSED) + len(
        REFUSED
    )


@pytest.mark.parametrize(("kind", "command"), PASSED)
def test_a_command_that_starts_and_stops_nothing_untracked_passes(kind: str, command: str) -> None:
    """
    Nothing is refused of it; what bash does not take is counted apart.
    """
    assert checked(command).outcome == ("jobs_unparsed" if kind == NOT_BASH else "jobs_pass")


@pytest.mark.parametrize(("kind", "refused"), REFUSED)
def test_a_command_that_does_is_refused_with_the_part_that_does(kind: str, refused: Refused) -> None:
    """
    Among the parts that are named is the one that the table names.
    """
    found = checked(refused.command)

    assert found.outcome == "jobs_deny"
    assert [part for part in found.found if refused.part in part.part and part.kind == refused.kind]


PITFALLS_PASS = (
    *("make 2>&1 | tee log", "make &> log", "make |& tee log", "a && b", "x=$((5 & 3))", 'echo "a & b"', r"echo a\&b"),
    *("# start &", 'curl "http://h/?a=1&b=2"', "sleep 1 & wait", "job1 & job2 & wait"),
    *("for i in 1 2; do sleep 1 & done; wait", "sleep 1 & p=$!; wait $p", "cat <<EOF\na & b\nEOF"),
    *('git commit -m "run it with nohup & disown"', "grep -rn nohup docs/", "cat nohup.out", "kill 12345"),
    *('kill "$(cat app.pid)"', "pgrep -f vite | wc -l", "ps aux | grep vite", 'echo "do not use pkill -f"'),
)
PITFALLS_REFUSE = (
    *("npm run dev &", "(sleep 600 &)", "{ sleep 600 & }", "wait; sleep 600 &", "curl http://h/?a=1&b=2"),
    *('bash -c "sleep 600 &"', "python3 - <<'PY' &\nprint(1)\nPY", "nohup ./w.sh", "FOO=1 nohup x", "sudo nohup x"),
    *("/usr/bin/nohup x", "(setsid foo)", "x & disown", "pkill -f vite", "killall node", "kill $(pgrep -f vite)"),
    *("pgrep -f vite | xargs -r kill", "bash -c 'pkill -f x'"),
)


@pytest.mark.parametrize("command", PITFALLS_PASS)
def test_the_fields_own_passing_commands_pass(command: str) -> None:
    """
    The commands that a check by words has refused in the field.
    """
    assert checked(command).outcome == "jobs_pass"


@pytest.mark.parametrize("command", PITFALLS_REFUSE)
def test_the_fields_own_refused_commands_are_refused(command: str) -> None:
    """
    The commands that left processes behind in the field, or stopped those of others.
    """
    assert checked(command).outcome == "jobs_deny"


@pytest.mark.parametrize(("kind", "refused"), REFUSED)
def test_what_is_proposed_instead_passes(kind: str, refused: Refused) -> None:
    """
    An agent that does as it is told is not refused again.
    """
    proposed = [part.instead for part in checked(refused.command).found if part.instead]

    assert {checked(command).outcome for command in proposed} <= {"jobs_pass"}
