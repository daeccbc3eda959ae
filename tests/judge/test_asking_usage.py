"""
Which tokens a try is written down with.
"""

from __future__ import annotations

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.usage import Usage
from turngate.judge.scripted_api import Answer, Says, ScriptedMessagesApi, Sends

from .answers import CLEAN, USAGE, AskOnce, ended, sends


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(Says('{"findings": [', stop_reason="max_tokens"), "unreadable", id="cut-off"),
        pytest.param(Says("", stop_reason="refusal"), "refused", id="refused"),
        pytest.param(Says("No JSON."), "unreadable", id="unreadable"),
        pytest.param(sends({"usage": USAGE}), "error", id="no-content"),
        pytest.param(sends({"error": {"message": "late", "usage": USAGE}}, 403), "error", id="in-an-error"),
        pytest.param(sends({"error": {"message": "late"}, "usage": USAGE}, 403), "error", id="beside-an-error"),
    ],
)
def test_usage_is_kept_whatever_the_answer_is_worth(ask: AskOnce, ledger: Ledger, answer: Answer, outcome: str) -> None:
    """
    Tokens that were billed are in the ledger with their cost, also without a verdict.
    """
    with ScriptedMessagesApi([answer]) as api:
        assert ask(api).outcome == outcome

    [call] = ledger.calls()
    end = ended(call)
    assert end.usage is not None
    assert end.usage.input_tokens > 100
    assert end.cost_usd is not None
    assert end.cost_usd > 0
    assert end.raw_usage is not None
    assert end.raw_usage["input_tokens"] == end.usage.input_tokens


@pytest.mark.parametrize(
    "usage", [None, {}, {"input_tokens": -1, "output_tokens": 1}, {"input_tokens": "7"}, [], "x", {"a": "b" * 50_000}]
)
def test_usage_that_cannot_be_believed_is_unknown(ask: AskOnce, ledger: Ledger, usage: object) -> None:
    """
    The verdict counts all the same; tokens and cost are null.
    """
    body = {"content": [{"type": "text", "text": '{"findings": []}'}], "stop_reason": "end_turn", "usage": usage}
    with ScriptedMessagesApi([sends(body)]) as api:
        assert ask(api).outcome == "answered"

    [call] = ledger.calls()
    assert (ended(call).usage, ended(call).cost_usd) == (None, None)


@pytest.mark.parametrize("charset", ["hex", "zlib", "bz2", "rot13", "idna", "undefined", "punycode", "utf-16"])
def test_a_declared_charset_is_not_followed(ask: AskOnce, ledger: Ledger, charset: str) -> None:
    """
    JSON is UTF-8. An error is tried again and keeps its usage, whatever codec its header names.
    """
    error = sends({"error": {"message": "overloaded"}, "usage": USAGE}, 529)
    with ScriptedMessagesApi(
        [error._replace(content_type=f"application/json; charset={charset}")], otherwise=CLEAN
    ) as api:
        judgement = ask(api)

    assert judgement.outcome == "answered"
    first, _second = ledger.calls()
    assert (ended(first).outcome, ended(first).detail) == ("error", "status 529: overloaded")
    assert ended(first).usage == Usage(700, 50)


@pytest.mark.parametrize("depth", [500, 900, 950, 965, 975, 985])
def test_a_usage_of_any_depth_has_its_counts(ask: AskOnce, ledger: Ledger, depth: int) -> None:
    """
    What stands beside the counts cannot take them away.
    """
    deep = f'{{"input_tokens": 700, "output_tokens": 50, "x": {"[" * depth}{"]" * depth}}}'
    body = f'{{"content": [{{"type": "text", "text": "{{\\"findings\\": []}}"}}], "usage": {deep}}}'
    with ScriptedMessagesApi([Sends(200, body.encode())]) as api:
        judgement = ask(api)

    [call] = ledger.calls()
    assert call.end is not None
    if depth < 900:
        assert judgement.outcome == "answered"
    if judgement.outcome == "answered":  # beyond some depth, which differs by version, Python reads no JSON at all
        assert call.end.usage == Usage(700, 50)
