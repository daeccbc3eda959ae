"""
What is asked, with the real SDK against a real server, and the verdict that comes of it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from decimal import Decimal
from typing import Any

from turngate.costing.ledger import Ledger
from turngate.judge.asking import Asking, judge_turn
from turngate.judge.connect import Target, open_model
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.quiet_ledger import QuietLedger
from turngate.judge.scripted_api import Says, ScriptedMessagesApi
from turngate.judge.settings import JudgeSettings
from turngate.rubric.library import load
from turngate.rubric.turn import Turn
from turngate.rubric.verdict import Finding

from .answers import CLAIM, CLEAN, AskOnce, ended


def test_a_verdict_is_read_and_its_call_written_down(ask: AskOnce, ledger: Ledger) -> None:
    """
    The findings arrive, with one ledger line that tells who was asked, what it took and what it cost.
    """
    context = CallContext("d1", "s1", "/home/me/project", "Stop", "", "h1")
    with ScriptedMessagesApi([CLAIM]) as api:
        judgement = ask(api, context=context)

    assert judgement.outcome == "answered"
    assert judgement.verdict is not None
    assert judgement.verdict.findings == (Finding("claim", "All tests pass.", "No test was run."),)
    [call] = ledger.calls()
    assert judgement.calls == (call.id,)
    assert call.start.endpoint == api.url.removeprefix("http://")
    assert (call.start.backend, call.start.model, call.start.try_number) == ("anthropic", "claude-sonnet-5-5", 1)
    assert (call.start.rubric, call.start.rubric_hash) == (judgement.rubric, judgement.rubric_hash)
    assert (call.start.decision_id, call.start.session_id, call.start.human_turn) == ("d1", "s1", "h1")
    assert (ended(call).outcome, ended(call).request_id) == ("answered", "req_0001")
    usage = ended(call).usage
    assert usage is not None
    # Sonnet 5.5: 2 USD a million tokens in, 10 out; nothing cached at a first call.
    assert ended(call).cost_usd == (usage.input_tokens * Decimal(2) + usage.output_tokens * Decimal(10)) / 1_000_000


def test_a_ceiling_below_the_rubric_is_no_judge(ask: AskOnce) -> None:
    """
    A setting that leaves no room for the turn is named, and nobody is asked.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        judgement = ask(api, max_input_tokens=100)

    assert (judgement.outcome, api.requests) == ("no_judge", [])
    assert judgement.detail.startswith("judge.max_input_tokens 100")


def test_a_huge_turn_stays_under_the_ceiling(ask: AskOnce) -> None:
    """
    2,500 tokens by the estimate, also for text with more tokens than characters.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(api, turn=Turn(request="x " * 500_000, reply="እንዴት 🎉 " * 200_000))

    # No token of any vocabulary is shorter than a byte; the estimate of one token for each holds the worst case.
    assert len(api.requests[0].user_text.encode()) < 3 * 2500


def test_lone_surrogates_reach_no_wire(ask: AskOnce) -> None:
    """
    Half an emoji in the reply is replaced, not a crash.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        judgement = ask(api, turn=Turn(request="Go \udc00.", reply="Done \ud83d."))

    assert judgement.outcome == "answered"
    assert "Done" in api.requests[0].user_text


def test_one_open_model_judges_many_turns_at_once(ledger: Ledger, turn: Turn) -> None:
    """
    The form for a service: forty turns in flight over one client, each with a line of its own.
    """
    target = Target("anthropic", "claude-sonnet-5-5", "", "k1")
    settings = JudgeSettings(cache="on")

    async def judge_all(target: Target) -> list[Judgement]:
        model = open_model(target, settings, ledger)
        deadline_at = time.monotonic() + 20

        def judge() -> Coroutine[Any, Any, Judgement]:
            asking = Asking(load(), settings, target.backend, target.place, target.model, QuietLedger(ledger))
            return judge_turn(turn, model, asking, deadline_at=deadline_at)

        found = await asyncio.gather(*(judge() for _ in range(40)))
        await model.close()
        return found

    with ScriptedMessagesApi(otherwise=Says(json.dumps(CLAIM), delay_s=0.2)) as api:
        found = asyncio.run(judge_all(target._replace(endpoint=api.url)))

    assert [judgement.outcome for judgement in found] == ["answered"] * 40
    assert len({judgement.calls for judgement in found}) == len(ledger.calls()) == 40
