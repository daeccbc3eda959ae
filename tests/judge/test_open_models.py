"""
Models that stay open between judgements, in the loop of a service, against a real endpoint.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge import open_models
from turngate.judge.connect import NoJudge, connect
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.open_models import OpenModels
from turngate.judge.scripted_api import Hangs, Received, ScriptedMessagesApi
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn

from .answers import CLAIM, CLEAN

AskAs = Callable[..., Judgement]


@pytest.fixture(name="models")
def models_fixture() -> Iterator[OpenModels]:
    """
    In a loop that runs in a thread, as the service has it.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    models = OpenModels(loop)
    yield models
    asyncio.run_coroutine_threadsafe(models.close(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture(name="ask_as")
def ask_as_fixture(models: OpenModels, ledger: Ledger, turn: Turn) -> AskAs:
    """
    Ask as a hook whose environment has this key.
    """

    def ask(url: str, key: str = "key-1", *, deadline_s: float = 10.0, model: str = "claude-sonnet-5-5") -> Judgement:
        judge = connect(
            JudgeSettings(backend="anthropic", base_url=url, model=model),
            {"ANTHROPIC_API_KEY": key},
            ledger,
            CallContext(decision_id="d1"),
            deadline_at=time.monotonic() + deadline_s,
        )
        assert not isinstance(judge, NoJudge)
        return models.ask(judge, turn)

    return ask


class Connections(ScriptedMessagesApi):
    """
    An endpoint that counts who connects.
    """

    accepted = 0

    def process_request(self, request: object, client_address: object) -> None:
        self.accepted += 1
        super().process_request(request, client_address)


def test_a_connection_serves_more_than_one_stop(ask_as: AskAs) -> None:
    """
    The second question finds the model open and its connection alive.
    """
    with Connections(otherwise=CLAIM) as api:
        outcomes = [ask_as(api.url).outcome for _ in range(3)]

    assert outcomes == ["answered"] * 3
    assert api.accepted == 1


def test_two_keys_share_a_service_and_no_key(ask_as: AskAs) -> None:
    """
    Each question goes out with the key of the hook that asked, also when many ask at once.
    """
    keys = [f"key-{number}" for number in range(8)] * 4

    def by_key(received: Received) -> str:
        key = received.headers["authorization"].removeprefix("Bearer ")
        return json.dumps({"findings": [{"fault": "claim", "quote": "All tests pass.", "reason": f"for {key[::-1]}"}]})

    with ScriptedMessagesApi(otherwise=by_key) as api, ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda key: ask_as(api.url, key), keys))

    reasons = [answer.verdict.findings[0].reason for answer in answers if answer.verdict]
    assert reasons == [f"for {key[::-1]}" for key in keys]


def test_a_model_that_could_not_be_opened_is_tried_again(ask_as: AskAs, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A bad proxy or certificate fails one question; put right, the next is asked.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        remote = api.url.replace("127.0.0.1", "judge.invalid")
        monkeypatch.setenv("HTTP_PROXY", "no proxy at all://")
        failed = ask_as(remote)
        monkeypatch.setenv("HTTP_PROXY", api.url)
        answered = ask_as(remote)

    assert failed.outcome == "error"
    assert "no client could be made" in failed.detail
    # The endpoint is no proxy, and says so with a status; what counts is that it was asked.
    assert "no client could be made" not in answered.detail
    assert len(api.requests) > 0


def test_a_silent_endpoint_costs_the_deadline_and_its_line(ask_as: AskAs, ledger: Ledger) -> None:
    """
    The thread that waits gets a timeout, and the try has a line whose usage is unknown.
    """
    with ScriptedMessagesApi([Hangs()], otherwise=CLEAN) as api:
        late = ask_as(api.url, deadline_s=0.3)
        next_one = ask_as(api.url)

    assert (late.outcome, next_one.outcome) == ("timeout", "answered")
    ends = [call.end for call in ledger.calls()]
    assert [end and end.outcome for end in ends] == ["timeout", "answered"]
    assert ends[0] is not None
    assert ends[0].usage is None


def test_models_that_nobody_uses_are_closed(ask_as: AskAs, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Whoever changes keys or models all day does not fill the service's memory; a closed one is opened again.
    """
    monkeypatch.setattr(open_models, "MOST_OPEN", 2)
    with Connections(otherwise=CLEAN) as api:
        for number in range(4):
            assert ask_as(api.url, model=f"model-{number}").outcome == "answered"
        connected = api.accepted
        assert ask_as(api.url, model="model-3").outcome == "answered"
        assert api.accepted == connected
        assert ask_as(api.url, model="model-0").outcome == "answered"

    assert (connected, api.accepted) == (4, 5)


@pytest.mark.parametrize("key", ["token", "output", "k"])
def test_a_word_for_a_key_takes_nothing_with_it(ask_as: AskAs, ledger: Ledger, key: str) -> None:
    """
    Local endpoints are given any word for a key: usage and verdict have the same words in them.
    """
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        judgement = ask_as(api.url, key)

    assert judgement.verdict is not None
    assert judgement.verdict.findings[0].quote == "All tests pass."
    [call] = ledger.calls()
    assert call.end is not None
    assert call.end.usage is not None
    assert call.end.cost_usd is not None
