"""
Other endpoints that speak the Messages API: what arrives there, byte for byte of what matters.

Each server here takes only requests of the shape that its documentation names, and turns down all others.
"""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.connect import Judge, NoJudge, Target, choose, connect
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.scripted_api import Received, ScriptedMessagesApi, fails
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn

from ..answers import CLEAN, ended

VIRTUAL_KEY = "sk-litellm-virtual-0123"


def ask(settings: JudgeSettings, environ: dict[str, str], ledger: Ledger, turn: Turn) -> Judgement:
    judge = connect(settings, environ, ledger, CallContext(decision_id="d1"), deadline_at=time.monotonic() + 10)
    assert isinstance(judge, Judge), judge
    return judge(turn)


def test_litellm_gets_a_bearer_key_and_its_own_name_of_a_model(ledger: Ledger, turn: Turn) -> None:
    """
    `POST <base>/v1/messages` with `authorization: Bearer`, as LiteLLM's unified endpoint wants it, below whatever path it lies.
    """
    with ScriptedMessagesApi([CLEAN], key=VIRTUAL_KEY) as api:
        settings = JudgeSettings(base_url=f"{api.url}/v1/", api_key_env="LITELLM_KEY", model="team/judge")
        judged = ask(settings, {"LITELLM_KEY": VIRTUAL_KEY, "ANTHROPIC_API_KEY": "sk-ant-mine"}, ledger, turn)

    (request,) = api.requests
    assert judged.outcome == "answered"
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert request.headers["authorization"] == f"Bearer {VIRTUAL_KEY}"
    assert request.headers["anthropic-version"] >= "2023-06-01"
    assert "x-api-key" not in request.headers
    assert "sk-ant-mine" not in json.dumps([dict(request.headers), request.body])
    assert request.body["model"] == "team/judge"
    assert "stream" not in request.body


def test_a_model_that_nobody_prices_costs_an_unknown_amount(ledger: Ledger, turn: Turn) -> None:
    """
    Behind a gateway a model may have any name: its tokens are known, its cost is null until `prices.toml` says it.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(JudgeSettings(base_url=api.url, model="team/judge"), {"ANTHROPIC_API_KEY": "k"}, ledger, turn)

    end = ended(ledger.calls()[0])
    assert end.usage is not None
    assert (end.cost_usd, end.price_source) == (None, "unknown")


def as_a_strict_local_server(received: Received) -> Any:
    """
    Answer as a server that knows the fields of a plain message alone: https://docs.ollama.com/api/anthropic-compatibility.
    """
    unknown = {"output_config", "thinking"} & set(received.body)
    if unknown:
        return fails(400, f"invalid request: unknown field {min(unknown)}", "invalid_request_error")
    return CLEAN


def test_ollama_is_asked_without_a_key(ledger: Ledger, turn: Turn) -> None:
    """
    A server on this machine needs none, and no header pretends otherwise; fields that it does not take are left out.
    """
    answers = [lambda received: _said(as_a_strict_local_server(received))] * 4
    with ScriptedMessagesApi(answers) as api:
        settings = JudgeSettings(base_url=api.url, model="qwen3:8b")
        judged = [ask(settings, {}, ledger, turn).outcome for _ in range(2)]

    assert judged == ["answered", "answered"]
    for request in api.requests:
        assert request.path == "/v1/messages"
        assert not {"authorization", "x-api-key"} & set(request.headers)
        assert request.body["model"] == "qwen3:8b"
        assert request.body["messages"][0]["role"] == "user"
    # What was turned down is not sent a second time.
    assert not {"output_config", "thinking"} & set(api.requests[-1].body)


def _said(answer: Any) -> Any:
    return json.dumps(answer) if isinstance(answer, dict) else answer


@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        pytest.param({"base_url": "https://ollama.example"}, {}, id="another-machine"),
        pytest.param({"base_url": "http://127.0.0.1:11434", "api_key_env": "K"}, {}, id="a-variable-is-named"),
        pytest.param({}, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:11434"}, id="the-clients-own-address"),
    ],
)
def test_a_key_is_needed_elsewhere(settings: dict[str, Any], environ: dict[str, str]) -> None:
    """
    Only an address of this machine that was named for the judge goes without.
    """
    assert isinstance(choose(JudgeSettings(**settings), environ), NoJudge)


def test_a_server_of_this_machine_gets_the_key_that_there_is() -> None:
    """
    A gateway on loopback may well want one.
    """
    found = choose(JudgeSettings(base_url="http://127.0.0.1:4000"), {"ANTHROPIC_API_KEY": "k"})

    assert isinstance(found, Target)
    assert (found.key, found.key_variable) == ("k", "ANTHROPIC_API_KEY")
