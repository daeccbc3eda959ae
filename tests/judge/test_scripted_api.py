"""
The scripted Messages API itself, through plain HTTP.
"""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from turngate.judge.scripted_api import (
    EMPTY,
    HTML,
    REFUSAL,
    Received,
    Resets,
    Says,
    ScriptedMessagesApi,
    fails,
    redirects,
)

CLEAN: dict[str, Any] = {"findings": []}


class Reply(NamedTuple):
    """
    A response, read to its end.
    """

    status: int
    headers: dict[str, str]
    body: bytes


def post(api: ScriptedMessagesApi, body: dict[str, Any] | None = None, **headers: str) -> Reply:
    with closing(http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=5)) as connection:
        return post_on(connection, body, **headers)


def post_on(connection: http.client.HTTPConnection, body: dict[str, Any] | None = None, **headers: str) -> Reply:
    connection.request(
        "POST", "/v1/messages", json.dumps(body or a_body()), {k.replace("_", "-"): v for k, v in headers.items()}
    )
    response = connection.getresponse()
    return Reply(response.status, dict(response.getheaders()), response.read())


def a_body(system: Any = "You judge.", user: str = "A turn.") -> dict[str, Any]:
    return {"model": "claude-sonnet-5-5", "system": system, "messages": [{"role": "user", "content": user}]}


def cached(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]


def message(reply: Reply) -> dict[str, Any]:
    assert reply.status == 200
    return json.loads(reply.body)


def test_answers_come_in_order_as_messages() -> None:
    """
    A mapping is said as JSON, a text as it is, and what was asked is recorded.
    """
    with ScriptedMessagesApi([CLEAN, "plain words"]) as api:
        first, second = message(post(api)), message(post(api, a_body(user="Another turn.")))

    assert first["content"] == [{"type": "text", "text": '{"findings": []}'}]
    assert (first["role"], first["type"], first["stop_reason"]) == ("assistant", "message", "end_turn")
    assert second["content"][0]["text"] == "plain words"
    assert [received.user_text for received in api.requests] == ["A turn.", "Another turn."]
    assert api.requests[0].system_text == "You judge."


def test_a_function_answers_by_what_was_received() -> None:
    """
    A script may look at the request.
    """

    def echo(received: Received) -> str:
        return received.user_text.upper()

    with ScriptedMessagesApi(otherwise=echo) as api:
        assert message(post(api))["content"][0]["text"] == "A TURN."


def test_a_script_that_is_used_up_says_so() -> None:
    """
    The answer after the last is an error that no client repeats.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        post(api)

        assert post(api).status == 404


def test_usage_counts_what_was_sent_and_said() -> None:
    """
    Four bytes of text are a token, and without cache control nothing is cached.
    """
    with ScriptedMessagesApi([Says("x" * 40, thinking="y" * 20)]) as api:
        usage = message(post(api, a_body(system="s" * 4000, user="u" * 400)))["usage"]

    assert usage["input_tokens"] == 1100
    assert usage["output_tokens"] == 15
    assert usage["output_tokens_details"] == {"thinking_tokens": 5}
    assert usage["cache_creation_input_tokens"] == usage["cache_read_input_tokens"] == 0


def test_a_cached_system_prompt_is_written_once_and_then_read_for_five_minutes() -> None:
    """
    The counters follow the vendor's: write, read, and write again after the lifetime.
    """
    now = [0.0]
    with ScriptedMessagesApi([CLEAN] * 3, clock=lambda: now[0]) as api:
        usages: list[dict[str, Any]] = []
        for at in (0.0, 299.0, 299.0 + 301.0):
            now[0] = at
            usages.append(message(post(api, a_body(cached("s" * 4000), "u" * 40)))["usage"])

    written = [usage["cache_creation"]["ephemeral_5m_input_tokens"] > 1000 for usage in usages]
    read = [usage["cache_read_input_tokens"] > 1000 for usage in usages]
    assert (written, read) == ([True, False, True], [False, True, False])
    assert {usage["input_tokens"] for usage in usages} == {10}


def test_a_short_prompt_is_not_cached() -> None:
    """
    Below the floor of 512 tokens both counters stay 0.
    """
    with ScriptedMessagesApi([CLEAN] * 2) as api:
        for _ in range(2):
            usage = message(post(api, a_body(cached("s" * 1000))))["usage"]
            assert usage["cache_creation_input_tokens"] == usage["cache_read_input_tokens"] == 0


@pytest.mark.parametrize(
    ("refused", "body"),
    [
        ("thinking", {**a_body(), "thinking": {"type": "between_tools"}}),
        ("output_config.format", {**a_body(), "output_config": {"format": {}}}),
        ("output_config.effort", {**a_body(), "output_config": {"effort": "low"}}),
        ("cache_control", a_body(cached("s"))),
        ("system.blocks", a_body(cached("s"))),
    ],
)
def test_a_refused_field_is_named_and_costs_no_answer(refused: str, body: dict[str, Any]) -> None:
    """
    The request with the field gets a 400, the next one without gets the first answer.
    """
    with ScriptedMessagesApi([CLEAN], refused_fields=[refused]) as api:
        reply = post(api, body)
        assert reply.status == 400
        assert refused in json.loads(reply.body)["error"]["message"]

        assert message(post(api))["content"][0]["text"] == '{"findings": []}'


def test_a_wrong_key_is_turned_away() -> None:
    """
    Either header may carry the key.
    """
    with ScriptedMessagesApi([CLEAN] * 2, key="right") as api:
        assert post(api, x_api_key="wrong").status == 401
        assert post(api, x_api_key="right").status == 200
        assert post(api, authorization="Bearer right").status == 200


def test_faults_are_sent_as_they_are() -> None:
    """
    Errors, pages, nothing, redirects and refusals reach the client.
    """
    answers = [fails(529, kind="overloaded_error"), HTML, EMPTY, redirects("http://127.0.0.1:1/"), REFUSAL]
    with ScriptedMessagesApi(answers) as api:
        replies = [post(api) for _ in answers]

    assert [reply.status for reply in replies] == [529, 200, 200, 307, 200]
    assert replies[1].headers["content-type"] == "text/html"
    assert replies[2].body == b""
    assert replies[3].headers["location"] == "http://127.0.0.1:1/"
    assert json.loads(replies[4].body)["stop_reason"] == "refusal"


@pytest.mark.parametrize("in_body", [False, True], ids=["before", "in-the-body"])
def test_a_reset_breaks_the_connection(in_body: bool) -> None:
    """
    The client sees a broken connection, not a short answer.
    """
    broken = (ConnectionError, http.client.HTTPException)
    with ScriptedMessagesApi([Resets(in_body=in_body)]) as api, pytest.raises(broken):
        post(api)


def test_a_connection_serves_many_requests() -> None:
    """
    Connections are kept alive, as the vendor's are.
    """
    addresses: list[Any] = []
    with (
        ScriptedMessagesApi([CLEAN] * 2) as api,
        closing(http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=5)) as connection,
    ):
        for _ in range(2):
            message(post_on(connection))
            addresses.append(connection.sock.getsockname())

    assert addresses[0] == addresses[1]
