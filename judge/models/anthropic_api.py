"""
The Messages API through its SDK; the only file that imports it.

Nothing of the process's own environment reaches the endpoint: address, key and headers are given here. Every answer is
read here too, because the SDK's own reading loses the usage of answers that it does not like.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import anthropic
import httpx2
from anthropic.lib.bedrock import AsyncAnthropicBedrock
from anthropic.lib.vertex import AsyncAnthropicVertex

from ...rubric.masking import MARK, mask
from ...rubric.render import Request
from ..errors import PASSING_STATUSES, FieldsRefused, JudgeError, ModelUnavailable, NoMessage
from ..loopback import is_loopback
from .base import Completion
from .messages import (
    completion_of,
    error_message,
    json_object,
    message_body,
    optional_fields,
    raw_usage,
    refused_fields,
)

T = TypeVar("T")

MAX_RESPONSE_BYTES = 1_000_000
"""A thousand times a verdict; what is longer is cut off, and then is no message."""

MAX_DETAIL_CHARS = 200

_NO_KEY = "none"
"""For the SDK, which refuses to work without one; it is not sent."""

SHORTEST_SECRET = 8
"""In characters; what is shorter is no key that anybody keeps secret."""


_OUR_HEADERS = frozenset(
    (
        *("host", "accept", "connection", "user-agent", "content-type", "content-length"),
        "anthropic-version",
    )
)

for _name in ("anthropic", "httpx2"):
    # ANTHROPIC_LOG=debug makes the SDK write requests to stderr, which belongs to the hook.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class BedrockClient(AsyncAnthropicBedrock):
    """
    Signs what arrives: all that is not needed is taken off before.
    """

    async def _prepare_request(self, request: httpx2.Request) -> None:
        keep_ours(request.headers)
        await super()._prepare_request(request)


class VertexClient(AsyncAnthropicVertex):
    """
    Sends our headers only, with a token of its credentials.
    """

    async def _prepare_request(self, request: httpx2.Request) -> None:
        keep_ours(request.headers)
        await super()._prepare_request(request)


CloudClient = Callable[[httpx2.AsyncClient], BedrockClient | VertexClient]


class Endpoint:
    """
    An address that speaks the vendor's API, and the key for it; empty where a server on this machine wants none.

    Raises ModelUnavailable where a proxy or a certificate named in the environment cannot be used.
    """

    def __init__(self, base_url: str, key: str, cloud: CloudClient | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self._key = key
        try:
            # Proxies and certificates of the environment are for the world outside.
            self._http = _Client(key, trust_env=not is_loopback(base_url), is_signed=cloud is not None)
            self._client = cloud(self._http) if cloud else self._vendors(base_url, key)
        except (anthropic.AnthropicError, httpx2.InvalidURL, ImportError, OSError, TypeError, ValueError) as exc:
            raise ModelUnavailable(self.line(f"no client could be made: {_why(exc)}")) from exc

    def _vendors(self, base_url: str, key: str) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(
            api_key=key or _NO_KEY, base_url=base_url, max_retries=0, open_telemetry=False, http_client=self._http
        )

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        read: Callable[[httpx2.Response], T],
        *,
        optional: frozenset[str] = frozenset(),
        timeout_s: float,
    ) -> T:
        """
        Send a body and read what comes back. `optional` names its fields that can be left out. Raises a `JudgeError`.
        """
        with self._translated(optional):
            return read(
                await self._client.post(path, cast_to=httpx2.Response, body=body, options={"timeout": timeout_s})
            )

    async def get(self, path: str, read: Callable[[httpx2.Response], T], *, timeout_s: float) -> T:
        """
        Fetch something and read it. Raises a `JudgeError`.
        """
        with self._translated():
            return read(await self._client.get(path, cast_to=httpx2.Response, options={"timeout": timeout_s}))

    async def lines(self, url: str, *, longest: int, timeout_s: float) -> AsyncGenerator[bytes | None]:
        """
        Fetch a text of any length, and give its lines without their ends; None stands for one of more than `longest` bytes.

        Raises a `JudgeError`, also where the connection breaks off in the middle.
        """
        with self._translated():
            version = str(self._client.default_headers["anthropic-version"])
            headers = {"anthropic-version": version, "user-agent": self._client.user_agent}
            request = self._http.build_request("GET", url, headers=headers, timeout=timeout_s)
            response = await self._http.open(request)
            try:
                if response.status_code != 200:
                    raise self._from_status(await _bounded(response, self._key), frozenset())
                async for line in _lines(response.aiter_bytes(), longest):
                    yield line
            finally:
                await response.aclose()

    def without_secrets(self, text: str) -> str:
        """
        Take the key out of a text, for an endpoint may give it back.
        """
        # Local endpoints are given words for a key: those would take every other word with them.
        return text.replace(self._key, MARK) if len(self._key) >= SHORTEST_SECRET else text

    def line(self, text: str) -> str:
        """
        Give a text as one short line without secrets.
        """
        # Endpoints repeat keys in their messages, whatever a key may look like.
        text = text.replace(self._key, "[key]") if self._key else text
        line = " ".join(mask(text).split())
        return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1] + "…"

    def no_message(self, response: httpx2.Response, what: str = "a message") -> NoMessage:
        """
        Say that something else came than was asked for.
        """
        kind, length = response.headers.get("content-type", "no content type"), len(response.content)
        is_cut = length >= MAX_RESPONSE_BYTES
        told = f"more than {MAX_RESPONSE_BYTES} bytes, which were cut off" if is_cut else f"{kind}, {length} bytes"
        return NoMessage(
            self.line(f"status {response.status_code} without {what} ({told})"),
            status=response.status_code,
            request_id=_request_id(response),
            raw_usage=raw_usage(json_object(response.content), self.without_secrets),
        )

    async def close(self) -> None:
        """
        Close the connections.
        """
        await self._client.close()

    @contextmanager
    def _translated(self, optional: frozenset[str] = frozenset()) -> Generator[None]:
        try:
            yield
        except JudgeError:
            raise
        except anthropic.APIStatusError as exc:
            raise self._from_status(exc.response, optional) from exc
        except (anthropic.APITimeoutError, anthropic.APIConnectionError) as exc:
            raise self._no_connection(exc.__cause__ or exc) from exc
        except httpx2.TransportError as exc:
            raise self._no_connection(exc) from exc
        except Exception as exc:  # the SDK's own code, and what an endpoint makes it do
            raise ModelUnavailable(self.line(f"no answer that can be read: {_why(exc)}")) from exc

    def _from_status(self, response: httpx2.Response, sent: frozenset[str]) -> JudgeError:
        body, status = json_object(response.content), response.status_code
        message = error_message(body)
        facts: dict[str, Any] = {
            "status": status,
            "request_id": _request_id(response),
            "raw_usage": raw_usage(body, self.without_secrets),
        }
        detail = self.line(f"status {status}: {message or response.reason_phrase}")

        fields = refused_fields(status, message, sent)
        if fields:
            refused = FieldsRefused(detail, **facts)
            refused.fields = fields
            return refused

        unavailable = ModelUnavailable(detail, **facts)
        unavailable.retryable = status in PASSING_STATUSES or status >= 500
        unavailable.retry_after_s = _retry_after_s(response.headers)
        return unavailable

    def _no_connection(self, cause: BaseException) -> ModelUnavailable:
        unavailable = ModelUnavailable(self.line(f"no connection: {_why(cause)}"))
        unavailable.retryable = True
        unavailable.never_sent = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
        return unavailable


class AnthropicModel:
    """
    A model behind an endpoint that speaks the Messages API.

    Raises ModelUnavailable where a proxy or a certificate named in the environment cannot be used.
    """

    def __init__(
        self, model: str, *, base_url: str, key: str, max_tokens: int, effort: str, cloud: CloudClient | None = None
    ) -> None:
        self._model = model
        self._max_tokens = max_tokens
        self._effort = effort
        self._endpoint = Endpoint(base_url, key, cloud)

    async def complete(
        self, request: Request, *, cached: bool, without: frozenset[str], timeout_s: float
    ) -> Completion:
        """
        Send one request; see `Model`.
        """
        body = message_body(
            request,
            model=self._model,
            max_tokens=self._max_tokens,
            effort=self._effort,
            cached=cached,
            without=without,
        )
        return await self._endpoint.post(
            "/v1/messages", body, self._completion, optional=optional_fields(body), timeout_s=timeout_s
        )

    def without_secrets(self, text: str) -> str:
        """
        Take the key out of a text, for an endpoint may give it back.
        """
        return self._endpoint.without_secrets(text)

    async def close(self) -> None:
        """
        Close the connections.
        """
        await self._endpoint.close()

    def _completion(self, response: httpx2.Response) -> Completion:
        message = json_object(response.content)
        completion = completion_of(message, self.without_secrets, _request_id(response))
        if completion is None:
            raise self._endpoint.no_message(response)
        return completion


class _Client(anthropic.DefaultAsyncHttpxClient):
    """
    An HTTP client that sends our headers only, follows no redirect and reads no endless answer.
    """

    def __init__(self, key: str, *, trust_env: bool, is_signed: bool) -> None:
        super().__init__(follow_redirects=False, trust_env=trust_env)
        self._key = key
        self._is_signed = is_signed

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        return await _bounded(await self.open(request, **options), self._key)

    async def open(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """
        Send a request, and leave the body of its response to be read.
        """
        if not self._is_signed:
            keep_ours(request.headers)
            if self._key:
                request.headers["authorization"] = f"Bearer {self._key}"

        options.update(stream=True, follow_redirects=False)
        return await super().send(request, **options)


def keep_ours(headers: httpx2.Headers) -> None:
    """
    Take off all headers that are not needed, and every authorization.
    """
    # ANTHROPIC_CUSTOM_HEADERS is merged in by the SDK, also over the key, and cannot be switched off there.
    for name in [name for name in headers if name.lower() not in _OUR_HEADERS]:
        del headers[name]
    headers["accept-encoding"] = "identity"


async def _bounded(response: httpx2.Response, key: str) -> httpx2.Response:
    """
    Read a response as far as an answer may be long, without the key in its headers.
    """
    try:
        content = await _read_at_most(response, MAX_RESPONSE_BYTES)
    finally:
        await response.aclose()
    headers = [
        (name, value.replace(key, MARK) if key else value)
        for name, value in response.headers.multi_items()
        if name not in ("content-encoding", "content-length", "content-type")
    ]
    # JSON is UTF-8: a charset that the endpoint declares is a codec of Python's, `hex` and `zlib` included.
    kind = response.headers.get("content-type", "no content type").partition(";")[0]
    headers.append(("content-type", kind.replace(key, MARK) if key else kind))
    return httpx2.Response(response.status_code, headers=headers, content=content, request=response.request)


async def _lines(pieces: AsyncIterator[bytes], longest: int) -> AsyncGenerator[bytes | None]:
    line, is_too_long = bytearray(), False
    async for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for part in ended:
            line += part
            yield None if is_too_long or len(line) > longest else bytes(line)
            line, is_too_long = bytearray(), False
        line += rest
        if len(line) > longest:
            line, is_too_long = bytearray(), True
    if line or is_too_long:
        yield None if is_too_long else bytes(line)


async def _read_at_most(response: httpx2.Response, limit: int) -> bytes:
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > limit:
            break
    return _unpacked(bytes(content[:limit]), response.headers.get("content-encoding", ""), limit)


def _unpacked(content: bytes, encoding: str, limit: int) -> bytes:
    """
    Undo a compression that was not asked for, up to a limit; empty where that cannot be done.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return content
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return b""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(content, limit)
    except zlib.error:
        return b""


def _why(error: BaseException) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "it took too long"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    if isinstance(error, httpx2.TransportError):
        return str(error) or "the connection broke off"
    return str(error) or type(error).__name__


def _request_id(response: httpx2.Response) -> str | None:
    return response.headers.get("request-id", "")[:100] or None


def _retry_after_s(headers: httpx2.Headers) -> float | None:
    text = headers.get("retry-after", "")
    try:
        seconds = float(text)
    except ValueError:
        return _seconds_until(text)
    return seconds if seconds >= 0 else None


def _seconds_until(date: str) -> float | None:
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        at = parsedate_to_datetime(date)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
