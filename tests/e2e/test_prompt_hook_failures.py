"""
The three failures of the prompt hook that this gate replaces, with the real client.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from .client import needs_client
from .main_loop_api import says, uses
from .stage import CLEAN, Played, Stage, by_a_service, hold_in
from .story import CLAIM, FALSE_CLAIM, NO_TEST_RAN, PROMPT, WITHDRAWN, WRITE

pytestmark = [pytest.mark.client, needs_client]


def test_the_same_false_claim_is_judged_again_held_twice_then_let_go(stage: Stage) -> None:
    """
    A hold is no pardon: the claim is judged anew at the next stop. After two holds the turn ends with its reply.
    """
    scene = stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, CLAIM, CLAIM]}, otherwise=FALSE_CLAIM)

    assert scene.outcomes == ["block_verdict", "block_verdict", "pass_cap_spent"]
    assert [d["spent"] for d in scene.decisions] == [1, 2, 2]
    assert [len(d["calls"]) for d in scene.decisions] == [1, 1, 0]
    assert len(scene.judged) == 2
    assert [hold_in(r) for r in scene.main_loop.received_from(PROMPT)[2:]] == [NO_TEST_RAN] * 2
    assert scene.client.result["result"] == CLAIM
    assert scene.client.result["subtype"] == "success"


def test_the_client_receives_the_reason_and_nothing_else(stage: Stage) -> None:
    """
    Between the requests before and after the hold lie the reply and the reason; the judge's prompt is nowhere.
    """
    scene = stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN])

    before, after = scene.main_loop.received_from(PROMPT)[1:]
    assert after.messages[: len(before.messages)] == before.messages
    assert after.messages[len(before.messages)] == ("assistant", CLAIM)
    assert hold_in(after) == NO_TEST_RAN
    assert (after.body["system"], after.body["tools"]) == (before.body["system"], before.body["tools"])
    rubric = scene.judged[0].system_text
    assert len(rubric) > 500
    assert rubric[:200] not in json.dumps(after.body, ensure_ascii=False)


# What is asked is the same both ways, and this takes long.
@by_a_service
def test_input_tokens_of_a_judge_call_stay_under_2500(
    stage: Stage, record_property: Callable[[str, object], None]
) -> None:
    """
    The worst case is a turn that is huge in each of its parts; the small story's figure is printed beside it.
    """
    flood = "for i in $(seq 400); do echo line $i of a long output; done"
    calls = [uses("Bash", command=f"{flood} # {'x' * 2000} {i}") for i in range(80)]
    huge_prompt = f"{PROMPT} {'Mind this, too. ' * 5000}"
    huge_reply = f"{'All of it is written down here. ' * 3000}{CLAIM}"

    small = stage.play(PROMPT, {PROMPT: [WRITE, CLAIM]}, [CLEAN])
    huge = stage.beside("huge").play(
        huge_prompt, {PROMPT: [[says("I start."), *calls], huge_reply, huge_reply]}, [FALSE_CLAIM, CLEAN]
    )

    assert huge.outcomes == ["block_verdict", "pass_clean"]
    assert 0 < most_input_tokens(small) <= most_input_tokens(huge) <= 2500
    # The figures are the endpoint's. Plain English has about four bytes a token; more than three would be a surprise.
    assert most_bytes(huge) / 3 <= 2500
    for scene, what in (
        (small, "one write and one false claim"),
        (huge, "80 tool calls, a huge prompt and a huge reply"),
    ):
        record_property("figure", f"{most_input_tokens(scene)} input tokens for {what}")


def most_input_tokens(scene: Played) -> int:
    """
    The input of the largest judge call, as the ledger has it: fresh, written to the cache and read from it.
    """
    kinds = ("input_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens", "cache_read_tokens")
    return max(sum(call[kind] for kind in kinds) for d in scene.decisions for call in d["calls"])


def most_bytes(scene: Played) -> int:
    """
    The text of the largest judge call.
    """
    return max(len(f"{r.system_text}{r.user_text}".encode()) for r in scene.judged)
