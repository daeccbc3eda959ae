"""
When the rubric is written to the prompt cache.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.scripted_api import ScriptedMessagesApi

from .answers import CLEAN, AskOnce, ended


class TestCache:
    """
    Writing the rubric to the prompt cache.
    """

    @pytest.mark.parametrize(
        ("setting", "cached"), [("auto", [False, True, True]), ("on", [True] * 3), ("off", [False] * 3)]
    )
    def test_the_rubric_is_cached_by_setting(self, ask: AskOnce, setting: str, cached: list[bool]) -> None:
        """
        `auto` caches from the second call within five minutes on.
        """
        with ScriptedMessagesApi([CLEAN] * 3) as api:
            for _ in range(3):
                ask(api, cache=setting)

        assert [isinstance(received.body["system"], list) for received in api.requests] == cached
        assert len({received.system_text for received in api.requests}) == 1

    @pytest.mark.parametrize(
        ("ago", "cached"), [(timedelta(minutes=4, seconds=50), True), (timedelta(minutes=5, seconds=1), False)]
    )
    def test_five_minutes_count_from_the_last_call(
        self, ask: AskOnce, ledger: Ledger, ago: timedelta, cached: bool
    ) -> None:
        """
        An older call's cache entry is gone, so that writing would not pay.
        """
        with ScriptedMessagesApi([CLEAN] * 2) as api:
            ask(api)
            [first] = ledger.calls()
            with ledger.database.write() as connection:
                connection.execute("DELETE FROM calls")
            ledger.open_call(first.start._replace(at=first.start.at - ago))
            ask(api)

        assert isinstance(api.requests[1].body["system"], list) == cached

    def test_a_read_from_the_cache_is_priced_as_one(self, ask: AskOnce, ledger: Ledger) -> None:
        """
        The third call in a row reads what the second wrote, and costs the least.
        """
        with ScriptedMessagesApi([CLEAN] * 3) as api:
            for _ in range(3):
                ask(api)

        usages = [ended(call).usage for call in ledger.calls()]
        assert [bool(usage and usage.cache_write_5m_tokens) for usage in usages] == [False, True, False]
        assert [bool(usage and usage.cache_read_tokens) for usage in usages] == [False, False, True]
        costs = [ended(call).cost_usd or Decimal(0) for call in ledger.calls()]
        assert costs[2] < costs[0] < costs[1]
