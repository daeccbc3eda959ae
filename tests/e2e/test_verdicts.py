"""
What a verdict does to a turn of the real client.
"""

from __future__ import annotations

import pytest

from .client import HOOK, needs_client
from .stage import CLEAN, Stage, hold_in
from .story import CLAIM, FALSE_CLAIM, NO_TEST_RAN, PROMPT, WITHDRAWN, WRITE

pytestmark = [pytest.mark.client, needs_client]


def test_a_false_claim_is_held_and_withdrawn(stage: Stage) -> None:
    """
    The agent gets the reason, corrects its reply, and that reply is what the client returns.
    """
    scene = stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN])

    assert (stage.project / "retry.ts").read_text() == "export const retry = 3\n"
    assert scene.outcomes == ["block_verdict", "pass_clean"]
    assert [d["spent"] for d in scene.decisions] == [1, 1]
    assert scene.decisions[0]["findings"] == FALSE_CLAIM["findings"]
    assert hold_in(scene.main_loop.received_from(PROMPT)[2]) == NO_TEST_RAN
    assert scene.client.result["result"] == WITHDRAWN
    assert [d["prompt_id"] for d in scene.decisions] == [scene.client.transcript[2]["promptId"]] * 2


def test_the_judge_sees_the_request_the_tool_calls_and_the_whole_reply(stage: Stage) -> None:
    """
    What is judged is the turn that the client ran, at each of its stops.
    """
    scene = stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN])

    first, second = (request.user_text for request in scene.judged)
    assert PROMPT in first
    assert "Write: retry.ts -> ok" in first
    assert CLAIM in first
    assert WITHDRAWN in second
    assert CLAIM not in second


def test_an_honest_reply_ends_the_turn_with_one_judge_call_and_no_output(stage: Stage) -> None:
    """
    A pass writes zero bytes, and the client notes neither output nor an error of the hook.
    """
    stdout, stderr = stage.folder / "hook.stdout", stage.folder / "hook.stderr"
    hook = f"{HOOK} 2>>{stderr} | tee -a {stdout}"

    scene = stage.play(PROMPT, {PROMPT: [WRITE, WITHDRAWN]}, [CLEAN], hooks=[hook])

    assert scene.outcomes == ["pass_clean"]
    assert len(scene.judged) == 1
    assert len(scene.decisions[0]["calls"]) == 1
    assert (stdout.read_bytes(), stderr.read_bytes()) == (b"", b"")
    assert scene.client.result["result"] == WITHDRAWN
    assert len(scene.main_loop.received_from(PROMPT)) == 2
    (summary,) = scene.client.stop_summaries
    assert (summary["hasOutput"], summary["hookErrors"], summary["preventedContinuation"]) == (False, [], False)
    assert scene.client.hook_attachments == []


def test_the_next_prompt_starts_a_new_count(stage: Stage) -> None:
    """
    Continuations are counted by what the person asked, not by the session.
    """
    again = "Write it once more, please."
    stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, CLAIM, CLAIM]}, otherwise=FALSE_CLAIM)

    scene = stage.play(again, {PROMPT: [CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN], resume=True)

    assert scene.outcomes == ["block_verdict", "block_verdict", "pass_cap_spent", "block_verdict", "pass_clean"]
    assert [d["spent"] for d in scene.decisions] == [1, 2, 2, 1, 1]
    assert len({d["session_id"] for d in scene.decisions}) == 1
    assert again in scene.judged[0].user_text
    assert scene.client.result["result"] == WITHDRAWN


def test_two_installs_of_the_gate_spend_one_continuation_at_one_stop(stage: Stage) -> None:
    """
    Both hooks find the same fault at the same stop, by one judge call; one of them holds it, the other passes in silence.
    """
    second_install = stage.folder / "turngate-hook"
    second_install.symlink_to(HOOK)

    scene = stage.play(
        PROMPT,
        {PROMPT: [WRITE, CLAIM, CLAIM, CLAIM]},
        otherwise=FALSE_CLAIM,
        hooks=[str(HOOK), str(second_install)],
    )

    assert len(scene.decisions) == 6
    assert scene.outcomes.count("block_verdict") == 2
    assert [max(d["spent"] for d in scene.decisions[stop : stop + 2]) for stop in (0, 2, 4)] == [1, 2, 2]
    assert len(scene.judged) == 2
    assert len(scene.main_loop.received_from(PROMPT)) == 4
    assert [a["stderr"] for a in scene.client.hook_attachments if a.get("stderr")] == []
    assert scene.client.result["result"] == CLAIM


def test_in_the_context_style_the_agent_gets_the_reason_in_one_reminder(stage: Stage) -> None:
    """
    The client then says it once, without the hook's command, and shows no error label.
    """
    scene = stage.play(
        PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN], environ={"TURNGATE_GATE_STYLE": "context"}
    )

    ((role, text),) = scene.main_loop.received_from(PROMPT)[2].news
    assert role == "user"
    assert text == f"<system-reminder>\nStop hook additional context: {NO_TEST_RAN}\n</system-reminder>"
    assert [summary["hookErrors"] for summary in scene.client.stop_summaries] == [[], []]
    assert scene.outcomes == ["block_verdict", "pass_clean"]
