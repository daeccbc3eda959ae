"""
What the service answers on its routes; what it does for an answer is given to it. Owner of starlette.

On the hook's route nothing that goes wrong keeps a turn from ending: the answer is then an empty one.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ..bounded_loop import in_thread
from .error_line import ERROR_TYPE, error_line
from .guard import KNOWN, App
from .limits import MAX_BODY_BYTES

HOOK_BODY_LIMIT: Final = 4 * 1024 * 1024 + 64 * 1024
"""A little more than the hook reads of its input."""

BODY_WAIT_S: Final = 5.0
"""A body is sent at once; who does not is not waited for."""

IS_CONNECTED: Final = "is_connected"
"""In the scope's `state`, from the server: a callable that says whether the caller is still there."""

_PLAIN: Final = "/:"  # beside letters, digits and `_.-~`, which `quote` never changes
_ENCODED: Final = re.compile(r"(?:[A-Za-z0-9_.\-/:~]|%[0-9A-Fa-f]{2})*")
_STARTED: Final = re.compile(r"[0-9]{1,15}")
_DECISION: Final = re.compile(r"[0-9a-hjkmnp-tv-z]{15}")
_LONGEST_AGE_S: Final = 3600.0
_DEADLINE: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,9})?")


class RelayedEvent(NamedTuple):
    """
    One event of the client as its hook relayed it; `unset` are the variables that the hook was asked for and that are not set.
    """

    body: bytes
    started_at: float
    """When the hook was started, on `time.monotonic`'s clock, which all processes of a machine share."""
    deadline_s: float
    environ: dict[str, str]
    is_connected: Callable[[], bool]
    unset: frozenset[str] = frozenset()
    decision_id: str = ""
    """By which the hook will log the stop, where it hears nothing."""


class HookReply(NamedTuple):
    """
    What the hook is told: by default, that the turn may end.
    """

    status: int = 200
    stdout: bytes = b""
    notice: str = ""
    needs: tuple[str, ...] = ()
    deadline_s: float | None = None


class Handlers(NamedTuple):
    """
    What stands behind the routes. `is_ending`, `on_other_version`, `refused`, `failed` and `health(False)` run in the event loop and must
    be quick; `health(True)` and `metrics` run in a thread.
    """

    hook: Callable[[RelayedEvent], Awaitable[HookReply]]
    judge: Callable[[bytes, str], Awaitable[tuple[int, bytes]]]
    """From body and content type to status and JSON."""
    health: Callable[[bool], Mapping[str, object]]
    """In full for the user, else what a stranger may know."""
    metrics: Callable[[str], tuple[bytes, str]]
    """From the `Accept` header to body and content type."""
    is_ending: Callable[[], bool]
    on_other_version: Callable[[], None]
    refused: Callable[[str], None]
    """A request to the hook's route was not understood, for this reason."""
    failed: Callable[[BaseException], None]
    entrance: Callable[[], str] | None = None
    """Gives an address that lets a browser in once; None where there is no port."""


class _BadRequest(Exception):
    pass


class _TooLong(Exception):
    pass


class _TooSlow(Exception):
    pass


_FAULTS: Final = (Exception, asyncio.CancelledError)
"""Also work that was cancelled under a handler, or at the service's end: there is an answer all the same, if only for nobody."""


def build_app(handlers: Handlers, version: str, *, hooks: bool) -> App:
    """
    Give the ASGI app of the service; hooks of another version than `version` are told to start another.

    Without `hooks` it has no route for them: a hook's variables say which files are read, and where to send what is in them.
    """
    routes = _Routes(handlers, version)
    hook = Route("/v1/hook/claude-code", routes.hook, methods=["POST"])
    app = Starlette(
        routes=[
            *([hook, Route("/v1/entrance", routes.entrance, methods=["POST"])] if hooks else []),
            Route("/v1/judge", routes.judge, methods=["POST"]),
            Route("/healthz", routes.health, methods=["GET"]),
            Route("/metrics", routes.metrics, methods=["GET"]),
        ],
        exception_handlers={HTTPException: _no_such_route},
    )
    app.router.redirect_slashes = False
    return app


