"""
Who may speak to the service: plain ASGI around an app, one for each kind of listener.

A web page can make a browser send requests to loopback. It cannot leave out the `Origin`, nor choose the `Host` that goes with a
name of its own, nor know the token.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from .error_line import ERROR_TYPE, error_line
from .safe_headers import with_safe_headers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

KNOWN: Final = "turngate.known"
"""Set in the scope where the caller is the user, by socket or by token; absent for the bare `GET /healthz` of a stranger."""

_LOOPBACK: Final = rb"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?"
_OUR_HOST: Final = re.compile(_LOOPBACK, re.IGNORECASE)
_OUR_ORIGIN: Final = re.compile(rb"https?://" + _LOOPBACK, re.IGNORECASE)


def on_unix_socket(app: App) -> App:
    """
    Let everybody in who may open the socket's file, but no browser.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if _values(scope, b"origin"):
            await _refuse(send, 403, "no web page may speak to this socket")
            return
        await app({**scope, KNOWN: True}, receive, send)

    return guarded


def on_loopback_port(
    app: App, token: str, pages: App | None = None, is_page: Callable[[str], bool] = lambda _: False
) -> App:
    """
    Let in who knows the token, by a loopback name and from no foreign page; `GET /healthz` needs no token.

    Paths of `is_page` go to `pages`, which ask browsers for a cookie instead. Every answer has the headers of `safe_headers`.

    Raises ValueError for an empty token, which everybody would know.
    """
    if not token:
        raise ValueError("a port needs a token")
    expected = token.encode("utf-8")

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        send = with_safe_headers(send)
        hosts, origins, credentials = (_values(scope, name) for name in (b"host", b"origin", b"authorization"))
        if len(hosts) != 1 or not _OUR_HOST.fullmatch(hosts[0]):
            await _refuse(send, 403, "the Host header must be 127.0.0.1, localhost or [::1], with any port")
        elif not all(_OUR_ORIGIN.fullmatch(origin) for origin in origins):
            await _refuse(send, 403, "no page of another origin may speak to this service")
        elif _knows(expected, credentials):
            chosen = pages if pages is not None and is_page(scope["path"]) else app
            await chosen({**scope, KNOWN: True}, receive, send)
        elif not credentials and pages is not None and is_page(scope["path"]):
            await pages(scope, receive, send)
        elif not credentials and _asks_for_health(scope):
            await app(scope, receive, send)
        else:
            await _refuse(send, 401, "a bearer token is needed, and this is not it", (b"www-authenticate", b"Bearer"))

    return guarded


def _knows(expected: bytes, credentials: list[bytes]) -> bool:
    if len(credentials) != 1:
        return False
    scheme, _, given = credentials[0].partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), expected)


def _asks_for_health(scope: Scope) -> bool:
    return scope["method"] == "GET" and scope["path"] == "/healthz"


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


async def _refuse(send: Send, status: int, text: str, *headers: tuple[bytes, bytes]) -> None:
    body = error_line(text)
    # The body of the request stays unread, so the connection cannot serve another one.
    fields = [(b"content-type", ERROR_TYPE.encode()), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": [*fields, *headers]})
    await send({"type": "http.response.body", "body": body})
