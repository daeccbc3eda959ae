"""
Background work that still runs when an agent of the real client wants to stop.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from turngate.judge.scripted_api import Received as JudgeRequest

from .client import HOOK, Json, needs_client
from .main_loop_api import Received, Script, uses
from .stage import CLEAN, Stage, finding, hold_in

pytestmark = [pytest.mark.client, needs_client]

PROMPT = "Build it, please."
CLAIM = "The build is done. All tests pass."
FALSE_CLAIM = finding("claim", "All tests pass.", "No test ran in this turn.")


def waits_for(name: str) -> str:
    """
    A command that runs until a file of this name lies in the project, for some 40 s at most.
    """
    return f"for i in $(seq 400); do [ -e {name} ] && break; sleep 0.1; done"


def in_background(description: str, until: str) -> Json:
    """
    The call that starts such a command in the background.
    """
    return uses("Bash", command=waits_for(until), description=description, run_in_background=True)


def task_id(received: Received) -> str:
    """
    The id of the shell that the client has just started in the background.
    """
    started = re.search(r"running in background with ID: (\w+)", "\n".join(text for _, text in received.messages))
    assert started
    return started.group(1)


def clean_then(touch: Path) -> Callable[[JudgeRequest], str]:
    """
    A judge that finds nothing, and lets a waiting command go on.
    """

    def answer(_: JudgeRequest) -> str:
        touch.touch()
        return '{"findings": []}'

    return answer


def test_a_running_shell_holds_the_stop_once_and_asks_no_judge(stage: Stage) -> None:
    """
    The hold names the task; the next stop is judged, though it still runs; the turn that it wakes ends clean.
    """
    agent: Script = [
        in_background("Build the site", until="go"),
        "I started the build.",
        "The build still runs; I go on when it ends.",
        "The build ended.",
    ]

    scene = stage.play(PROMPT, {PROMPT: agent}, [clean_then(stage.project / "go"), CLEAN])

    assert scene.outcomes == ["block_background", "pass_clean", "pass_clean"]
    assert [len(d["calls"]) for d in scene.decisions] == [0, 1, 1]
    assert [d["spent"] for d in scene.decisions] == [1, 1, 1]
    assert len(scene.judged) == 2
    assert scene.decisions[0]["prompt_id"] == scene.decisions[1]["prompt_id"] != scene.decisions[2]["prompt_id"]
    launched, held, woken = scene.main_loop.received_from(PROMPT)[1:]
    hold = hold_in(held)
    assert task_id(launched) in hold
    assert "Build the site" in hold
    assert "TaskStop" in hold
    assert len(hold) <= 600
    assert "<task-notification>" in woken.news[-1][1]
    assert scene.client.result["result"] == "The build ended."


def test_a_task_notification_does_not_start_the_count_anew(stage: Stage) -> None:
    """
    It wakes the agent under a new prompt id, but no human spoke: what this turn had spent stays spent.
    """
    agent: Script = [in_background("Build", until="go"), "The build runs.", CLAIM, CLAIM, CLAIM]
    third_stop_lets_go = f"{HOOK}; echo >>stops; [ $(wc -l <stops) -lt 3 ] || touch go"

    scene = stage.play(PROMPT, {PROMPT: agent}, otherwise=FALSE_CLAIM, hooks=[third_stop_lets_go])

    assert scene.outcomes == ["block_background", "block_verdict", "pass_cap_spent", "pass_cap_spent"]
    assert [d["spent"] for d in scene.decisions] == [1, 2, 2, 2]
    assert scene.decisions[2]["prompt_id"] != scene.decisions[3]["prompt_id"]
    assert len(scene.judged) == 1
    assert scene.client.result["result"] == CLAIM
