"""
How often an endpoint is asked again, and until when.
"""

from __future__ import annotations

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.scripted_api import HTML, REFUSAL, Answer, Dribbles, Hangs, ScriptedMessagesApi, fails

from .answers import CLEAN, AskOnce, ended


def test_nobody_listening_is_an_error(ask: AskOnce, ledger: Ledger) -> None:
    """
    A refused connection is tried again and then given up.
    """
    with ScriptedMessagesApi() as api:
        url = api.url

    judgement = ask(url)

    assert judgement.outcome == "error"
    assert [ended(call).outcome for call in ledger.calls()] == ["error"] * 3


@pytest.mark.parametrize("status", [408, 429, 500, 529])
def test_passing_troubles_are_tried_again(ask: AskOnce, ledger: Ledger, status: int) -> None:
    """
    The next try answers, and both stand in the ledger.
    """
    with ScriptedMessagesApi([fails(status), CLEAN]) as api:
        judgement = ask(api)

    assert judgement.outcome == "answered"
    assert [call.start.try_number for call in ledger.calls()] == [1, 2]
    assert [ended(call).outcome for call in ledger.calls()] == ["error", "answered"]


@pytest.mark.parametrize("answer", [fails(401), fails(403), fails(404), fails(413), HTML, REFUSAL])
def test_what_would_fail_again_is_asked_once(ask: AskOnce, answer: Answer) -> None:
    """
    One request, and none from the SDK's own retries.
    """
    with ScriptedMessagesApi(otherwise=answer) as api:
        ask(api)

    assert len(api.requests) == 1


def test_tries_are_few(ask: AskOnce) -> None:
    """
    An endpoint that is down costs three requests, not the whole deadline.
    """
    with ScriptedMessagesApi(otherwise=fails(503)) as api:
        assert ask(api, deadline_s=30).outcome == "error"

    assert len(api.requests) == 3


@pytest.mark.parametrize(
    "value", ["3600", "inf", "1e300", "Wed, 01 Jan 2098 00:00:00 GMT"], ids=["seconds", "inf", "huge", "date"]
)
def test_a_retry_after_beyond_the_deadline_ends_the_tries(ask: AskOnce, ledger: Ledger, value: str) -> None:
    """
    Nobody waits an hour for a judge: one request, then an error.
    """
    limited = fails(429, "slow down", "rate_limit_error")._replace(headers=(("retry-after", value),))
    with ScriptedMessagesApi([limited, CLEAN]) as api:
        judgement = ask(api)

    assert (judgement.outcome, len(api.requests)) == ("error", 1)
    assert "slow down" in judgement.detail
    assert len(ledger.calls()) == 1


@pytest.mark.parametrize("value", ["0", "-5", "nan", "soon", "Wed, 01 Jan 2020 00:00:00 GMT"])
def test_a_retry_after_that_says_nothing_is_no_obstacle(ask: AskOnce, value: str) -> None:
    """
    The usual pause is taken instead.
    """
    limited = fails(429)._replace(headers=(("retry-after", value),))
    with ScriptedMessagesApi([limited, CLEAN]) as api:
        assert ask(api).outcome == "answered"


@pytest.mark.parametrize("answer", [Hangs(), Dribbles()], ids=["silence", "a-byte-at-a-time"])
def test_a_try_cut_off_by_the_deadline_has_unknown_usage(ask: AskOnce, ledger: Ledger, answer: Answer) -> None:
    """
    It may have been billed: tokens and cost are null, never 0.
    """
    with ScriptedMessagesApi([answer]) as api:
        assert ask(api, deadline_s=0.6).outcome == "timeout"

    [call] = ledger.calls()
    assert (ended(call).outcome, ended(call).usage, ended(call).cost_usd) == ("timeout", None, None)


def test_a_deadline_that_has_passed_sends_nothing(ask: AskOnce, ledger: Ledger) -> None:
    """
    Too late is a timeout without a call.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        judgement = ask(api, deadline_s=-1.0)

    assert (judgement.outcome, judgement.calls) == ("timeout", ())
    assert (api.requests, ledger.calls()) == ([], [])


def test_a_later_try_can_be_cut_off_too(ask: AskOnce, ledger: Ledger) -> None:
    """
    One deadline holds over all tries together.
    """
    with ScriptedMessagesApi([fails(500), Hangs()]) as api:
        assert ask(api, deadline_s=1.5).outcome == "timeout"

    assert [ended(call).outcome for call in ledger.calls()] == ["error", "timeout"]
