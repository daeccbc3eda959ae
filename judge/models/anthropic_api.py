"""
The Messages API through its SDK; the only file that imports it.

Nothing of the process's own environment reaches the endpoint: address, key and headers are given here. Every answer is
read here too, because the SDK's own reading loses the usage of answers that it does not like.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable, Mapping
from typing import Any, cast

import anthropic
import httpx2

from ...rubric.masking import MARK, mask
from ...rubric.render import Request
from ..errors import PASSING_STATUSES, FieldsRefused, JudgeError, ModelUnavailable, NoMessage
from ..loopback import is_loopback
from .base import Completion

MAX_RESPONSE_BYTES = 1_000_000
"""A thousand times a verdict; what is longer is cut off, and then is no message."""

MAX_DETAIL_CHARS = 200

SHORTEST_SECRET = 8
"""In characters; what is shorter is no key that anybody keeps secret."""

MAX_USAGE_CHARS = 10_000

FORMAT, EFFORT, THINKING, CACHE = "output_config.format", "output_config.effort", "thinking", "cache_control"
"""The fields that a judgement can do without: the rubric's text asks for JSON too."""

THINKING_BY_MODEL = {
    "claude-sonnet-5-5": {"type": "between_tools"},
    "claude-opus-5-5": {"type": "between_tools"},
    "claude-fable-5-2": {"type": "between_tools"},
    "claude-haiku-5-5": {"type": "disabled"},
}
"""How each model is told not to think before its answer; the others do not unless asked, or are not known."""

_OUR_HEADERS = frozenset(
    (
        *("host", "accept", "connection", "user-agent", "content-type", "content-length"),
        *("authorization", "anthropic-version"),
    )
)

