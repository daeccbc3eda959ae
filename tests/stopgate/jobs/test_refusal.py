"""
What an agent is told about a refused command.
"""

from __future__ import annotations

import pytest

from turngate.stopgate.jobs.check import checked

SECRET = "sk-ant-api03-Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz"


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        pytest.param("npm run dev &", "npm run dev", id="a job"),
        pytest.param("nohup ./w.sh > log 2>&1 &", "./w.sh > log 2>&1", id="with nohup and redirections"),
        pytest.param("sudo -u app nohup ./w.sh", "sudo -u app ./w.sh", id="behind a wrapper"),
        pytest.param("(setsid -f ./w.sh)", "./w.sh", id="in a subshell, with an option"),
        pytest.param('bash -c "sleep 600 &"', "sleep 600", id="in a text"),
        pytest.param("A=1 setsid nohup ./w.sh &", "A=1 ./w.sh", id="twice detached"),
        pytest.param("cd app && nohup npm run dev > l 2>&1 &", "cd app && npm run dev > l 2>&1", id="part of a job"),
        pytest.param("nohup x > l 2>&1 & disown", "x > l 2>&1", id="with disown"),
        pytest.param("cd app; npm run dev &", "cd app; npm run dev", id="behind what it depends on"),
        pytest.param("p=3000; node s.js --port $p &", "p=3000; node s.js --port $p", id="with its variable"),
        pytest.param("serve() { a; }; serve & sleep 1", "serve() { a; }; serve", id="with its function"),
    ],
)
def test_the_command_to_send_instead_stands_in_the_reason(command: str, instead: str) -> None:
    """
    The same command without what cuts it loose, to be run by the client's own means.
    """
    reason = checked(command).reason

    assert "no part of it ran" in reason
    assert f"Send `{instead}` with run_in_background: true and no `&`" in reason


@pytest.mark.parametrize("command", ["pkill -f vite", "killall node", "kill $(pgrep -f vite)"])
def test_a_pattern_is_answered_with_the_process_that_is_meant(command: str) -> None:
    """
    A recorded PID or the task's id.
    """
    reason = checked(command).reason

    assert f"`{command}`" in reason
    assert "TaskStop" in reason
    assert "PID" in reason
    assert "run_in_background" not in reason


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("cat <<EOF | python3 - &\nprint(1)\nEOF", id="its here-document lies elsewhere"),
        pytest.param("for i in 1 2; do PORT=$i node s.js & done", id="a part of a loop"),
        pytest.param("echo hi; (cd app; npm run dev &)", id="behind other commands in a subshell"),
        pytest.param("RUN='nohup node s.js'; $RUN", id="a command in a variable"),
        pytest.param("deploy --key sk-ant-api03-Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz &", id="it holds a secret"),
        pytest.param("x " + "a" * 600 + " &", id="too long to repeat"),
    ],
)
def test_where_it_cannot_be_told_the_way_is_named(command: str) -> None:
    """
    No command is proposed that might be another one.
    """
    reason = checked(command).reason

    assert "Send the same command without `&`" in reason


def test_an_unquoted_address_is_told_to_be_quoted() -> None:
    """
    Whoever wrote `?a=1&b=2` meant no job.
    """
    reason = checked("curl http://h/?a=1&b=2&c=3").reason

    assert "put that in quotes. If not: send the same command without `&`" in reason
    assert "put that in quotes" not in checked("npm run dev &").reason


def test_one_process_is_named_once() -> None:
    """
    A job with `nohup` is one process, not two.
    """
    reason = checked("nohup x &").reason

    assert reason.count("would start") == 1
    assert "each as a call of its own" not in reason


def test_a_person_who_is_asked_is_not_told_that_it_was_refused() -> None:
    """
    With `jobs.mode = ask` it may still run.
    """
    reason = checked("npm run dev &", asks=True).reason

    assert reason.startswith("turngate asks about this command: ")
    assert "refused" not in reason


def test_many_parts_are_named_in_part() -> None:
    """
    The reason stays short, whatever is refused.
    """
    reason = checked("\n".join(f"job{number} {'x' * 300} &" for number in range(50))).reason

    assert "and 47 more" in reason
    assert len(reason) < 2_500


def test_no_secret_stands_in_the_reason() -> None:
    """
    It goes into the transcript, where the command stood before; other hooks and logs read it too.
    """
    assert SECRET not in checked(f"deploy --key {SECRET} &").reason


@pytest.mark.parametrize(
    ("pattern", "command", "outcome"),
    [
        pytest.param("npm run dev*", "npm run dev &", "jobs_pass", id="by what is started"),
        pytest.param("pkill -f my-app*", "pkill -f my-app-worker", "jobs_pass", id="by what stops"),
        pytest.param("nohup ./w.sh", "nohup ./w.sh", "jobs_pass", id="by the part as it is written"),
        pytest.param("npm run dev*", "npm run dev & pkill node", "jobs_deny", id="another part stays refused"),
        pytest.param("npm run dev*", "npm run build &", "jobs_deny", id="another command"),
    ],
)
def test_an_allowed_part_is_not_refused(pattern: str, command: str, outcome: str) -> None:
    """
    `jobs.allow` is matched with each refused part, never with the whole command.
    """
    assert checked(command, allowed=[pattern]).outcome == outcome
