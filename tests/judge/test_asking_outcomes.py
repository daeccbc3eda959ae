"""
What each answer of an endpoint comes to.
"""

from __future__ import annotations

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.scripted_api import (
    EMPTY,
    HTML,
    REFUSAL,
    Answer,
    Dribbles,
    Hangs,
    Resets,
    Says,
    ScriptedMessagesApi,
    Sends,
    fails,
    redirects,
)

from .answers import CLEAN, USAGE, AskOnce, ended, sends


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(HTML, "error", id="html-200"),
        pytest.param(EMPTY, "error", id="empty-200"),
        pytest.param(sends(None), "error", id="null"),
        pytest.param(sends([1, 2]), "error", id="list"),
        pytest.param(sends({"type": "message"}), "error", id="no-content"),
        pytest.param(sends({"content": "text"}), "error", id="content-no-list"),
        pytest.param(
            sends({"content": [None, 1, "x", {"type": "text", "text": 5}]}), "unreadable", id="damaged-blocks"
        ),
        pytest.param(
            sends({"content": [], "usage": [], "model": 1, "stop_reason": {}}), "unreadable", id="wrong-types"
        ),
        pytest.param(Sends(200, b"[" * 100_000), "error", id="deep-nesting"),
        pytest.param(Sends(200, b'{"content": ' + b"9" * 10_000 + b"}"), "error", id="huge-number"),
        pytest.param(Sends(200, b"\xff\xfe\x00"), "error", id="no-utf-8"),
        pytest.param(Says("I would rather not answer in JSON."), "unreadable", id="prose"),
        pytest.param(Says('{"findings": [{"fault": "cl', stop_reason="max_tokens"), "unreadable", id="cut-off"),
        pytest.param(REFUSAL, "refused", id="refusal"),
        pytest.param(Says('{"findings": []}', stop_reason="refusal"), "refused", id="refusal-with-text"),
        pytest.param(Says('{"findings": []}', thinking="Hm."), "answered", id="thinking-first"),
        pytest.param(Says('{"findings": []}', stop_reason="max_tokens"), "answered", id="whole-at-the-limit"),
        pytest.param(fails(401, "invalid x-api-key", "authentication_error"), "error", id="401"),
        pytest.param(fails(402, "no credit"), "error", id="402"),
        pytest.param(fails(403), "error", id="403"),
        pytest.param(fails(404, "model: nothing like it"), "error", id="404"),
        pytest.param(fails(413), "error", id="413"),
        pytest.param(Sends(500, b"<html>", content_type="text/html"), "error", id="500-html"),
        pytest.param(Sends(418, b"[" * 100_000), "error", id="error-with-deep-nesting"),
        pytest.param(Sends(301, b"", (("location", "/elsewhere"),)), "error", id="301"),
        pytest.param(Sends(304), "error", id="304"),
        pytest.param(Sends(204), "error", id="204"),
        pytest.param(Sends(200, b"x" * 10_000_000), "error", id="10-mb"),
        pytest.param(Sends(500, b"x" * 10_000_000), "error", id="10-mb-error"),
        pytest.param(Says(" " * 10_000_000 + '{"findings": []}'), "error", id="10-mb-message"),
        pytest.param(Hangs(), "timeout", id="hangs"),
        pytest.param(Dribbles(), "timeout", id="dribbles"),
        pytest.param(Resets(), "error", id="reset"),
        pytest.param(Resets(in_body=True), "error", id="reset-in-the-body"),
    ],
)
def test_whatever_comes_back_is_an_outcome(ask: AskOnce, ledger: Ledger, answer: Answer, outcome: str) -> None:
    """
    No answer makes an exception, each has one outcome with a line of detail, and every try is closed in the ledger.
    """
    with ScriptedMessagesApi(otherwise=answer) as api:
        judgement = ask(api, deadline_s=1.0)

    assert judgement.outcome == outcome
    assert (judgement.verdict is None) == (outcome != "answered")
    assert bool(judgement.detail) == (outcome != "answered")
    assert "\n" not in judgement.detail
    assert len(judgement.detail) <= 200
    calls = ledger.calls()
    assert tuple(call.id for call in calls) == judgement.calls
    assert len(calls) == len(api.requests)
    rejected = isinstance(answer, Sends) and 400 <= answer.status < 500
    assert {ended(call).outcome for call in calls} == {"rejected" if rejected else outcome}


def test_a_refusal_without_content_is_a_refusal(ask: AskOnce) -> None:
    """
    The stop reason says it, not the text.
    """
    with ScriptedMessagesApi([sends({"content": None, "stop_reason": "refusal", "usage": USAGE})]) as api:
        assert ask(api).outcome == "refused"


def test_redirects_are_not_followed(ask: AskOnce, ledger: Ledger) -> None:
    """
    The text and the key go to the configured endpoint and to nobody else.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as elsewhere:
        for status in (301, 302, 303, 307, 308):
            with ScriptedMessagesApi([redirects(f"{elsewhere.url}/v1/messages", status)]) as api:
                judgement = ask(api)

            assert judgement.outcome == "error"
            assert str(status) in judgement.detail
            assert len(api.requests) == 1
        assert elsewhere.requests == []
