"""
The Message Batches API of the scripted server: its items are answered from the same script as `/v1/messages`.

An item whose answer is a failure is errored, and one whose answer hangs has expired; the results come in an order of their own.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from .scripted_api import Raw, Received, ScriptedMessagesApi, Sends

PATH: Final = "/v1/messages/batches"


class ScriptedBatches:
    """
    All batches of a server, newest last.

    `polls_until_ended` is how often a batch is asked about before it has ended. `before` may answer a request in the server's
    place, so that nothing comes of it; `after` may answer once all has come of it: a response that gets lost, or another one.
    """

    def __init__(self, api: ScriptedMessagesApi) -> None:
        self.polls_until_ended = 1
        self.before: Callable[[Received], Raw | None] = lambda _received: None
        self.after: Callable[[Received], Raw | None] = lambda _received: None
        self.requests: list[Received] = []
        self.batches: list[Batch] = []
        self._api = api
        self._lock = threading.Lock()

    def respond(self, received: Received) -> Raw:
        """
        Raw one request about batches.
        """
        self.requests.append(received)
        instead = self.before(received)
        if instead is not None:
            return instead

        with self._lock:
            answer = self._api.key_refusal(received) or self._routed(received)
        return self.after(received) or answer

    def results(self, batch: Batch) -> bytes:
        """
        The results of a batch that has ended, as JSON Lines.
        """
        return b"".join(line + b"\n" for line in batch.lines)

    def _routed(self, received: Received) -> Raw:
        parts = urlsplit(received.path)
        if not parts.path.startswith(PATH):
            return _fails(404, f"no such path: {received.path}", "not_found_error")
        steps = parts.path.removeprefix(PATH).strip("/").split("/")
        if steps == [""]:
            return self._create(received) if received.method == "POST" else self._list(parse_qs(parts.query))

        batch = next((batch for batch in self.batches if batch.id == steps[0]), None)
        if batch is None:
            return _fails(404, f"no such batch: {steps[0]}", "not_found_error")
        match received.method, steps[1:]:
            case "GET", []:
                return self._poll(batch)
            case "GET", ["results"]:
                return self._sent_results(batch)
            case "POST", ["cancel"]:
                return self._cancel(batch)
            case _:
                return _fails(404, f"no such path: {received.path}", "not_found_error")

    def _create(self, received: Received) -> Raw:
        requests = received.body.get("requests")
        trouble = _trouble(requests)
        if trouble:
            return _fails(400, trouble, "invalid_request_error")
        batch = Batch(f"msgbatch_scripted_{len(self.batches):04}", cast("list[dict[str, Any]]", requests), received)
        self.batches.append(batch)
        return _json(batch.shown(self._api.url))

    def _list(self, query: Mapping[str, list[str]]) -> Raw:
        limit = int(query.get("limit", ["20"])[0])
        newest_first = self.batches[::-1]
        after = query.get("after_id", [""])[0]
        if after:
            places = [place for place, batch in enumerate(newest_first) if batch.id == after]
            newest_first = newest_first[places[0] + 1 :] if places else []
        page = [batch.shown(self._api.url) for batch in newest_first[:limit]]
        return _json(
            {
                "data": page,
                "has_more": len(newest_first) > limit,
                "first_id": page[0]["id"] if page else None,
                "last_id": page[-1]["id"] if page else None,
            }
        )

    def _poll(self, batch: Batch) -> Raw:
        batch.polls += 1
        if batch.polls >= self.polls_until_ended and batch.status != "ended":
            self._end(batch)
        return _json(batch.shown(self._api.url))

    def _cancel(self, batch: Batch) -> Raw:
        if batch.status == "in_progress":
            batch.status = "canceling"
        return _json(batch.shown(self._api.url))

    def _sent_results(self, batch: Batch) -> Raw:
        from .scripted_api import Sends

        if batch.status != "ended":
            return _fails(400, "the batch has not ended", "invalid_request_error")
        return Sends(body=self.results(batch), content_type="application/x-jsonl")

    def _end(self, batch: Batch) -> None:
        is_canceled = batch.status == "canceling"
        for item in batch.items:
            result = {"type": "canceled"} if is_canceled else self._result(item, batch.received)
            batch.counts[result["type"]] += 1
            batch.lines.append(json.dumps({"custom_id": item["custom_id"], "result": result}).encode())
        batch.counts["processing"] = 0
        random.Random(batch.id).shuffle(batch.lines)  # noqa: S311 - an order that is nobody's secret
        batch.status = "ended"

    def _result(self, item: Mapping[str, Any], received: Received) -> dict[str, Any]:
        from .scripted_api import Says, Sends

        question = received._replace(path="/v1/messages", body=item["params"])
        answer = self._api.respond(question)
        if isinstance(answer, Says):
            message = json.loads(self._api.message(question, answer))
            message["usage"]["service_tier"] = "batch"
            return {"type": "succeeded", "message": message}
        if isinstance(answer, Sends):
            return {"type": "errored", "error": json.loads(answer.body or b"{}")}
        return {"type": "expired"}


class Batch:
    """
    One batch as the server has it.
    """

    def __init__(self, batch_id: str, items: list[dict[str, Any]], received: Received) -> None:
        self.id: Final = batch_id
        self.items: Final = items
        self.received: Final = received
        self.created_at: Final = datetime.now(UTC)
        self.status = "in_progress"
        self.polls = 0
        self.lines: list[bytes] = []
        self.counts = {"processing": len(items), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}

    def shown(self, url: str) -> dict[str, Any]:
        """
        The batch as the API shows it.
        """
        has_ended = self.status == "ended"
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": self.status,
            "request_counts": dict(self.counts),
            "created_at": self.created_at.isoformat(),
            "expires_at": (self.created_at + timedelta(hours=24)).isoformat(),
            "ended_at": self.created_at.isoformat() if has_ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": f"{url}{PATH}/{self.id}/results" if has_ended else None,
        }


def _trouble(requests: object) -> str:
    if not isinstance(requests, list) or not requests:
        return "requests: at least one is needed"
    ids = [request.get("custom_id") for request in cast("list[dict[str, Any]]", requests)]
    if len(set(ids)) < len(ids):
        return "requests: custom_id must be unique"
    return "" if all(_is_custom_id(one) for one in ids) else "requests: custom_id: 1 to 64 of a-z, A-Z, 0-9, _ and -"


def _is_custom_id(one: object) -> bool:
    return (
        isinstance(one, str)
        and 1 <= len(one) <= 64
        and one.isascii()
        and one.replace("-", "").replace("_", "").isalnum()
    )


def _json(body: Mapping[str, Any]) -> Sends:
    from .scripted_api import Sends

    return Sends(body=json.dumps(body).encode())


def _fails(status: int, message: str, kind: str) -> Sends:
    from .scripted_api import fails

    return fails(status, message, kind)
