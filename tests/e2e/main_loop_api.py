"""
A Messages API on loopback that plays a script to each agent of a client, and keeps all that the client sent.

It streams, as the client wants it. An agent is known by its opening: a text that stands in the first message of its
conversation (the prompt; for a subagent, its dispatch prompt).
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from turngate.judge.loopback_server import LoopbackServer

Json = dict[str, Any]


class Received(NamedTuple):
    """
    One request of the client to its model.
    """

    opening: str
    """Of the agent that sent it; empty for a side request."""
    body: Json

    @property
    def messages(self) -> list[tuple[str, str]]:
        """
        Role and text of every message.
        """
        return [(m["role"], _text(m["content"])) for m in self.body["messages"]]

    @property
    def news(self) -> list[tuple[str, str]]:
        """
        Role and text of what came after the agent's own last message.
        """
        roles = [role for role, _ in self.messages]
        return self.messages[len(roles) - roles[::-1].index("assistant") :] if "assistant" in roles else self.messages


Step = str | Json | Sequence[Json]
"""A text, one block, or all blocks of one message."""
Script = Sequence[Step | Callable[[Received], Step]]
"""A function is asked at its turn; it may wait for something first."""


def says(text: str) -> Json:
    """
    A text block.
    """
    return {"type": "text", "text": text}


def uses(tool: str, **arguments: Any) -> Json:
    """
    A tool call.
    """
    return {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": tool, "input": arguments}


class ScriptedMainLoop(LoopbackServer):
    """
    The server, running while its `with` block is open. `unscripted` holds what came after an agent's script was over.
    """

    def __init__(self, scripts: Mapping[str, Script]) -> None:
        super().__init__(_Handler)
        self.received: list[Received] = []
        self.unscripted: list[Received] = []
        self._scripts = {opening: list(script) for opening, script in scripts.items()}
        self._lock = threading.Lock()

    def received_from(self, opening: str) -> list[Received]:
        """
        The requests of one agent, in order.
        """
        return [r for r in self.received if r.opening == opening]

    def answer(self, body: Json) -> list[Json]:
        """
        Record a request and give the blocks of its answer.
        """
        with self._lock:
            received = Received(self._opening(body), body)
            self.received.append(received)
            if not received.opening:
                return [says("{}")]
            script = self._scripts[received.opening]
            if not script:
                self.unscripted.append(received)
                return [says("The script is over.")]
            step = script.pop(0)

        return _blocks(step(received) if callable(step) else step)

    def _opening(self, body: Json) -> str:
        # The client's side requests (titles, summaries) offer no tools.
        if not body.get("tools"):
            return ""
        first = _text(body["messages"][0]["content"])
        return next((opening for opening in self._scripts if opening in first), "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedMainLoop  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        self._send("application/json", b"{}")

    def do_HEAD(self) -> None:
        self._send("application/json", b"")

    def do_POST(self) -> None:
        body: Json = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if self.path.partition("?")[0] == "/v1/messages":
            message = _message(body, self.server.answer(body))
            if body.get("stream"):
                self._send("text/event-stream", b"".join(_events(message)))
            else:
                self._send("application/json", json.dumps(message).encode())
        elif "count_tokens" in self.path:
            self._send("application/json", b'{"input_tokens": 100}')
        else:
            self._send("application/json", b"{}")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """
        Say nothing: the requests are kept.
        """

    def _send(self, content_type: str, body: bytes) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
        # One write: two small ones wait for each other (Nagle's algorithm and delayed ACK, 40 ms).
        self.wfile.write(head.encode() + body)


def _blocks(step: Step) -> list[Json]:
    if isinstance(step, str):
        return [says(step)]
    return [step] if isinstance(step, dict) else list(step)


def _message(body: Json, blocks: list[Json]) -> Json:
    return {
        "id": f"msg_{uuid.uuid4().hex[:20]}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", ""),
        "content": blocks,
        "stop_reason": "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 100,
            "output_tokens": 20,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _events(message: Json) -> Iterator[bytes]:
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            delta: Json = {"type": "text_delta", "text": block["text"]}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        start: Json = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        yield _event("content_block_start", index=index, content_block=start)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=stop, usage={"output_tokens": 20})
    yield _event("message_stop")


def _event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def _text(content: Any) -> str:
    """
    The text of a message's content, tool results included.
    """
    if isinstance(content, str):
        return content
    parts: list[Json] = content or []
    return "\n".join(p["text"] if p["type"] == "text" else _text(p.get("content")) for p in parts)
