"""
A judge that cannot be had: the turn of the real client ends in time, as if there were no gate.
"""

from __future__ import annotations

import socket

import pytest

from turngate.judge.scripted_api import HTML, Hangs, fails
from turngate.judge.scripted_api import Script as JudgeAnswer
from turngate.stopgate.in_process import GRACE_S

from .client import needs_client
from .main_loop_api import Script
from .stage import Played, Stage
from .story import CLAIM, PROMPT, WRITE

pytestmark = [pytest.mark.client, needs_client]

AGENTS: dict[str, Script] = {PROMPT: [WRITE, CLAIM]}
DEADLINE_S = 8
DEADLINE = {"TURNGATE_JUDGE_DEADLINE_S": str(DEADLINE_S)}

RATE_LIMITED = fails(429, "slow down", "rate_limit_error")._replace(headers=(("retry-after", "3600"),))


def assert_ended_as_without_a_gate(scene: Played) -> None:
    """
    The agent was asked nothing more, the person was told of no error, and the hook kept to its deadline.
    """
    assert scene.client.result["result"] == CLAIM
    assert scene.client.result["num_turns"] == 2
    assert len(scene.main_loop.received_from(PROMPT)) == 2
    assert scene.client.hook_attachments == []
    (summary,) = scene.client.stop_summaries
    assert (summary["hasOutput"], summary["hookErrors"]) == (False, [])
    # The client's own clock. Behind the deadline comes the grace, after which the hook ends itself, still before the client would.
    assert summary["hookInfos"][0]["durationMs"] < (DEADLINE_S + GRACE_S) * 1000


@pytest.mark.parametrize(
    ("answer", "outcomes"),
    [
        pytest.param(Hangs(), {"pass_judge_timeout"}, id="hangs"),
        pytest.param(RATE_LIMITED, {"pass_judge_error"}, id="429-for-an-hour"),
        pytest.param(HTML, {"pass_judge_unreadable", "pass_judge_error"}, id="html"),
    ],
)
def test_a_judge_that_gives_no_verdict_lets_the_turn_end(stage: Stage, answer: JudgeAnswer, outcomes: set[str]) -> None:
    """
    Whatever an endpoint does instead of answering, the reply goes out, and the ledger says why nothing was judged.
    """
    scene = stage.play(PROMPT, AGENTS, otherwise=answer, environ=DEADLINE)

    (decision,) = scene.decisions
    assert decision["outcome"] in outcomes
    assert decision["findings"] == []
    (call,) = decision["calls"]
    assert (call["cost_usd"], call["input_tokens"]) == (None, None)
    assert len(scene.judged) == 1
    assert_ended_as_without_a_gate(scene)


def test_a_judge_that_refuses_connections_lets_the_turn_end(stage: Stage) -> None:
    """
    Nobody listens at the endpoint: a pass, with each try in the ledger.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    scene = stage.play(PROMPT, AGENTS, judge_url=f"http://127.0.0.1:{port}", environ=DEADLINE)

    (decision,) = scene.decisions
    assert decision["outcome"] == "pass_judge_error"
    assert {call["outcome"] for call in decision["calls"]} == {"error"}
    assert_ended_as_without_a_gate(scene)


def test_without_a_usable_judge_the_person_is_told_once_a_session(stage: Stage) -> None:
    """
    The free checks go on; the agent gets nothing, and the second stop is silent.
    """
    no_key = {"TURNGATE_JUDGE_API_KEY_ENV": "NO_SUCH_KEY"}
    stage.play(PROMPT, AGENTS, environ=no_key)

    scene = stage.play("And now?", {PROMPT: ["Nothing more."]}, environ=no_key, resume=True)

    assert scene.outcomes == ["pass_no_judge", "pass_no_judge"]
    assert [a["type"] for a in scene.client.hook_attachments] == ["hook_success", "hook_system_message"]
    assert "NO_SUCH_KEY" in scene.client.hook_attachments[1]["content"]
    assert scene.client.result["result"] == "Nothing more."
