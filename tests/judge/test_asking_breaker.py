"""
When an endpoint that fails is asked no more.
"""

from __future__ import annotations

import time

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.connect import NoJudge, connect
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.scripted_api import HTML, ScriptedMessagesApi, fails
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn

from .answers import CLEAN, AskOnce, ended


class TestBreaker:
    """
    An endpoint that fails again and again.
    """

    def test_after_five_failures_nobody_is_asked(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The breaker opens by what the ledger says, so that it holds for every process.
        """
        with ScriptedMessagesApi(otherwise=HTML) as api:
            outcomes = [ask(api).outcome for _ in range(6)]

        assert outcomes == ["error"] * 5 + ["breaker_open"]
        assert len(api.requests) == len(ledger.calls()) == 5

    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
    def test_requests_that_are_rejected_close_no_endpoint(self, ask: AskOnce, ledger: Ledger, status: int) -> None:
        """
        An endpoint that turns away one session's key, model or fields is there for another session's.
        """
        with ScriptedMessagesApi([fails(status, "no credit balance")] * 6, otherwise=CLEAN) as api:
            outcomes = [ask(api).outcome for _ in range(7)]

        assert outcomes == ["error"] * 6 + ["answered"]
        assert [ended(call).outcome for call in ledger.calls()] == ["rejected"] * 6 + ["answered"]

    def test_a_key_that_is_refused_leaves_the_judge_open_for_a_good_one(self, ledger: Ledger, turn: Turn) -> None:
        """
        Two sessions with two keys share an endpoint; the one with the bad key takes nothing from the other.
        """

        def ask_with(key: str) -> Judgement:
            settings = JudgeSettings(backend="anthropic", base_url=api.url)
            environ = {"ANTHROPIC_API_KEY": key}
            judge = connect(settings, environ, ledger, CallContext(), deadline_at=time.monotonic() + 5)
            assert not isinstance(judge, NoJudge), judge.reason
            return judge(turn)

        with ScriptedMessagesApi(otherwise=CLEAN, key="good") as api:
            outcomes = [ask_with(key).outcome for key in ["bad"] * 6 + ["good"]]

        assert outcomes == ["error"] * 6 + ["answered"]

    def test_a_field_that_is_refused_is_no_failure_of_the_endpoint(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The first try names the field and is rejected; the second, without it, answers.
        """
        with ScriptedMessagesApi([CLEAN], refused_fields=["output_config.effort"]) as api:
            assert ask(api).outcome == "answered"

        assert [ended(call).outcome for call in ledger.calls()] == ["rejected", "answered"]

    def test_an_answer_in_between_closes_it(self, ask: AskOnce) -> None:
        """
        Five failures count only in a row.
        """
        bad = HTML
        with ScriptedMessagesApi([bad, bad, bad, bad, CLEAN, bad, bad, bad, bad, CLEAN]) as api:
            outcomes = [ask(api).outcome for _ in range(10)]

        assert "breaker_open" not in outcomes

    def test_another_endpoint_is_asked_all_the_same(self, ask: AskOnce) -> None:
        """
        The breaker belongs to an endpoint.
        """
        with ScriptedMessagesApi(otherwise=HTML) as broken, ScriptedMessagesApi([CLEAN]) as working:
            for _ in range(6):
                ask(broken)

            assert ask(working).outcome == "answered"
