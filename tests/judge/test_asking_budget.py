"""
When a spent budget holds calls back.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart
from turngate.judge.scripted_api import ScriptedMessagesApi

from .answers import CLEAN, AskOnce


class TestBudget:
    """
    Money stops calls, never turns.
    """

    @staticmethod
    def spend(ledger: Ledger, at: datetime, cost_usd: str | None, session_id: str = "s1") -> None:
        start = CallStart(at, "anthropic", "m", session_id=session_id)
        cost = None if cost_usd is None else Decimal(cost_usd)
        ledger.settle_call(ledger.open_call(start), start, CallEnd("answered", cost_usd=cost))

    @pytest.mark.parametrize("name", ["usd_per_day", "usd_per_session"])
    @pytest.mark.parametrize(
        ("cost_usd", "outcome"),
        [("0.9999999", "answered"), ("1", "budget"), ("3", "budget"), (None, "answered")],
        ids=["left", "reached", "passed", "unknown-cost"],
    )
    def test_a_spent_budget_holds_calls_back(
        self, ask: AskOnce, ledger: Ledger, name: str, cost_usd: str | None, outcome: str
    ) -> None:
        """
        The limit itself is spent; a cost that nobody knows does not count.
        """
        self.spend(ledger, datetime.now(UTC), cost_usd)
        with ScriptedMessagesApi([CLEAN]) as api:
            judgement = ask(api, **{name: "1"})

        assert judgement.outcome == outcome
        assert len(api.requests) == (outcome == "answered")
        assert (name in judgement.detail) == (outcome == "budget")

    def test_yesterday_and_other_sessions_do_not_count(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        A day is a UTC day, and a session's budget is its own.
        """
        self.spend(ledger, datetime.now(UTC) - timedelta(days=1), "5", session_id="s2")
        with ScriptedMessagesApi([CLEAN]) as api:
            assert ask(api, usd_per_day="1", usd_per_session="1").outcome == "answered"

    def test_there_is_no_budget_by_default(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        Nobody is held back who did not ask for it.
        """
        self.spend(ledger, datetime.now(UTC), "1000")
        with ScriptedMessagesApi([CLEAN]) as api:
            assert ask(api).outcome == "answered"
