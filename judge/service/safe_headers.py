"""
What every answer of the port says to a browser, whoever wrote the answer: pages, JSON and errors alike.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

_Message = MutableMapping[str, Any]
_Send = Callable[[_Message], Awaitable[None]]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Plotly's own style sheet is part of ours, so no style needs to stand in the page; `data:` is for the picture that it saves."""

SAFE_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


def with_safe_headers(send: _Send) -> _Send:
    """
    Give a `send` that adds them where an answer does not have them already.
    """

    async def sent(message: _Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": completed(message.get("headers", ()))}
        await send(message)

    return sent


def completed(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """
    Give headers with those of them that are missing.
    """
    given = list(headers)
    names = {name.lower() for name, _ in given}
    return [*given, *(pair for pair in SAFE_HEADERS if pair[0] not in names)]
