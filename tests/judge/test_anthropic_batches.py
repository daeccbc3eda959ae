"""
The Message Batches API: what leaves for an endpoint, what is read of its answers, and what is not believed.
"""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
from collections.abc import Callable, Coroutine
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from turngate.judge.errors import JudgeError, ModelUnavailable, NoMessage
from turngate.judge.models.anthropic_batches import LONGEST_RESULT, AnthropicBatches, Batch, Result
from turngate.judge.scripted_api import Hangs, Received, Resets, ScriptedMessagesApi, Sends, fails, redirects

KEY = "sk-ant-test-0123456789"
CLEAN: dict[str, Any] = {"findings": []}
PATH = "/v1/messages/batches"

T = TypeVar("T")


def an_item(custom_id: str, user: str = "A turn.") -> dict[str, Any]:
    params = {"model": "claude-sonnet-5-5", "system": "You judge.", "messages": [{"role": "user", "content": user}]}
    return {"custom_id": custom_id, "params": params}


def at(api: ScriptedMessagesApi | str, work: Callable[[AnthropicBatches], Coroutine[Any, Any, T]]) -> T:
    async def open_and_work() -> T:
        batches = AnthropicBatches(base_url=api if isinstance(api, str) else api.url, key=KEY)
        try:
            return await work(batches)
        finally:
            await batches.close()

    return asyncio.run(open_and_work())


def a_batch(results_url: str = "") -> Batch:
    return Batch("msgbatch_1", True, 1, datetime.now(UTC), results_url)


async def read_all(batches: AnthropicBatches, batch: Batch, most: int = 1_000) -> list[Result | None]:
    return [result async for result in batches.results(batch, most=most)]


def results_of(api: ScriptedMessagesApi, lines: bytes) -> list[Result | None]:
    api.batches.before = lambda _: Sends(body=lines, content_type="application/x-jsonl")
    return at(api, lambda batches: read_all(batches, a_batch()))


async def create_and_read(batches: AnthropicBatches, *items: dict[str, Any]) -> dict[str, Result]:
    created = await batches.create(items)
    ended = await batches.state(created.id)
    return {result.custom_id: result for result in await read_all(batches, ended) if result}


def test_a_batch_is_created_asked_about_and_read() -> None:
    """
    Each result names its item, whatever their order.
    """
    with ScriptedMessagesApi([CLEAN, "words", CLEAN, CLEAN]) as api:
        api.batches.polls_until_ended = 2

        async def work(batches: AnthropicBatches) -> tuple[Batch, Batch, Batch, list[Result | None]]:
            created = await batches.create([an_item(name) for name in ("a", "b", "c", "d")])
            first, second = await batches.state(created.id), await batches.state(created.id)
            return created, first, second, await read_all(batches, second)

        created, first, second, results = at(api, work)

    assert (created.items, created.has_ended, first.has_ended, second.has_ended) == (4, False, False, True)
    texts = {result.custom_id: result.completion.text for result in results if result and result.completion}
    assert texts == {"a": '{"findings": []}', "b": "words", "c": '{"findings": []}', "d": '{"findings": []}'}
    assert [result.custom_id for result in results if result] != ["a", "b", "c", "d"]


