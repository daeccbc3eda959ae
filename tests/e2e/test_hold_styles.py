"""
How a hold reads in the real client: to the agent, to the person, and in what the client writes down; and how none reads, in shadow mode.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from .client import TURNGATE, Json, needs_client
from .main_loop_api import Received, Script
from .stage import CLEAN, Played, Stage, finding, hold_in
from .story import CLAIM, FALSE_CLAIM, NO_TEST_RAN, PROMPT, WITHDRAWN, WRITE
from .test_subagents import ALPHA, dispatch

pytestmark = [pytest.mark.client, needs_client]

STYLES = ["decision", "context", "auto"]
REMINDER = ("user", f"<system-reminder>\nStop hook additional context: {NO_TEST_RAN}\n</system-reminder>")

in_process = pytest.mark.parametrize("stage", ["in-process"], indirect=True)
"""For a scene that takes the store away."""


def turngate(stage: Stage, *arguments: str) -> str:
    """
    What a person gets in the project's folder.
    """
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(stage.folder), "TURNGATE_STATE_DIR": str(stage.state)}
    environ["TURNGATE_CONFIG"] = str(stage.folder / "config.toml")
    done = subprocess.run(
        [TURNGATE, *arguments], env=environ, cwd=stage.project, capture_output=True, text=True, check=True
    )
    return done.stdout


def error_labels(scene: Played) -> list[object]:
    """
    What the client writes where it shows an error of a hook to the person.
    """
    shown = [a for a in scene.client.hook_attachments if a["type"] not in ("hook_success", "hook_system_message")]
    errors = [error for summary in scene.client.stop_summaries for error in summary["hookErrors"]]
    return [*(a["type"] for a in shown if a["type"] != "hook_additional_context"), *errors]


def messages(scene: Played) -> list[str]:
    """
    What the client showed to the person.
    """
    return [a["content"] for a in scene.client.hook_attachments if a["type"] == "hook_system_message"]


@pytest.mark.parametrize("style", STYLES)
def test_the_turn_goes_on_and_the_agent_is_told_once(stage: Stage, style: str) -> None:
    """
    Whatever the style; `auto` is `context` on this client, and with `context` the person sees no error.
    """
    scene = stage.play(
        PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN], environ={"TURNGATE_GATE_STYLE": style}
    )

    held = scene.main_loop.received_from(PROMPT)[2]
    if style == "decision":
        assert hold_in(held) == NO_TEST_RAN
        assert error_labels(scene) == ["hook_blocking_error", NO_TEST_RAN]
    else:
        assert held.news == [REMINDER]
        assert error_labels(scene) == []
    assert scene.outcomes == ["block_verdict", "pass_clean"]
    assert [d["spent"] for d in scene.decisions] == [1, 1]
    assert scene.client.result["result"] == WITHDRAWN


@pytest.mark.parametrize("style", STYLES)
def test_a_turn_is_held_twice_and_no_more(stage: Stage, style: str) -> None:
    """
    The third stop of the turn is let through unseen, and the person is told so once.
    """
    scene = stage.play(
        PROMPT, {PROMPT: [WRITE, CLAIM, CLAIM, CLAIM]}, otherwise=FALSE_CLAIM, environ={"TURNGATE_GATE_STYLE": style}
    )

    assert scene.outcomes == ["block_verdict", "block_verdict", "pass_cap_spent"]
    assert [d["spent"] for d in scene.decisions] == [1, 2, 2]
    assert len(scene.judged) == 2
    assert messages(scene)[2:] == ["turngate: held twice; this reply was not judged"]
    assert scene.client.result["result"] == CLAIM


def in_other_words(claim: str, received: Received) -> str:
    """
    Say the same anew: of a reply in the very words of the one before, the transcript cannot tell whether it is written yet.
    """
    return f"{claim} I said so after {len(received.body['messages'])} messages."


@in_process
@pytest.mark.parametrize("style", STYLES)
def test_the_transcript_counts_where_the_store_is_lost(stage: Stage, style: str) -> None:
    """
    After each hold the store is gone; the client's own entries tell of the holds, in either style.
    """

    def claim_without_store(received: Received) -> str:
        for file in stage.state.glob("*.db*"):
            file.unlink()
        return in_other_words(CLAIM, received)

    scene = stage.play(
        PROMPT,
        {PROMPT: [WRITE, CLAIM, claim_without_store, claim_without_store]},
        otherwise=FALSE_CLAIM,
        environ={"TURNGATE_GATE_STYLE": style},
    )

    assert [(d["outcome"], d["spent"]) for d in scene.decisions] == [("pass_cap_spent", 2)]
    assert len(scene.judged) == 2
    assert len(scene.main_loop.received_from(PROMPT)) == 4


@in_process
def test_a_subagent_is_held_by_context_under_its_own_event(stage: Stage) -> None:
    """
    Twice, and no more, also where only its transcript tells of the first hold; its parent sees the last report.
    """
    claim, no_test_ran = "All 12 tests pass.", "No test ran, yet the report says that all 12 pass."

    def claim_without_store(received: Received) -> str:
        for file in stage.state.glob("*.db*"):
            file.unlink()
        return in_other_words(claim, received)

    agents: dict[str, Script] = {
        PROMPT: [dispatch(ALPHA, background=False), "The tests were not run."],
        ALPHA: [claim, claim_without_store, claim_without_store],
    }
    verdict = finding("claim", claim, no_test_ran)

    scene = stage.play(PROMPT, agents, [verdict, verdict, CLEAN], environ={"TURNGATE_GATE_STYLE": "context"})

    told = f"SubagentStop hook additional context: {no_test_ran}"
    assert [told in text for r in scene.main_loop.received_from(ALPHA)[1:] for _, text in r.news] == [True, True]
    assert [(d["event"], d["outcome"], d["spent"]) for d in scene.decisions] == [
        ("SubagentStop", "pass_cap_spent", 2),
        ("Stop", "pass_clean", 0),
    ]
    assert error_labels(scene) == []


@pytest.mark.parametrize("style", ["decision", "context"])
def test_the_person_gets_one_line_with_the_fault_and_what_to_say_to_it(stage: Stage, style: str) -> None:
    """
    With the hold alone; the agent does not get it. What it says to type marks that hold, and its turn is a case.
    """
    scene = stage.play(
        PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN], environ={"TURNGATE_GATE_STYLE": style}
    )

    held = scene.decisions[0]["id"]
    (message,) = messages(scene)
    assert message == f"turngate held this reply: claim (turngate wrong {held[:9]})"
    assert not [r for r in scene.main_loop.received if "turngate wrong" in json.dumps(r.body)]

    said = turngate(stage, *message.partition("(turngate ")[2].rstrip(")").split())
    assert said.startswith(f"{held} is noted as wrong, and is a case now (labels: none): ")
    case: Json = json.loads((stage.state / "lab-cases.jsonl").read_text())
    assert (case["labels"], case["turn"]["request"], case["turn"]["reply"]) == ([], PROMPT, CLAIM)
    assert turngate(stage, "wrong").startswith(f"The last hold of this project: {held}, ")


def test_the_persons_line_can_be_switched_off(stage: Stage) -> None:
    """
    The agent is held all the same.
    """
    environ = {"TURNGATE_GATE_MESSAGE": "false"}

    scene = stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN], environ=environ)

    assert scene.outcomes == ["block_verdict", "pass_clean"]
    assert messages(scene) == []


def test_in_shadow_mode_all_is_judged_and_logged_and_nothing_held(stage: Stage) -> None:
    """
    The client notes nothing at all; `log --would-hold` lists what would have been held, with its reason, and nothing else.
    """
    shadow = {"TURNGATE_GATE_MODE": "shadow"}
    stage.play(PROMPT, {PROMPT: [WRITE, CLAIM]}, [FALSE_CLAIM], environ=shadow)
    again = "Once more, please."

    scene = stage.play(again, {PROMPT: [WITHDRAWN]}, [CLEAN], environ=shadow, resume=True)

    assert scene.outcomes == ["shadow_verdict", "pass_clean"]
    assert [d["spent"] for d in scene.decisions] == [0, 0]
    assert scene.client.hook_attachments == []
    assert [summary["hasOutput"] for summary in scene.client.stop_summaries] == [False, False]
    (line,) = turngate(stage, "log", "--would-hold", "--json").splitlines()
    assert json.loads(line) == scene.decisions[0]
    assert json.loads(line)["findings"] == FALSE_CLAIM["findings"]
    assert NO_TEST_RAN in turngate(stage, "log", "--would-hold")