for _name in ("anthropic", "httpx2"):
    # ANTHROPIC_LOG=debug makes the SDK write requests to stderr, which belongs to the hook.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class AnthropicModel:
    """
    A model behind an endpoint that speaks the Messages API.

    Raises ModelUnavailable where a proxy or a certificate named in the environment cannot be used.
    """

    def __init__(self, model: str, *, base_url: str, key: str, max_tokens: int, effort: str) -> None:
        self._model = model
        self._max_tokens = max_tokens
        self._effort = effort
        self._key = key
        try:
            self._client = anthropic.AsyncAnthropic(
                api_key=key,
                base_url=base_url,
                max_retries=0,
                open_telemetry=False,
                # Proxies and certificates of the environment are for the world outside.
                http_client=_Client(key, trust_env=not is_loopback(base_url)),
            )
        except (anthropic.AnthropicError, httpx2.InvalidURL, ImportError, OSError, TypeError, ValueError) as exc:
            raise ModelUnavailable(self._line(f"no client could be made: {_why(exc)}")) from exc

    async def complete(
        self, request: Request, *, cached: bool, without: frozenset[str], timeout_s: float
    ) -> Completion:
        """
        Send one request; see `Model`.
        """
        body = self._body(request, cached=cached, without=without)
        try:
            response = await self._client.post(
                "/v1/messages", cast_to=httpx2.Response, body=body, options={"timeout": timeout_s}
            )
            return self._completion(response)
        except JudgeError:
            raise
        except anthropic.APIStatusError as exc:
            raise self._from_status(exc, _optional_fields(body)) from exc
        except (anthropic.APITimeoutError, anthropic.APIConnectionError) as exc:
            raise self._no_connection(exc) from exc
        except Exception as exc:  # the SDK's own code, and what an endpoint makes it do
            raise ModelUnavailable(self._line(f"no answer that can be read: {_why(exc)}")) from exc

    def without_secrets(self, text: str) -> str:
        """
        Take the key out of a text, for an endpoint may give it back.
        """
        # Local endpoints are given words for a key: those would take every other word with them.
        return text.replace(self._key, MARK) if len(self._key) >= SHORTEST_SECRET else text

    async def close(self) -> None:
        """
        Close the connections.
        """
        await self._client.close()

    def _body(self, request: Request, *, cached: bool, without: frozenset[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": self._max_tokens,
            "system": _sendable(request.system),
            "messages": [{"role": "user", "content": _sendable(request.user)}],
        }
        output: dict[str, Any] = {}
        if EFFORT not in without:
            output["effort"] = self._effort
        if FORMAT not in without:
            output["format"] = {"type": "json_schema", "schema": request.schema}
        if output:
            body["output_config"] = output

        thinking = next((shape for name, shape in THINKING_BY_MODEL.items() if name in self._model), None)
        if thinking and THINKING not in without:
            body["thinking"] = thinking
        if cached and CACHE not in without:
            body["system"] = [{"type": "text", "text": body["system"], "cache_control": {"type": "ephemeral"}}]
        return body

    def _completion(self, response: httpx2.Response) -> Completion:
        message = _json_object(response.content)
        content, stop_reason = message.get("content"), message.get("stop_reason")
        if content is None and stop_reason == "refusal":
            content = []
        if not isinstance(content, list):
            kind = response.headers.get("content-type", "no content type")
            raise NoMessage(
                self._line(f"status {response.status_code} without a message ({kind}, {len(response.content)} bytes)"),
                status=response.status_code,
                request_id=_request_id(response),
                raw_usage=_raw_usage(message, self.without_secrets),
            )

        model = message.get("model")
        return Completion(
            text=self.without_secrets(_text(cast("list[object]", content))),
            stop_reason=stop_reason if isinstance(stop_reason, str) else "",
            model_answered=self.without_secrets(model)[:100] if isinstance(model, str) else "",
            raw_usage=_raw_usage(message, self.without_secrets),
            request_id=_request_id(response),
        )

    def _from_status(self, error: anthropic.APIStatusError, sent: frozenset[str]) -> JudgeError:
        body = _json_object(error.response.content)
        message = _error_message(body)
        facts: dict[str, Any] = {
            "status": error.status_code,
            "request_id": _request_id(error.response),
            "raw_usage": _raw_usage(body, self.without_secrets),
        }
        detail = self._line(f"status {error.status_code}: {message or error.response.reason_phrase}")

        fields = _refused_fields(error.status_code, message, sent)
        if fields:
            refused = FieldsRefused(detail, **facts)
            refused.fields = fields
            return refused

        unavailable = ModelUnavailable(detail, **facts)
        unavailable.retryable = error.status_code in PASSING_STATUSES or error.status_code >= 500
        unavailable.retry_after_s = _retry_after_s(error.response.headers)
        return unavailable

    def _no_connection(self, error: Exception) -> ModelUnavailable:
        cause = error.__cause__ or error
        unavailable = ModelUnavailable(self._line(f"no connection: {_why(cause)}"))
        unavailable.retryable = True
        return unavailable

    def _line(self, text: str) -> str:
        # Endpoints repeat keys in their messages, whatever a key may look like.
        line = " ".join(mask(text.replace(self._key, "[key]")).split())
        return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1] + "…"


