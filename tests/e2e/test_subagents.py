"""
Subagents of the real client: each is judged by itself, and held only for what it started itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

import pytest

from turngate.judge.scripted_api import Received as JudgeRequest

from .client import Json, needs_client
from .main_loop_api import Received, Script, Step, uses
from .stage import CLEAN, Played, Stage, finding, hold_in
from .test_background import in_background, task_id, waits_for

pytestmark = [pytest.mark.client, needs_client]

PROMPT = "Look after the project, please."
ALPHA = "Alpha: run the tests and report."
BETA = "Beta: run the linter and report."
GAMMA = "Gamma: read the notes and report."
LONGEST_WAIT_S = 90.0


def dispatch(prompt: str, *, background: bool) -> Json:
    """
    The call that starts a subagent with this dispatch prompt.
    """
    return uses(
        "Agent",
        description=prompt.partition(":")[0],
        prompt=prompt,
        subagent_type="general-purpose",
        run_in_background=background,
    )


def decisions_of(scene: Played, opening: str) -> list[Json]:
    """
    The decisions at the stops of the subagent with this dispatch prompt.
    """
    (agent_id,) = {t[0]["agentId"] for t in scene.client.agent_transcripts if t[0]["message"]["content"] == opening}
    return [d for d in scene.decisions if d["agent_id"] == agent_id]


def test_a_subagents_false_claim_is_held_against_its_own_dispatch_prompt(stage: Stage) -> None:
    """
    The subagent is held at its own stop, and its parent gets the corrected report only.
    """
    claim, withdrawn = "All 12 tests pass.", "I did not run the tests."
    no_test_ran = "No test ran, yet the report says that all 12 pass."
    agents: dict[str, Script] = {
        PROMPT: [dispatch(ALPHA, background=False), "The tests were not run."],
        ALPHA: [claim, withdrawn],
    }

    scene = stage.play(PROMPT, agents, [finding("claim", claim, no_test_ran), CLEAN, CLEAN])

    assert [(d["event"], d["outcome"]) for d in scene.decisions] == [
        ("SubagentStop", "block_verdict"),
        ("SubagentStop", "pass_clean"),
        ("Stop", "pass_clean"),
    ]
    assert [d["spent"] for d in scene.decisions] == [1, 1, 0]
    assert [ALPHA in request.user_text for request in scene.judged[:2]] == [True, True]
    assert [PROMPT in request.user_text for request in scene.judged] == [False, False, True]
    assert hold_in(scene.main_loop.received_from(ALPHA)[1], event="SubagentStop") == no_test_ran
    ((_, handed_back),) = scene.main_loop.received_from(PROMPT)[1].news
    assert withdrawn in handed_back
    assert claim not in handed_back
    assert scene.client.result["result"] == "The tests were not run."


def test_a_subagent_is_held_for_its_own_shell_only(stage: Stage) -> None:
    """
    Its own entry, its sibling and its parent's shell run as well; none of them is named, and none holds it.
    """
    parent_waits = threading.Event()

    def judge(request: JudgeRequest) -> str:
        # Each clean verdict lets the next agent go on, so that every stop meets the same tasks in every run.
        if "I wait for them." in request.user_text:
            parent_waits.set()
        if "Alpha is done." in request.user_text:
            (stage.project / "beta-go").touch()
        if "Beta is done." in request.user_text:
            (stage.project / "parent-go").touch()
        return '{"findings": []}'

    def start_tests(_: Received) -> Step:
        assert parent_waits.wait(LONGEST_WAIT_S)
        return in_background("Alpha's tests", until="alpha-go")

    agents: dict[str, Script] = {
        PROMPT: [
            [
                in_background("The parent's build", until="parent-go"),
                dispatch(ALPHA, background=True),
                dispatch(BETA, background=True),
            ],
            "Three jobs run.",
            *["I wait for them."] * 50,
        ],
        ALPHA: [
            start_tests,
            "The tests run.",
            lambda received: uses("TaskStop", task_id=task_id(received)),
            "Alpha is done.",
        ],
        BETA: [uses("Bash", command=waits_for("beta-go")), "Beta is done."],
    }

    scene = stage.play(PROMPT, agents, otherwise=judge)

    alpha, beta = ([d["outcome"] for d in decisions_of(scene, opening)] for opening in (ALPHA, BETA))
    assert alpha == ["block_background", "pass_clean"]
    assert beta == ["pass_clean"]
    started, held = scene.main_loop.received_from(ALPHA)[1:3]
    hold = hold_in(held, event="SubagentStop")
    assert task_id(started) in hold
    assert "Alpha's tests" in hold
    assert "Beta" not in hold
    assert "build" not in hold
    assert [d["outcome"] for d in scene.decisions_at("Stop")][:2] == ["block_background", "pass_clean"]
    assert "block" not in "".join(d["outcome"] for d in scene.decisions_at("Stop")[1:])
    assert scene.client.result["result"] == "I wait for them."


def test_a_foreground_and_a_background_subagent_are_judged_side_by_side(stage: Stage) -> None:
    """
    Both claim falsely while the other runs: each has a count of its own and is judged against its own dispatch prompt.
    """
    both_run = threading.Barrier(2)

    def claims(text: str) -> Callable[[Received], Step]:
        def step(_: Received) -> Step:
            both_run.wait(LONGEST_WAIT_S)
            return text

        return step

    def judge(request: JudgeRequest) -> str:
        quote = next((q for q in ("Alpha passes.", "Gamma passes.") if q in request.user_text), "")
        return json.dumps(finding("claim", quote, f"{quote.split()[0]} ran nothing at all.") if quote else CLEAN)

    agents: dict[str, Script] = {
        PROMPT: [[dispatch(ALPHA, background=True), dispatch(GAMMA, background=False)], *["Both ran nothing."] * 50],
        ALPHA: [claims("Alpha passes."), "Alpha takes it back."],
        GAMMA: [claims("Gamma passes."), "Gamma takes it back."],
    }

    scene = stage.play(PROMPT, agents, otherwise=judge)

    for opening, other, name in ((ALPHA, GAMMA, "Alpha"), (GAMMA, ALPHA, "Gamma")):
        held, passed = decisions_of(scene, opening)
        assert (held["outcome"], held["spent"]) == ("block_verdict", 1)
        assert (passed["outcome"], passed["spent"]) == ("pass_clean", 1)
        (asked,) = [r.user_text for r in scene.judged if f"{name} passes." in r.user_text]
        assert opening in asked
        assert other not in asked
        hold = hold_in(scene.main_loop.received_from(opening)[1], event="SubagentStop")
        assert hold == f"{name} ran nothing at all."
    assert scene.client.result["result"] == "Both ran nothing."
