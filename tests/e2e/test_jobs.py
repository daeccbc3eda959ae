"""
The check of Bash commands before the real client runs them.
"""

from __future__ import annotations

import json
import re

import pytest

from .client import HOOK, Json, needs_client
from .main_loop_api import Received, Script, uses
from .stage import CLEAN, Stage, hold_in
from .test_background import task_id, waits_for

pytestmark = [pytest.mark.client, needs_client]

PROMPT = "Start the server, please."
DONE = "I did what I could."

CUT_LOOSE = "nohup touch was-started"
BY_A_PATTERN = "touch was-stopped; pkill -x turngate-nobody"
UNTRACKED: Script = [
    uses("Bash", command=CUT_LOOSE, description="Start it"),
    uses("Bash", command=BY_A_PATTERN, description="Stop it"),
    DONE,
]
"""Calls that the client itself does not object to, as it does to many a lone `&`."""


@pytest.fixture
def checked(stage: Stage) -> Stage:
    """
    A stage whose project has the check beside the user's Stop hook.
    """
    check_jobs(stage)
    if stage.is_relayed:
        # A hook that must start the service first may have no answer before the time for a check is over.
        stage.start_service()
    return stage


def check_jobs(stage: Stage, hook: str = str(HOOK)) -> None:
    """
    Write the project's settings, with this hook before each Bash call.
    """
    entry = {"matcher": "Bash", "hooks": [{"type": "command", "command": hook, "timeout": 60}]}
    settings = stage.project / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"hooks": {"PreToolUse": [entry]}}))


def result_in(received: Received) -> str:
    """
    The result of the one tool call before this request.
    """
    ((role, text),) = received.news
    assert role == "user"
    return text


def made(stage: Stage) -> set[str]:
    """
    What the agents' commands have made in the project.
    """
    return {path.name for path in stage.project.iterdir()} - {".claude"}


def sends_what_was_proposed(received: Received) -> Json:
    """
    The call that the refusal asks for.
    """
    proposed = re.search(r"Send `([^`]+)` with run_in_background: true and no `&`", result_in(received))
    assert proposed
    return uses("Bash", command=proposed[1], description="Serve", run_in_background=True)


def stops_the_task(received: Received) -> Json:
    """
    The call that ends the task which the client started.
    """
    return uses("TaskStop", task_id=task_id(received))


def test_a_job_is_refused_and_runs_in_its_proposed_form_where_the_background_check_sees_it(checked: Stage) -> None:
    """
    Of the refused command nothing ran, not even what stood before the job; the agent was told so, and what to send.
    """
    made_by_the_refused: list[set[str]] = []

    def retries(received: Received) -> Json:
        made_by_the_refused.append(made(checked))
        return sends_what_was_proposed(received)

    agent: Script = [
        uses("Bash", command="touch before; touch began && sleep 300 &", description="Start the server"),
        retries,
        uses("Bash", command=waits_for("began"), description="Wait for it"),
        "The server runs.",
        stops_the_task,
        DONE,
    ]

    scene = checked.play(PROMPT, {PROMPT: agent}, [CLEAN])

    assert scene.outcomes == ["jobs_deny", "jobs_pass", "jobs_pass", "block_background", "pass_clean"]
    refused, launched, _, held, stopped = scene.main_loop.received_from(PROMPT)[1:]
    assert "turngate refused this command, and no part of it ran" in result_in(refused)
    assert "`touch began && sleep 300 &`" in result_in(refused)
    assert made_by_the_refused == [set()]
    assert made(checked) == {"before", "began"}  # what is proposed keeps what the job may depend on
    assert f"- {task_id(launched)} (shell): Serve" in hold_in(held)
    assert f"Successfully stopped task: {task_id(launched)}" in result_in(stopped)
    assert scene.client.result["result"] == DONE


def test_a_passing_command_runs_and_the_check_says_nothing(checked: Stage) -> None:
    """
    Zero bytes, and nothing noted by the client: whether the command may run stays the client's question.
    """
    stdout, stderr = checked.folder / "hook.stdout", checked.folder / "hook.stderr"
    check_jobs(checked, f"{HOOK} 2>>{stderr} | tee -a {stdout}")
    command = "sleep 0.1 & wait; echo 'nohup x & disown' >ran"

    scene = checked.play(PROMPT, {PROMPT: [uses("Bash", command=command, description="Note it"), DONE]}, [CLEAN])

    assert scene.outcomes == ["jobs_pass", "pass_clean"]
    assert (checked.project / "ran").read_text() == "nohup x & disown\n"
    assert (stdout.read_bytes(), stderr.read_bytes()) == (b"", b"")
    assert scene.client.hook_attachments == []
    assert scene.client.result["permission_denials"] == []


@pytest.mark.parametrize(
    ("mode", "told"),
    [
        pytest.param(
            "deny", "PreToolUse:Bash hook error: turngate refused this command, and no part of it ran", id="deny"
        ),
        pytest.param("ask", "turngate asks about this command", id="ask"),
    ],
)
def test_a_command_that_the_client_would_run_is_not_run_where_it_is_denied_or_nobody_can_be_asked(
    checked: Stage, mode: str, told: str
) -> None:
    """
    The agent gets each reason as the result of the call, and goes on to its end.
    """
    scene = checked.play(PROMPT, {PROMPT: UNTRACKED}, [CLEAN], environ={"TURNGATE_JOBS_MODE": mode})

    assert scene.outcomes == ["jobs_deny", "jobs_deny", "pass_clean"]
    cut_loose, by_a_pattern = map(result_in, scene.main_loop.received_from(PROMPT)[1:])
    assert cut_loose.startswith(f"{told}: `nohup touch was-started`")
    assert by_a_pattern.startswith(f"{told}: `pkill -x turngate-nobody`")
    assert "run_in_background: true" in cut_loose
    assert "TaskStop" in by_a_pattern
    assert made(checked) == set()
    denied = [denial["tool_input"]["command"] for denial in scene.client.result["permission_denials"]]
    assert denied == [CUT_LOOSE, BY_A_PATTERN]


def test_the_same_commands_run_where_the_check_is_off(checked: Stage) -> None:
    """
    So it is the check alone that kept them from it.
    """
    scene = checked.play(PROMPT, {PROMPT: UNTRACKED}, [CLEAN], environ={"TURNGATE_JOBS_MODE": "off"})

    assert scene.outcomes == ["pass_off", "pass_off", "pass_clean"]
    assert made(checked) == {"was-started", "was-stopped"}
    assert scene.client.result["permission_denials"] == []