class _Routes:
    def __init__(self, handlers: Handlers, version: str) -> None:
        self._handlers: Final = handlers
        self._version: Final = version

    async def hook(self, request: Request) -> Response:
        try:
            return await self._hook(request)
        except _TooSlow:
            return _error(408, f"the body did not come within {BODY_WAIT_S:g} s")
        except _TooLong:
            return self._let_pass(f"a body of more than {HOOK_BODY_LIMIT} bytes", close=True)
        except _BadRequest as error:
            return self._let_pass(str(error))
        except ClientDisconnect:
            return Response()
        except _FAULTS as error:
            # What the service's end cuts off is written down by the hook that hears nothing of it.
            if not (isinstance(error, asyncio.CancelledError) and self._handlers.is_ending()):
                self._tell(error)
            return Response()

    async def judge(self, request: Request) -> Response:
        try:
            body = await _body(request, MAX_BODY_BYTES)
            if self._handlers.is_ending():
                return _ending()
            status, answer = await self._handlers.judge(body, request.headers.get("content-type", ""))
            return Response(answer, status, media_type="application/json")
        except _TooSlow:
            return _error(408, f"the body did not come within {BODY_WAIT_S:g} s")
        except _TooLong:
            return _error(413, f"the body is longer than {MAX_BODY_BYTES:,} bytes")
        except ClientDisconnect:
            return Response()
        except _FAULTS as error:
            return self._internal_error(error)

    async def health(self, request: Request) -> Response:
        try:
            if self._handlers.is_ending():
                return _ending()
            known = KNOWN in request.scope
            # In full it asks the ledger, which may be locked.
            found = await in_thread(lambda: self._handlers.health(True)) if known else self._handlers.health(False)
            return Response(json.dumps(found) + "\n", media_type="application/json")
        except _FAULTS as error:
            return self._internal_error(error)

    async def entrance(self, _request: Request) -> Response:
        if self._handlers.is_ending():
            return _ending()
        if self._handlers.entrance is None:
            return _error(409, "this service has no port: set service.http_port")
        return Response(json.dumps({"url": self._handlers.entrance()}) + "\n", media_type="application/json")

    async def metrics(self, request: Request) -> Response:
        try:
            accept = request.headers.get("accept", "")
            body, content_type = await in_thread(lambda: self._handlers.metrics(accept))
            return Response(body, headers={"content-type": content_type})
        except _FAULTS as error:
            return self._internal_error(error)

    async def _hook(self, request: Request) -> Response:
        # Read before anything is answered: who still writes may not look for an answer.
        body = await _body(request, HOOK_BODY_LIMIT)
        if self._handlers.is_ending():
            return _ending()
        if _single(request, "turngate-version") != self._version:
            self._handlers.on_other_version()
            return _error(409, f"this service is of version {self._version}")

        reply = await self._handlers.hook(_relayed(request, body))
        return Response(reply.stdout, reply.status, _reply_headers(reply))

    def _let_pass(self, detail: str, *, close: bool = False) -> Response:
        with suppress(Exception):
            self._handlers.refused(detail)
        return Response(headers={"connection": "close"} if close else None)

    def _internal_error(self, error: BaseException) -> Response:
        self._tell(error)
        return _error(500, f"internal error: {type(error).__name__}")

    def _tell(self, error: BaseException) -> None:
        with suppress(Exception):
            self._handlers.failed(error)


async def _body(request: Request, limit: int) -> bytes:
    length = request.headers.get("content-length", "0")
    if len(length) > len(str(limit)) or int(length) > limit:
        raise _TooLong

    body = bytearray()
    try:
        async with asyncio.timeout(BODY_WAIT_S):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise _TooLong
    except TimeoutError:
        raise _TooSlow from None
    return bytes(body)


def _relayed(request: Request, body: bytes) -> RelayedEvent:
    decision_id = _single(request, "turngate-decision")
    if not _DECISION.fullmatch(decision_id):
        raise _BadRequest("turngate-decision: not an id")
    started_at = _started_at(_single(request, "turngate-started-ms"))
    deadline = _single(request, "turngate-deadline-s")
    if not _DEADLINE.fullmatch(deadline) or not 0.1 <= float(deadline) <= 600:
        raise _BadRequest("turngate-deadline-s: not a number from 0.1 to 600")
    environ, unset = _variables(_single(request, "turngate-environ"))
    connected = _is_connected(request)
    return RelayedEvent(body, started_at, float(deadline), environ, connected, unset, decision_id)


def _started_at(milliseconds: str) -> float:
    """
    Read a time of the machine's own clock. One that cannot be is that of another machine or container, and means now.
    """
    if not _STARTED.fullmatch(milliseconds):
        raise _BadRequest("turngate-started-ms: not a whole number of milliseconds")
    now, started_at = time.monotonic(), int(milliseconds) / 1000
    return started_at if 0 <= now - started_at <= _LONGEST_AGE_S else now


def _variables(header: str) -> tuple[dict[str, str], frozenset[str]]:
    environ: dict[str, str] = {}
    unset: set[str] = set()
    for part in header.split("&") if header else ():
        encoded_name, equals, encoded_value = part.partition("=")
        name, value = _decoded(encoded_name), _decoded(encoded_value)
        if not name or name in environ or name in unset:
            raise _BadRequest("turngate-environ: a variable without a name, or twice")
        if equals:
            environ[name] = value
        else:
            unset.add(name)
    return environ, frozenset(unset)


def _decoded(text: str) -> str:
    if not _ENCODED.fullmatch(text):
        raise _BadRequest("turngate-environ: not encoded as %XX")
    return os.fsdecode(unquote_to_bytes(text))


def _single(request: Request, name: str) -> str:
    values = request.headers.getlist(name)
    if len(values) != 1:
        raise _BadRequest(f"{name}: expected once, found {len(values)} times")
    return values[0]


def _is_connected(request: Request) -> Callable[[], bool]:
    return request.scope.get("state", {}).get(IS_CONNECTED) or (lambda: True)


def _reply_headers(reply: HookReply) -> dict[str, str]:
    headers: dict[str, str] = {}
    if reply.stdout:
        headers["content-type"] = "application/json"
    if reply.notice:
        headers["turngate-notice"] = _encoded(reply.notice)
    if reply.needs:
        headers["turngate-needs"] = ",".join(map(_encoded, reply.needs))
    if reply.deadline_s is not None:
        headers["turngate-deadline-s"] = f"{reply.deadline_s:.9g}"
    return headers


def _encoded(text: str) -> str:
    return quote(text.encode("utf-8", "surrogateescape"), safe=_PLAIN)


def _no_such_route(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return _error(
            404,
            "no such route: POST /v1/judge, GET /healthz, GET /metrics, and on the Unix socket POST /v1/hook/claude-code",
        )
    headers = error.headers if isinstance(error, HTTPException) else None
    return _error(status, "not with this method" if status == 405 else "bad request", **(headers or {}))


def _ending() -> Response:
    return _error(503, "the service is ending", connection="close")


def _error(status: int, text: str, **headers: str) -> Response:
    if status in (404, 405, 408, 413):
        # The rest of the body stays unread.
        headers["connection"] = "close"
    return Response(error_line(text), status, headers, media_type=ERROR_TYPE)
