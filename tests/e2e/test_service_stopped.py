"""
A service that ends, dies or freezes at any point of a scene: the turn ends as it would have, judged or not.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from signal import SIGKILL, SIGSTOP, SIGTERM, Signals

import pytest

from turngate.costing.outcomes import OUTCOMES
from turngate.judge.scripted_api import Received as JudgeRequest
from turngate.judge.scripted_api import Script as JudgeAnswer
from turngate.judge.scripted_api import ScriptedMessagesApi

from .client import HOOK, needs_client
from .main_loop_api import Received, Script, Step
from .stage import CLEAN, Played, Stage, by_a_service
from .story import CLAIM, FALSE_CLAIM, PROMPT, WITHDRAWN, WRITE

pytestmark = [pytest.mark.client, needs_client, by_a_service]

SOON = {"TURNGATE_JUDGE_DEADLINE_S": "3"}
"""Until then a frozen service is waited for, at each stop."""

JUDGED = ["block_verdict", "pass_clean"]
FROZEN = ["block_verdict", "pass_service_error"]
UNJUDGED = ["pass_service_error"]

signals = pytest.mark.parametrize("signal", [SIGTERM, SIGKILL, SIGSTOP], ids=lambda signal: signal.name)


def judge(request: JudgeRequest) -> str:
    """
    Find the false claim until it is withdrawn.
    """
    return json.dumps(CLEAN if WITHDRAWN in request.user_text else FALSE_CLAIM)


def says_after(act: Callable[[], None], text: str) -> Callable[[Received], Step]:
    """
    A reply before which something happens.
    """

    def step(_: Received) -> Step:
        act()
        return text

    return step


def play(
    stage: Stage,
    agent: Script,
    signal: Signals,
    verdicts: Sequence[JudgeAnswer] = (),
    *,
    hook: str = str(HOOK),
    judge_url: str = "",
) -> Played:
    """
    Play it with a service that has judged before.
    """
    stage.start_service()
    soon = SOON if signal == SIGSTOP else {}
    return stage.play(
        PROMPT, {PROMPT: agent}, verdicts, otherwise=judge, judge_url=judge_url, hooks=[hook], environ=soon
    )


def assert_undisturbed(scene: Played) -> None:
    """
    The person got the agent's last reply, and nothing of the trouble.
    """
    was_held = scene.outcomes[:1] == ["block_verdict"]
    assert scene.client.result["result"] == (WITHDRAWN if was_held else CLAIM)
    assert (scene.client.result["subtype"], scene.client.result["is_error"]) == ("success", False)
    assert scene.client.stderr == ""
    assert set(scene.outcomes) <= set(OUTCOMES)
    assert [summary["hookErrors"] for summary in scene.client.stop_summaries][was_held:] == [[]]
    # The first two belong to the hold. The third is the line for the client's debug log.
    noted = ["hook_blocking_error", "hook_system_message"] * was_held
    noted += ["hook_success"] * scene.outcomes.count("pass_service_error")
    assert [a["type"] for a in scene.client.hook_attachments] == noted


@signals
def test_a_service_stopped_before_the_first_stop(stage: Stage, signal: Signals) -> None:
    """
    One that is gone is replaced, and all is judged. One that is frozen is waited for until the deadline.
    """
    agent: Script = [WRITE, says_after(lambda: stage.send_service(signal), CLAIM), WITHDRAWN]

    scene = play(stage, agent, signal)

    assert scene.outcomes == (UNJUDGED if signal == SIGSTOP else JUDGED)
    assert_undisturbed(scene)


@signals
def test_a_service_stopped_while_the_judge_is_asked(stage: Stage, signal: Signals) -> None:
    """
    One that is told to end brings this stop to its end before. One that dies or freezes: the stop passes, and nobody is paid again.
    """

    def stops(request: JudgeRequest) -> str:
        stage.send_service(signal)
        return judge(request)

    scene = play(stage, [WRITE, CLAIM, WITHDRAWN], signal, [stops])

    assert scene.outcomes == (JUDGED if signal == SIGTERM else UNJUDGED)
    assert len(scene.judged) == len(scene.outcomes)
    assert_undisturbed(scene)


@signals
def test_a_service_stopped_between_a_hold_and_the_next_stop(stage: Stage, signal: Signals) -> None:
    """
    The next one knows what was spent.
    """
    agent: Script = [WRITE, CLAIM, says_after(lambda: stage.send_service(signal), WITHDRAWN)]

    scene = play(stage, agent, signal)

    assert scene.outcomes == (FROZEN if signal == SIGSTOP else JUDGED)
    assert scene.decisions[0]["spent"] == 1
    assert scene.decisions[1]["spent"] in (1, None)
    assert_undisturbed(scene)


@signals
def test_a_service_stopped_after_each_verdict(stage: Stage, signal: Signals) -> None:
    """
    The hook has said what it was told, and the client waits for the hook's end no longer than without it.
    """
    stage.may_lack_a_service = True
    hook = f"{HOOK}; kill -{signal.name.removeprefix('SIG')} $(cat {stage.lock}) 2>/dev/null; true"

    scene = play(stage, [WRITE, CLAIM, WITHDRAWN], signal, hook=hook)

    assert scene.outcomes == (FROZEN if signal == SIGSTOP else JUDGED)
    assert_undisturbed(scene)


@pytest.mark.parametrize("delay_s", [0.0, 0.005, 0.02], ids=lambda delay_s: f"{delay_s * 1000:g}-ms-later")
def test_a_service_killed_while_it_decides(stage: Stage, delay_s: float) -> None:
    """
    Wherever between the judge's answer and its own it dies: the stop is held, or passes as undecided.
    """

    def kills(request: JudgeRequest) -> str:
        threading.Timer(delay_s, stage.send_service, [SIGKILL]).start()
        return judge(request)

    scene = play(stage, [WRITE, CLAIM, WITHDRAWN], SIGKILL, [kills])

    # A hold may be written down and never told.
    assert scene.outcomes in (JUDGED, UNJUDGED, ["block_verdict", "pass_service_error"])
    assert_undisturbed(scene)


def test_a_service_that_wakes_up_in_the_middle_of_a_stop_holds_nobody(stage: Stage) -> None:
    """
    Nobody waits for what it decides then: no continuation is spent.
    """

    def freezes(request: JudgeRequest) -> str:
        stage.send_service(SIGSTOP)
        return judge(request)

    play(stage, [WRITE, CLAIM], SIGSTOP, [freezes])

    stage.end_service()

    late = stage.decisions()
    assert {d["outcome"] for d in late} <= {"pass_service_error", "pass_judge_timeout"}
    assert {d["spent"] for d in late} <= {0, None}


def test_a_service_that_wakes_up_before_a_stop_that_is_over_asks_nobody(stage: Stage) -> None:
    """
    The stop lay in its queue until the hook gave up: no model is paid for it any more.
    """
    agent: Script = [WRITE, says_after(lambda: stage.send_service(SIGSTOP), CLAIM)]
    with ScriptedMessagesApi(otherwise=judge) as late_judge:
        scene = play(stage, agent, SIGSTOP, judge_url=late_judge.url)

        stage.wake_service()
        stage.start_service()

    assert scene.outcomes == UNJUDGED
    assert late_judge.requests == []
    assert "block" not in "".join(d["outcome"] for d in stage.decisions())