class _Client(anthropic.DefaultAsyncHttpxClient):
    """
    An HTTP client that sends our headers only, follows no redirect and reads no endless answer.
    """

    def __init__(self, key: str, *, trust_env: bool) -> None:
        super().__init__(follow_redirects=False, trust_env=trust_env)
        self._authorization = f"Bearer {key}"
        self._key = key

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        # ANTHROPIC_CUSTOM_HEADERS is merged in by the SDK, also over the key, and cannot be switched off there.
        for name in [name for name in request.headers if name.lower() not in _OUR_HEADERS]:
            del request.headers[name]
        request.headers["authorization"] = self._authorization
        request.headers["accept-encoding"] = "identity"

        options.update(stream=True, follow_redirects=False)
        response = await super().send(request, **options)
        try:
            content = await _read_at_most(response, MAX_RESPONSE_BYTES)
        finally:
            await response.aclose()
        headers = [
            (name, value.replace(self._key, MARK))
            for name, value in response.headers.multi_items()
            if name not in ("content-encoding", "content-length", "content-type")
        ]
        # JSON is UTF-8: a charset that the endpoint declares is a codec of Python's, `hex` and `zlib` included.
        kind = response.headers.get("content-type", "no content type").partition(";")[0]
        headers.append(("content-type", kind.replace(self._key, MARK)))
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


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


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _json_object(content: bytes) -> dict[str, Any]:
    try:
        found: object = json.loads(content.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _part(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = body.get(name)
    return cast("dict[str, Any]", part) if isinstance(part, dict) else {}


def _text(content: list[object]) -> str:
    blocks = [cast("dict[str, object]", block) for block in content if isinstance(block, dict)]
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _raw_usage(body: Mapping[str, Any], clean: Callable[[str], str]) -> dict[str, object] | None:
    usage = _part(body, "usage") or _part(_part(body, "error"), "usage")
    if not usage:
        return None
    try:
        # It goes into the ledger as it is; an endpoint must not fill the disk with it.
        if len(json.dumps(usage)) < MAX_USAGE_CHARS:
            return cast("dict[str, object]", _cleaned(usage, clean))
    except (RecursionError, ValueError):
        pass
    return _counts(usage)


def _counts(usage: Mapping[str, object]) -> dict[str, object]:
    """
    Keep of a usage the counts that are priced.
    """
    kept: dict[str, object] = {}
    for name in _PRICED:
        value = usage.get(name)
        if isinstance(value, dict):
            parts = cast("dict[str, object]", value)
            kept[name] = {part: parts[part] for part in _PRICED_PARTS if isinstance(parts.get(part), int)}
        elif isinstance(value, int):
            kept[name] = value
    return kept


_PRICED = (
    *("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    *("cache_creation", "output_tokens_details"),
)
_PRICED_PARTS = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "thinking_tokens")


def _cleaned(value: object, clean: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item, clean) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {clean(name): _cleaned(item, clean) for name, item in cast("dict[str, object]", value).items()}
    return value


def _request_id(response: httpx2.Response) -> str | None:
    return response.headers.get("request-id", "")[:100] or None


def _error_message(body: Mapping[str, Any]) -> str:
    # `error.message` as the vendor writes it; gateways also know `message`, `detail` and a plain `error`.
    candidates = (_part(body, "error").get("message"), body.get("message"), body.get("detail"), body.get("error"))
    found = next((c for c in candidates if c), "")
    try:
        return found if isinstance(found, str) else json.dumps(found)
    except (RecursionError, ValueError):
        return ""


def _optional_fields(body: Mapping[str, Any]) -> frozenset[str]:
    output = _part(body, "output_config")
    present = {
        FORMAT: "format" in output,
        EFFORT: "effort" in output,
        THINKING: "thinking" in body,
        CACHE: isinstance(body["system"], list),
    }
    return frozenset(field for field, sent in present.items() if sent)


def _refused_fields(status: int, message: str, sent: frozenset[str]) -> frozenset[str]:
    """
    Read out of a 400 which of the fields sent are not taken: those it names, else all.
    """
    text = message.lower()
    if status not in (400, 422) or any(words in text for words in _NOT_ABOUT_FIELDS):
        return frozenset()

    named = {field for field, words in _FIELD_WORDS.items() if any(word in text for word in words)}
    if "output_config" in text and not named & {FORMAT, EFFORT}:
        named |= {FORMAT, EFFORT}
    return frozenset(named & sent) or sent


_NOT_ABOUT_FIELDS = ("credit balance", "billing", "too long", "context window", "context length", "maximum context")

_FIELD_WORDS = {
    FORMAT: ("output_config.format", "output_format", "json_schema", "schema", "structured output"),
    EFFORT: ("effort",),
    THINKING: ("thinking", "between_tools"),
    CACHE: ("cache_control", "system"),
}


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
