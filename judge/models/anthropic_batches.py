"""
The Message Batches API: many requests at half the price, answered within a day and in any order.

What an endpoint says of its batches is read with care: the ids go into addresses, and the results are as long as it likes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from .anthropic_api import Endpoint
from .messages import completion_of, error_message, json_object, named_fields, part_of, raw_usage

if TYPE_CHECKING:
    import httpx2

    from .base import Completion

PATH: Final = "/v1/messages/batches"

LONGEST_RESULT: Final = 1_000_000
"""In bytes; a longer line of the results is not read."""

STRAY_LINES: Final = 1_000
"""So many lines more than items are read; who sends still more does not mean to end."""

_CREATE_S: Final = 600.0
_ANSWER_S: Final = 60.0
_PAGE: Final = 100
_MOST_PAGES: Final = 100


class Batch(NamedTuple):
    """
    A batch as its endpoint shows it.
    """

    id: str
    has_ended: bool
    items: int | None
    """None where the endpoint does not say."""
    created_at: datetime | None
    results_url: str
    """Empty where there are no results, or none yet."""
    status: str = ""
    """As its endpoint calls it, one short line without secrets."""


class Result(NamedTuple):
    """
    What came of one item.
    """

    custom_id: str
    kind: Literal["succeeded", "errored", "canceled", "expired", "unreadable"]
    completion: Completion | None = None
    """Where it succeeded."""
    detail: str = ""
    """One line without secrets, where it did not."""
    is_rejection: bool = False
    """The request itself was not taken, and will not be."""
    raw_usage: Mapping[str, object] | None = None
    request_id: str | None = None
    refused: frozenset[str] = frozenset()
    """Fields that can be left out, as far as the error names them."""


class TooMany(Exception):
    """
    The endpoint lists more batches than can be looked through.
    """


class AnthropicBatches:
    """
    The batches of an endpoint. Every method raises a `JudgeError` where it gets no answer.
    """

    def __init__(self, *, base_url: str, key: str) -> None:
        self._endpoint = Endpoint(base_url, key)

    async def create(self, items: Sequence[Mapping[str, Any]]) -> Batch:
        """
        Submit items, each with its `custom_id` and the body of its message as `params`.
        """
        return await self._endpoint.post(PATH, {"requests": list(items)}, self._batch, timeout_s=_CREATE_S)

    async def state(self, batch_id: str) -> Batch:
        """
        Ask how far a batch is.
        """
        return await self._endpoint.get(f"{PATH}/{batch_id}", self._batch, timeout_s=_ANSWER_S)

    async def since(self, at: datetime) -> list[Batch]:
        """
        Give the batches that were created since then, newest first, and those that do not say when. Raises `TooMany`.
        """
        found: list[Batch] = []
        after = ""
        for _ in range(_MOST_PAGES):
            page = await self._endpoint.get(f"{PATH}?limit={_PAGE}{after}", self._listed, timeout_s=_ANSWER_S)
            found += [batch for batch in page.batches if batch.created_at is None or batch.created_at >= at]
            is_past = any(batch.created_at and batch.created_at < at for batch in page.batches)
            if is_past or not page.has_more or not page.batches:
                return found
            after = f"&after_id={page.batches[-1].id}"
        raise TooMany

    async def results(self, batch: Batch, *, most: int) -> AsyncGenerator[Result | None]:
        """
        Give the results of a batch that has ended, None for a line that cannot be read; no more than `most` lines of them.
        """
        async with aclosing(
            self._endpoint.lines(self._results_address(batch), longest=LONGEST_RESULT, timeout_s=_ANSWER_S)
        ) as lines:
            number = 0
            async for line in lines:
                if line is not None and not line.strip():
                    continue
                yield self._result(line) if line is not None else None
                number += 1
                if number >= most:
                    return

    async def close(self) -> None:
        """
        Close the connections.
        """
        await self._endpoint.close()

    def _results_address(self, batch: Batch) -> str:
        # Behind a gateway the vendor's own address may stand there: the key goes to nobody but the endpoint that was named.
        if batch.results_url and _origin(batch.results_url) == _origin(self._endpoint.base_url):
            return batch.results_url
        return f"{self._endpoint.base_url}{PATH}/{batch.id}/results"

    def _batch(self, response: httpx2.Response) -> Batch:
        batch = _read_batch(json_object(response.content))
        if batch is None:
            raise self._endpoint.no_message(response, "a batch")
        return batch._replace(status=self._endpoint.line(batch.status))

    def _listed(self, response: httpx2.Response) -> _Page:
        page = json_object(response.content)
        data = page.get("data")
        if not isinstance(data, list):
            raise self._endpoint.no_message(response, "a list of batches")
        shown = [cast("dict[str, Any]", one) for one in cast("list[object]", data) if isinstance(one, dict)]
        batches = [batch for batch in map(_read_batch, shown) if batch]
        if len(batches) < len(cast("list[object]", data)):
            raise self._endpoint.no_message(response, "a list of batches that can be read")
        return _Page(batches, page.get("has_more") is True)

    def _result(self, line: bytes) -> Result | None:
        found = json_object(line)
        custom_id, result = found.get("custom_id"), part_of(found, "result")
        if not isinstance(custom_id, str) or not result:
            return None
        kind = result.get("type")
        if kind == "succeeded":
            return self._succeeded(custom_id, part_of(result, "message"))
        if kind == "errored":
            return self._errored(custom_id, part_of(result, "error"))
        if kind == "canceled":
            return Result(custom_id, "canceled", detail="the batch was canceled")
        if kind == "expired":
            return Result(custom_id, "expired", detail="not answered within the batch's time")
        return Result(custom_id, "unreadable", detail="a result of a kind that is not known")

    def _succeeded(self, custom_id: str, message: Mapping[str, Any]) -> Result:
        clean = self._endpoint.without_secrets
        name = message.get("id")
        message_id = clean(name)[:100] if isinstance(name, str) else None
        completion = completion_of(message, clean, message_id)
        usage = raw_usage(message, clean)
        if completion is None:
            return Result(custom_id, "unreadable", None, "a result without a message", False, usage, message_id)
        return Result(custom_id, "succeeded", completion, raw_usage=usage, request_id=message_id)

    def _errored(self, custom_id: str, body: Mapping[str, Any]) -> Result:
        # The error stands in an error response; some write it without.
        error = part_of(body, "error") or body
        message, kind = error_message(body), error.get("type")
        is_rejection = isinstance(kind, str) and kind in _REJECTIONS
        request_id = body.get("request_id")
        return Result(
            custom_id,
            "errored",
            detail=self._endpoint.line(f"{kind if isinstance(kind, str) else 'error'}: {message}"),
            is_rejection=is_rejection,
            raw_usage=raw_usage(body, self._endpoint.without_secrets),
            request_id=self._endpoint.without_secrets(request_id)[:100] if isinstance(request_id, str) else None,
            refused=named_fields(message) if kind == "invalid_request_error" else frozenset(),
        )


_REJECTIONS: Final = (
    *("invalid_request_error", "authentication_error", "permission_error", "not_found_error", "billing_error"),
    "request_too_large",
)


class _Page(NamedTuple):
    batches: list[Batch]
    has_more: bool


def _read_batch(shown: Mapping[str, Any]) -> Batch | None:
    name, status = shown.get("id"), shown.get("processing_status")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,200}", name) or not isinstance(status, str):
        return None
    url = shown.get("results_url")
    at = _moment(shown.get("created_at"))
    return Batch(name, status == "ended", _items(shown), at, url if isinstance(url, str) else "", status)


def _items(shown: Mapping[str, Any]) -> int | None:
    counts = list(part_of(shown, "request_counts").values())
    are_counts = counts and all(isinstance(count, int) and count >= 0 for count in counts)
    return sum(counts) if are_counts else None


def _moment(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _origin(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return parts.scheme, parts.hostname or "", port
