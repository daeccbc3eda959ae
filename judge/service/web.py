"""
The web page's routes on the port, as plain ASGI: who may see what, and what may be changed. The guard adds what all answers say.

What the pages show is given to it. Nothing of an address, a form or a session is ever logged here.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from html import escape
from typing import Final, NamedTuple, Protocol
from urllib.parse import parse_qs, quote

from ...costing.dashboard.assets import Asset
from ..bounded_loop import in_thread
from .guard import KNOWN, Message, Receive, Scope, Send
from .web_access import COOKIE_S, WebAccess

FORM_LIMIT: Final = 16 * 1024
FORM_WAIT_S: Final = 5.0
QUERY_LIMIT: Final = 4 * 1024

ASK_FOR_A_TICKET: Final = (
    "run `turngate dashboard` and open the address that it prints: this browser is not known here, or no longer"
)

_HEAD: Final = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><title>turngate</title>'
)
_DECISION: Final = re.compile(r"[0-9a-z]{1,40}")
_PATHS: Final = re.compile(r"/|/enter|/live\.json|/favicon\.ico|/static(?:/.*)?|/turns(?:/.*)?")


class Pages(Protocol):
    """
    What the pages show. All is called in threads, and raises for nothing that a ledger holds.
    """

    def missing(self) -> str:
        """
        Name what is not installed and how to get it; empty where nothing is missing.
        """
        ...

    def overview(self, query: str) -> str:
        """
        Give the first page for the filters in the address.
        """
        ...

    def live(self, query: str) -> str:
        """
        Give what changes of it, as JSON.
        """
        ...

    def turn(self, decision_id: str, form_secret: str) -> str | None:
        """
        Give the page of one decision; None where there is none.
        """
        ...

    def mark(self, decision_id: str, fields: Mapping[str, list[str]]) -> str | None:
        """
        Keep what a person says of a decision; give why it cannot be kept, empty where it is, None where there is no such decision.
        """
        ...

    def asset(self, name: str) -> Asset | None:
        """
        Give a file of the pages.
        """
        ...


class _Refused(Exception):
    def __init__(self, status: int, line: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(line)
        self.status = status
        self.line = line
        self.headers = headers


class _Reply(NamedTuple):
    status: int
    body: bytes
    content_type: bytes = b"text/html; charset=utf-8"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    cache: bytes = b"no-store"


class Web:
    """
    The ASGI app of the pages. `failed` is told of faults of ours.
    """

    def __init__(self, pages: Pages, access: WebAccess, failed: Callable[[BaseException], None]) -> None:
        self._pages: Final = pages
        self._access: Final = access
        self._failed: Final = failed

    def takes(self, path: str) -> bool:
        """
        Say whether a path is one of the pages'.
        """
        return _PATHS.fullmatch(path) is not None

    def entrance(self, port: int) -> str:
        """
        Give an address that lets a browser in once.
        """
        return f"http://127.0.0.1:{port}/enter?ticket={self._access.new_ticket()}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """
        Answer one request whose Host and Origin the guard has seen.
        """
        try:
            reply = await self._replied(scope, receive)
        except _Refused as refused:
            closed = (b"connection", b"close")  # what it sent stays unread
            reply = _Reply(refused.status, _line_page(refused.line), headers=(*refused.headers, closed))
        except (Exception, asyncio.CancelledError) as error:
            with suppress(Exception):
                self._failed(error)
            reply = _Reply(500, _line_page(f"internal error: {type(error).__name__}"))
        await _send(send, reply)

    async def _replied(self, scope: Scope, receive: Receive) -> _Reply:
        path, method = scope["path"], scope["method"]
        query = scope["query_string"].decode("latin-1")
        if len(query) > QUERY_LIMIT:
            raise _Refused(414, "the address is too long")
        if path == "/enter":
            _only(method, "GET")
            return self._let_in(query, scope)
        cookie = self._cookie(scope)
        if path.startswith("/turns/"):
            return await self._turn(path.removeprefix("/turns/"), scope, receive, cookie)
        _only(method, "GET", "HEAD")
        if path == "/":
            await self._check_all_is_here()
            return _Reply(200, (await in_thread(lambda: self._pages.overview(query))).encode())
        if path == "/live.json":
            body = await in_thread(lambda: self._pages.live(query))
            return _Reply(200, body.encode(), b"application/json")
        if path.startswith("/static/"):
            return await self._asset(path.removeprefix("/static/"), scope)
        raise _Refused(404, "no such page")

    def _let_in(self, query: str, scope: Scope) -> _Reply:
        cookie = self._access.cookie_for((parse_qs(query).get("ticket") or [""])[0])
        if not cookie:
            raise _Refused(403, f"this address was used already, or is too old: {ASK_FOR_A_TICKET.partition(':')[0]}")
        name = _cookie_name(scope)
        field = f"{name}={cookie}; Path=/; Max-Age={COOKIE_S}; HttpOnly; SameSite=Strict"
        # No redirect: where a page of another site led here, a browser would not send the cookie with the next request.
        body = '<meta http-equiv="refresh" content="0; url=/"><p><a href="/">turngate</a></p>'
        return _Reply(200, _page(body), headers=((b"set-cookie", field.encode()),))

    async def _turn(self, place: str, scope: Scope, receive: Receive, cookie: str) -> _Reply:
        decision_id, _, action = place.partition("/")
        if not _DECISION.fullmatch(decision_id) or action not in ("", "mark"):
            raise _Refused(404, "no such page")
        if action:
            _only(scope["method"], "POST")
            return await self._mark(decision_id, scope, receive, cookie)
        _only(scope["method"], "GET", "HEAD")
        await self._check_all_is_here()
        secret = self._access.form_secret(cookie) if cookie else ""
        page = await in_thread(lambda: self._pages.turn(decision_id, secret))
        if page is None:
            raise _Refused(404, f"no decision {decision_id}")
        return _Reply(200, page.encode())

    async def _mark(self, decision_id: str, scope: Scope, receive: Receive, cookie: str) -> _Reply:
        _check_own_page(scope)
        fields = await _form(scope, receive)
        if not cookie or not self._access.is_form_of(cookie, (fields.pop("form", None) or [""])[0]):
            raise _Refused(403, "this form is out of date: load the page again")
        problem = await in_thread(lambda: self._pages.mark(decision_id, fields))
        if problem is None:
            raise _Refused(404, f"no decision {decision_id}")
        if problem:
            raise _Refused(409, problem)
        return _Reply(303, b"", headers=((b"location", f"/turns/{quote(decision_id)}".encode()),))

    async def _asset(self, name: str, scope: Scope) -> _Reply:
        asset = await in_thread(lambda: self._pages.asset(name))
        if asset is None:
            raise _Refused(404, "no such file")
        tag = f'"{asset.tag}"'.encode()
        headers = ((b"etag", tag),)
        cache = b"private, max-age=31536000, immutable"  # its address holds the tag
        if tag in _values(scope, b"if-none-match"):
            return _Reply(304, b"", asset.content_type.encode(), headers, cache)
        return _Reply(200, asset.body, asset.content_type.encode(), headers, cache)

    async def _check_all_is_here(self) -> None:
        if line := await in_thread(self._pages.missing):
            raise _Refused(503, line)

    def _cookie(self, scope: Scope) -> str:
        """
        Give the cookie of a known browser; empty for who brought the service's token instead.
        """
        name = _cookie_name(scope)
        for field in _values(scope, b"cookie"):
            for part in field.decode("latin-1").split(";"):
                found, _, value = part.strip().partition("=")
                if found == name and self._access.knows(value):
                    return value
        if KNOWN in scope:
            return ""
        raise _Refused(401, ASK_FOR_A_TICKET)


def _only(method: str, *allowed: str) -> None:
    if method not in allowed:
        raise _Refused(405, "not with this method", (b"allow", ", ".join(allowed).encode()))


def _check_own_page(scope: Scope) -> None:
    """
    Refuse a change that no page of ours asked for: a browser names the page's origin with every POST.
    """
    hosts, origins, sites = (_values(scope, name) for name in (b"host", b"origin", b"sec-fetch-site"))
    if origins != [b"http://" + host for host in hosts] or any(site != b"same-origin" for site in sites):
        raise _Refused(403, "a change can only be asked for by this page itself")


async def _form(scope: Scope, receive: Receive) -> dict[str, list[str]]:
    kinds = [value.partition(b";")[0].strip().lower() for value in _values(scope, b"content-type")]
    if kinds != [b"application/x-www-form-urlencoded"]:
        raise _Refused(415, "not a form")
    body = bytearray()
    try:
        async with asyncio.timeout(FORM_WAIT_S):
            while (message := await receive())["type"] == "http.request":
                body += message.get("body", b"")
                if len(body) > FORM_LIMIT:
                    raise _Refused(413, f"a form of more than {FORM_LIMIT:,} bytes")
                if not message.get("more_body"):
                    break
    except TimeoutError:
        raise _Refused(408, f"the form did not come within {FORM_WAIT_S:g} s") from None
    try:
        return parse_qs(body.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise _Refused(400, "not a form") from None


def _cookie_name(scope: Scope) -> str:
    return f"turngate-{scope['server'][1]}"


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _line_page(line: str) -> bytes:
    return _page(f"<p>{escape(line)}</p>")


def _page(body: str) -> bytes:
    return f"{_HEAD}{body}</html>\n".encode()


async def _send(send: Send, reply: _Reply) -> None:
    headers = [
        (b"content-type", reply.content_type),
        (b"content-length", b"%d" % len(reply.body)),
        (b"cache-control", reply.cache),
        *reply.headers,
    ]
    start: Message = {"type": "http.response.start", "status": reply.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": reply.body})