def test_only_known_headers_leave_on_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The results are fetched past the SDK, and with the same care.
    """
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-secret: leaked\nauthorization: Bearer other")
    with ScriptedMessagesApi([CLEAN]) as api:
        at(api, lambda batches: create_and_read(batches, an_item("a")))

    assert [(r.method, r.path.partition("_scripted_0000")[2]) for r in api.batches.requests[1:]] == [
        ("GET", ""),
        ("GET", "/results"),
    ]
    for received in api.batches.requests:
        assert received.headers["authorization"] == f"Bearer {KEY}"
        assert received.headers["anthropic-version"]
        assert set(received.headers) <= {
            *("host", "connection", "accept", "accept-encoding", "user-agent", "content-type", "content-length"),
            *("authorization", "anthropic-version"),
        }


@pytest.mark.parametrize(
    ("answer", "kind", "detail"),
    [
        (fails(400, "max_tokens: too small", "invalid_request_error"), "errored", "invalid_request_error: max_tokens"),
        (fails(500), "errored", "api_error: scripted failure"),
        (Hangs(), "expired", "not answered within"),
    ],
    ids=["rejected", "failed", "expired"],
)
def test_an_item_without_an_answer_says_why(answer: Any, kind: str, detail: str) -> None:
    """
    Errored, expired and canceled are kinds of their own.
    """
    with ScriptedMessagesApi([answer]) as api:
        result = at(api, lambda batches: create_and_read(batches, an_item("a")))["a"]

    assert result.kind == kind
    assert result.detail.startswith(detail)
    assert result.completion is None
    assert result.is_rejection == (answer == fails(400, "max_tokens: too small", "invalid_request_error"))


def test_a_canceled_batch_answers_nothing() -> None:
    """
    The server plays a cancelation as the API does: canceling, then ended.
    """
    with ScriptedMessagesApi([CLEAN]) as api:

        async def work(batches: AnthropicBatches) -> list[Result | None]:
            created = await batches.create([an_item("a")])
            cancel(api, created.id)
            return await read_all(batches, await batches.state(created.id))

        results = at(api, work)

    assert [result.kind for result in results if result] == ["canceled"]
    assert api.requests == []


def cancel(api: ScriptedMessagesApi, batch_id: str) -> None:
    with closing(http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=5)) as connection:
        connection.request("POST", f"{PATH}/{batch_id}/cancel", headers={"content-length": "0"})
        assert json.loads(connection.getresponse().read())["processing_status"] == "canceling"


def test_a_refused_field_is_named() -> None:
    """
    The next submission can do without it.
    """
    with ScriptedMessagesApi([fails(400, "output_config.effort: not permitted", "invalid_request_error")]) as api:
        result = at(api, lambda batches: create_and_read(batches, an_item("a")))["a"]

    assert result.refused == {"output_config.effort"}


SUCCEEDED = {"type": "succeeded", "message": {"id": "msg_1", "content": [{"type": "text", "text": f"said {KEY}"}]}}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"{torn", None),
        (b"[]", None),
        (b"\xff\xfe", None),
        (b'{"custom_id": 7, "result": {"type": "expired"}}', None),
        (b'{"custom_id": "a"}', None),
        (b"[" * 100_000, None),
        (b'{"custom_id": "a", "result": {"type": "succeeded", "message": "none"}}', "unreadable"),
        (b'{"custom_id": "a", "result": {"type": "of tomorrow"}}', "unreadable"),
        (b'{"custom_id": "a", "result": {"type": "errored", "error": "words"}}', "errored"),
        (b"x" * (LONGEST_RESULT + 1), None),
    ],
    ids=["torn", "no object", "no UTF-8", "no id", "no result", "deep", "no message", "unknown kind", "plain", "huge"],
)
def test_a_damaged_line_takes_no_other_with_it(line: bytes, kind: str | None) -> None:
    """
    What can be read of it is told; the lines around it are read.
    """
    good = json.dumps({"custom_id": "b", "result": SUCCEEDED}).encode()
    with ScriptedMessagesApi() as api:
        first, damaged, last = results_of(api, good + b"\n\n" + line + b"\n" + good)

    assert first == last
    assert first is not None
    assert first.custom_id == "b"
    assert (damaged.kind if damaged else None) == kind


def test_the_key_is_taken_out_of_results() -> None:
    """
    An endpoint may give it back.
    """
    error = {"type": "error", "error": {"type": f"kind {KEY}", "message": f"bad {KEY}"}, "request_id": KEY}
    lines = [
        {"custom_id": "a", "result": SUCCEEDED},
        {"custom_id": "b", "result": {"type": "errored", "error": error}},
    ]
    with ScriptedMessagesApi() as api:
        results = results_of(api, b"\n".join(json.dumps(line).encode() for line in lines))

    assert len(results) == 2
    assert KEY not in repr(results)


def test_endless_results_are_read_to_a_limit() -> None:
    """
    Who sends more lines than there can be does not mean to end.
    """
    with ScriptedMessagesApi() as api:
        api.batches.before = lambda _: Sends(body=b'{"custom_id": "a", "result": {"type": "expired"}}\n' * 50)
        results = at(api, lambda batches: read_all(batches, a_batch(), most=7))

    assert len(results) == 7


@pytest.mark.parametrize("path", ["/results", ""], ids=["results", "state"])
def test_no_redirect_is_followed(path: str) -> None:
    """
    Neither the key nor a question goes to another host.
    """
    with ScriptedMessagesApi() as other, ScriptedMessagesApi() as api:
        api.batches.before = lambda _: redirects(f"{other.url}{PATH}/msgbatch_1{path}")
        with pytest.raises(JudgeError, match="status 307"):
            at(api, lambda batches: read_all(batches, a_batch()) if path else batches.state("msgbatch_1"))

    assert other.batches.requests == []


def test_the_key_goes_to_no_other_host_that_holds_results() -> None:
    """
    A results' address elsewhere, as behind a gateway, is replaced by the endpoint's own.
    """
    with ScriptedMessagesApi() as other, ScriptedMessagesApi([CLEAN]) as api:
        results = f"{other.url}{PATH}/msgbatch_1/results"
        api.batches.before = lambda _: Sends(body=b"")
        at(api, lambda batches: read_all(batches, a_batch(results)))

    assert other.batches.requests == []
    assert [received.path for received in api.batches.requests] == [f"{PATH}/msgbatch_1/results"]


def test_results_that_break_off_are_no_whole() -> None:
    """
    What came before is given, and then that it broke off.
    """
    line = json.dumps({"custom_id": "a", "result": SUCCEEDED}).encode() + b"\n"
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"
    seen: list[Result | None] = []
    with ScriptedMessagesApi() as api:
        from turngate.judge.scripted_api import Writes

        api.batches.before = lambda _: Writes(head + line)

        async def work(batches: AnthropicBatches) -> None:
            async for result in batches.results(a_batch(), most=10):
                seen.append(result)  # noqa: PERF401 - what came before the error is what is looked at

        with pytest.raises(ModelUnavailable, match="no connection"):
            at(api, work)

    assert [result.custom_id for result in seen if result] == ["a"]


def test_packed_results_are_read() -> None:
    """
    Some pack without being asked to.
    """
    line = gzip.compress(json.dumps({"custom_id": "a", "result": SUCCEEDED}).encode())
    with ScriptedMessagesApi() as api:
        api.batches.before = lambda _: Sends(body=line, headers=(("content-encoding", "gzip"),))
        results = at(api, lambda batches: read_all(batches, a_batch()))

    assert [result.custom_id for result in results if result] == ["a"]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"{}", b'{"id": "../../x", "processing_status": "ended"}', b'{"id": "msgbatch_1"}', b"[1]"],
    ids=["empty", "a page", "no id", "an address", "no status", "a list"],
)
def test_what_is_no_batch_is_not_taken_for_one(body: bytes) -> None:
    """
    An id goes into addresses.
    """
    with ScriptedMessagesApi() as api:
        api.batches.before = lambda _: Sends(body=body)
        with pytest.raises(NoMessage, match="without a batch"):
            at(api, lambda batches: batches.state("msgbatch_1"))


@pytest.mark.parametrize(
    "body",
    [b"{}", b'{"data": {}}', b'{"data": [{"id": "a b", "processing_status": "ended"}]}', b'{"data": [7]}'],
    ids=["nothing", "no list", "an unreadable one", "no objects"],
)
def test_a_list_that_cannot_be_read_whole_is_no_list(body: bytes) -> None:
    """
    A batch that may be ours could stand in it.
    """
    with ScriptedMessagesApi() as api:
        api.batches.before = lambda _: Sends(body=body)
        with pytest.raises(NoMessage, match="without a list of batches"):
            at(api, lambda batches: batches.since(datetime.now(UTC)))


def test_the_batches_since_a_time_are_listed_over_all_pages() -> None:
    """
    Newest first, and none from before.
    """
    with ScriptedMessagesApi() as api:

        async def work(batches: AnthropicBatches) -> tuple[list[str], list[Batch]]:
            created = [await batches.create([an_item("a")]) for _ in range(130)]
            found = await batches.since(datetime.now(UTC) - timedelta(hours=1))
            assert [one.id for one in found] == [one.id for one in reversed(created)]
            return [one.id for one in found], await batches.since(datetime.now(UTC) + timedelta(hours=1))

        ids, later = at(api, work)

    assert len(set(ids)) == 130
    assert later == []


@pytest.mark.parametrize(
    ("answer", "never_sent"), [(fails(401), False), (Resets(), False), (None, True)], ids=["401", "reset", "nobody"]
)
def test_it_is_known_whether_anything_can_have_arrived(answer: Any, never_sent: bool) -> None:
    """
    Only where no connection came about it cannot.
    """
    with ScriptedMessagesApi() as api:

        def before(_: Received) -> Any:
            return answer

        api.batches.before = before
        url = api.url if answer else "http://127.0.0.1:9"
        with pytest.raises(ModelUnavailable) as caught:
            at(url, lambda batches: batches.create([an_item("a")]))

    assert caught.value.never_sent == never_sent
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("items", "trouble"),
    [
        ([], "at least one"),
        ([an_item("a"), an_item("a")], "unique"),
        ([an_item("a" * 65)], "1 to 64"),
        ([an_item("a.b")], "1 to 64"),
    ],
    ids=["none", "twice", "long", "signs"],
)
def test_the_server_takes_what_the_api_takes(items: list[dict[str, Any]], trouble: str) -> None:
    """
    A custom id is 1 to 64 letters, digits, hyphens and underscores, and unique in its batch.
    """
    with ScriptedMessagesApi() as api, pytest.raises(JudgeError, match=trouble):
        at(api, lambda batches: batches.create(items))
