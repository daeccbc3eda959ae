"""
What a ledger that cannot be written changes: nothing of the answer.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime

from turngate.costing.ledger import Ledger
from turngate.costing.records import DecisionLine, RecentCall
from turngate.judge.scripted_api import Received, ScriptedMessagesApi, fails

from .answers import CLAIM, CLEAN, AskOnce, ended


class TestLedgerTrouble:
    """
    A ledger that cannot be written never changes the answer.
    """

    def test_no_ledger_at_all(self, ask: AskOnce) -> None:
        """
        The answer comes without lines.
        """
        with ScriptedMessagesApi([fails(500), CLEAN]) as api:
            judgement = ask(api, ledger=None)

        assert (judgement.outcome, judgement.calls) == ("answered", ())

    def test_a_closed_ledger(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The answer comes without lines.
        """
        ledger.database.close()
        with ScriptedMessagesApi([CLAIM]) as api:
            judgement = ask(api)

        assert (judgement.outcome, judgement.calls) == ("answered", ())

    def test_a_locked_ledger_gets_its_lines_with_the_decision(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        Nothing of two tries can be written; their whole lines come with the next line that can.
        """
        with closing(sqlite3.connect(ledger.database.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with ScriptedMessagesApi([fails(500), CLEAN]) as api:
                # Two tries with two lines each: four waits of a second would not fit.
                judgement = ask(api, deadline_s=2.5)
            assert ledger.calls() == []
            other.execute("ROLLBACK")

        assert (judgement.outcome, judgement.calls) == ("answered", ())
        ledger.record_decision(DecisionLine(datetime.now(UTC), "Stop", "pass_clean", id="d1", human_turn="h1"))
        assert [ended(call).outcome for call in ledger.calls()] == ["error", "answered"]
        assert [call.start.try_number for call in ledger.calls(decision_id="d1")] == [1, 2]
        assert {call.start.human_turn for call in ledger.calls()} == {"h1"}

    def test_a_try_that_could_not_be_opened_is_written_when_it_ends(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The lock is gone by the time the answer arrives: one whole line, with usage and cost.
        """
        other = sqlite3.connect(ledger.database.path, isolation_level=None, check_same_thread=False)

        def unlock(_received: Received) -> str:
            other.execute("ROLLBACK")
            return json.dumps(CLEAN)

        with closing(other):
            other.execute("BEGIN IMMEDIATE")
            with ScriptedMessagesApi([unlock]) as api:
                judgement = ask(api)

        [call] = ledger.calls()
        assert judgement.calls == (call.id,)
        assert (call.start.decision_id, ended(call).outcome) == ("d1", "answered")
        assert ended(call).usage is not None
        assert ended(call).cost_usd is not None

    def test_a_ledger_is_left_alone_after_its_first_failure(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        Of all that a judgement reads and writes, only the first is tried on a ledger that fails.
        """
        tried: list[str] = []

        class Watched(Ledger):
            def recent_outcomes(self, endpoint: str, limit: int) -> list[RecentCall]:
                tried.append("recent_outcomes")
                return super().recent_outcomes(endpoint, limit)

            def refused_fields(self, endpoint: str, model: str, *, now: datetime) -> tuple[str, ...]:
                tried.append("refused_fields")
                return super().refused_fields(endpoint, model, now=now)

            def last_call_at(self, rubric_hash: str, model: str, endpoint: str) -> datetime | None:
                tried.append("last_call_at")
                return super().last_call_at(rubric_hash, model, endpoint)

        ledger.database.close()
        with ScriptedMessagesApi([CLEAN]) as api:
            assert ask(api, ledger=Watched(ledger.database)).outcome == "answered"

        assert tried == ["recent_outcomes"]
