"""
A Messages API on loopback that answers from a script: for the demo and the tests, never for real judging.

It is a real HTTP/1.1 server with realistic usage figures, and it can misbehave in every way in which endpoints were
seen to: see the answers below. It does not stream.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple, cast

from .loopback_server import LoopbackServer
from .scripted_batches import PATH, ScriptedBatches

CACHE_FLOOR_TOKENS = 512
CACHE_LIFETIME_S = 300.0

Headers = Mapping[str, str]


class Received(NamedTuple):
    """
    One request as it arrived. Header names are in lower case.
    """

    path: str
    headers: Headers
    body: dict[str, Any]
    method: str = "POST"

    @property
    def system_text(self) -> str:
        """
        The system prompt as one text.
        """
        return _joined_text(self.body.get("system"))

    @property
    def user_text(self) -> str:
        """
        The text of all user messages.
        """
        messages = [m for m in self.body.get("messages", []) if m.get("role") == "user"]
        return "\n".join(_joined_text(m.get("content")) for m in messages)


class Says(NamedTuple):
    """
    A message of status 200 with this text.
    """

    text: str
    stop_reason: str = "end_turn"
    thinking: str = ""
    """Put in front of the text as a block of its own."""
    delay_s: float = 0.0


class Sends(NamedTuple):
    """
    Any other response, byte for byte.
    """

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


class Hangs(NamedTuple):
    """
    No response at all, or its head alone, until the server is closed.
    """

    after_head: bool = False


class Writes(NamedTuple):
    """
    Bytes that need be no HTTP, and then a closed connection.
    """

    data: bytes = b""


class Dribbles(NamedTuple):
    """
    A correct response, one byte at a time, that never ends.
    """

    pause_s: float = 0.02


class Resets(NamedTuple):
    """
    The connection is reset, before the response or in the middle of its body.
    """

    in_body: bool = False


Raw = Sends | Hangs | Writes | Dribbles | Resets
Answer = Says | Raw
Script = Answer | str | Mapping[str, Any] | Callable[[Received], "Answer | str"]
"""A text is said as it is, a mapping as its JSON; a function chooses by what was received."""


def fails(status: int, message: str = "scripted failure", kind: str = "api_error", **more: Any) -> Sends:
    """
    An error response as the vendor writes it. `more` adds to the body; use `._replace(headers=...)` for headers.
    """
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted_error", **more}
    return Sends(status, json.dumps(body).encode())


def redirects(url: str, status: int = 307) -> Sends:
    """
    A redirect to another address.
    """
    return Sends(status, headers=(("location", url),))


HTML = Sends(200, b"<!doctype html><html><body>Sign in to continue</body></html>", content_type="text/html")
EMPTY = Sends(200)
REFUSAL = Says("", stop_reason="refusal")
EXHAUSTED = fails(404, "the script has no answer left", "not_found_error")


class ScriptedMessagesApi(LoopbackServer):
    """
    The server, running while its `with` block is open; `url` is its base URL and `requests` what it received.

    `refused_fields` are dotted names, for example `output_config.format`: a request that has one gets a 400 that names
    it and uses up no answer. A `key` other than the given one gets a 401. `otherwise` answers when the script is used
    up. `batches` are those of the Message Batches API.
    """

    def __init__(
        self,
        answers: Iterable[Script] = (),
        *,
        otherwise: Script = EXHAUSTED,
        refused_fields: Iterable[str] = (),
        key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(_Handler)
        self.requests: list[Received] = []
        self.batches = ScriptedBatches(self)
        self.closed = threading.Event()
        self._answers = deque(answers)
        self._otherwise = otherwise
        self._refused_fields = tuple(refused_fields)
        self._key = key
        self._clock = clock
        self._cached_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        super().__exit__()

    def add(self, *answers: Script) -> None:
        """
        Append answers to the script.
        """
        with self._lock:
            self._answers.extend(answers)

    def respond(self, received: Received) -> Answer:
        """
        Record a request and choose its answer.
        """
        with self._lock:
            self.requests.append(received)
            refusal = self._refusal(received)
            if refusal:
                return refusal
            script = self._answers.popleft() if self._answers else self._otherwise

        if isinstance(script, Mapping):
            return Says(json.dumps(script))
        answer = script(received) if callable(script) else script
        return Says(answer) if isinstance(answer, str) else answer

    def message(self, received: Received, says: Says) -> bytes:
        """
        The response body of a message, with its usage.
        """
        content: list[dict[str, Any]] = []
        if says.thinking:
            content.append({"type": "thinking", "thinking": says.thinking, "signature": "scripted"})
        if says.text:
            content.append({"type": "text", "text": says.text})
        body = {
            "id": f"msg_scripted_{len(self.requests):04}",
            "type": "message",
            "role": "assistant",
            "model": received.body.get("model", ""),
            "content": content,
            "stop_reason": says.stop_reason,
            "stop_sequence": None,
            "usage": self._usage(received, says),
        }
        return json.dumps(body).encode()

    def key_refusal(self, received: Received) -> Sends | None:
        """
        The response to a request without the right key.
        """
        if self._key and self._key not in (_bearer(received.headers), received.headers.get("x-api-key")):
            return fails(401, "invalid x-api-key", "authentication_error")
        return None

    def _refusal(self, received: Received) -> Sends | None:
        if received.path.partition("?")[0] != "/v1/messages":
            return fails(404, f"no such path: {received.path}", "not_found_error")
        refusal = self.key_refusal(received)
        if refusal:
            return refusal
        if received.body.get("stream"):
            return fails(400, "this server does not stream", "invalid_request_error")
        for field in self._refused_fields:
            if _has_field(received.body, field):
                return fails(400, f"{field}: Extra inputs are not permitted", "invalid_request_error")
        return None

    def _usage(self, received: Received, says: Says) -> dict[str, Any]:
        cached, rest = _prompt_parts(received.body)
        written = read = 0
        if _tokens(cached) >= CACHE_FLOOR_TOKENS:
            read = _tokens(cached) if self._seen_lately(cached) else 0
            written = 0 if read else _tokens(cached)
        else:
            rest = cached + rest
        thinking = _tokens(says.thinking)
        return {
            "input_tokens": _tokens(rest),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": thinking + max(1, _tokens(says.text)),
            "output_tokens_details": {"thinking_tokens": thinking},
            "service_tier": "standard",
        }

    def _seen_lately(self, cached: str) -> bool:
        with self._lock:
            now = self._clock()
            seen = now - self._cached_at.get(cached, float("-inf")) < CACHE_LIFETIME_S
            self._cached_at[cached] = now
        return seen


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedMessagesApi  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        api = self.server
        received = self._received()
        if received.path.startswith(PATH) or received.method == "GET":
            self._send(api.batches.respond(received), received)
            return
        answer = api.respond(received)
        if isinstance(answer, Says):
            if answer.delay_s:
                api.closed.wait(answer.delay_s)
            answer = Sends(body=api.message(received, answer), headers=(("request-id", f"req_{len(api.requests):04}"),))
        self._send(answer, received)

    do_GET = do_POST  # noqa: N815 - the name is the base class's

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """
        Say nothing: the requests are recorded.
        """

    def _received(self) -> Received:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        body: Any = json.loads(raw or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Received(
            self.path, headers, cast("dict[str, Any]", body) if isinstance(body, dict) else {}, self.command
        )

    def _send(self, answer: Raw, received: Received) -> None:
        if isinstance(answer, Sends):
            self._write(_head(answer) + answer.body)
        elif isinstance(answer, Hangs):
            if answer.after_head:
                self._write(_head(Sends(body=self.server.message(received, Says('{"findings": []}')))))
            self.server.closed.wait()
            self.close_connection = True
        elif isinstance(answer, Writes):
            self._write(answer.data)
            self.close_connection = True
        elif isinstance(answer, Dribbles):
            self._dribble(answer, received)
        else:
            self._reset(answer, received)

    def _write(self, data: bytes) -> None:
        # Head and body leave in one write: two small ones wait for each other, 40 ms (Nagle's algorithm, delayed ACK).
        self.wfile.write(data)

    def _dribble(self, answer: Dribbles, received: Received) -> None:
        body = self.server.message(received, Says('{"findings": []}')) + b" " * 1_000_000
        self._write(_head(Sends(body=body)))
        for byte in body:
            if self.server.closed.wait(answer.pause_s):
                break
            self._write(bytes([byte]))
        self.close_connection = True

    def _reset(self, answer: Resets, received: Received) -> None:
        if answer.in_body:
            body = self.server.message(received, Says('{"findings": []}'))
            self._write(_head(Sends(body=body)) + body[: len(body) // 2])
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


def _head(answer: Sends) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} scripted",
        f"content-type: {answer.content_type}",
        f"content-length: {len(answer.body)}",
        *(f"{name}: {value}" for name, value in answer.headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _bearer(headers: Headers) -> str:
    return headers.get("authorization", "").removeprefix("Bearer ")


def _joined_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = cast("list[dict[str, Any]]", content or [])
    return "\n".join(block.get("text", "") for block in blocks)


def _has_field(body: Mapping[str, Any], dotted: str) -> bool:
    """
    `cache_control` is looked for inside the system blocks; `system.blocks` is a system prompt that is not a plain text.
    """
    if dotted == "cache_control":
        return _has_cache_control(body)
    if dotted == "system.blocks":
        return isinstance(body.get("system"), list)

    value: Any = body
    for name in dotted.split("."):
        if not isinstance(value, dict) or name not in value:
            return False
        value = cast("dict[str, Any]", value)[name]
    return True


def _has_cache_control(body: Mapping[str, Any]) -> bool:
    system = body.get("system")
    return isinstance(system, list) and any("cache_control" in b for b in cast("list[dict[str, Any]]", system))


def _prompt_parts(body: Mapping[str, Any]) -> tuple[str, str]:
    """
    The text that is cached, and the rest. The schema and the model are part of the cached prefix.
    """
    system = _joined_text(body.get("system"))
    messages = "\n".join(_joined_text(m.get("content")) for m in body.get("messages", []))
    if not _has_cache_control(body):
        return "", system + messages
    return f"{body.get('model')}{json.dumps(body.get('output_config'))}{system}", messages


def _tokens(text: str) -> int:
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4
