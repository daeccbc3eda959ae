"""
The server: uvicorn on sockets that listen already, until there is a reason to end. Owner of uvicorn.

No client can keep it, its end, or another client waiting: each phase of a connection has its limit.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Final

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from .. import bounded_loop
from .app import IS_CONNECTED
from .error_line import ERROR_TYPE, error_line
from .guard import App, Receive, Scope, Send
from .safe_headers import SAFE_HEADERS
from .sockets import BACKLOG, Claim

HEAD_WAIT_S: Final = 5.0
"""For a request's head, from its connection or its first byte on."""

ANSWER_WAIT_S: Final = 10.0
"""For a client to take its answer."""

HEAD_LIMIT: Final = 256 * 1024
"""Bytes of a request's head: the hook's variables stand in it."""

LOOK_S: Final = 5.0
MOST_LOOKS: Final = 3
"""
How often a loop that does not turn is looked at, so many seconds apart, before the process ends itself: it holds the lock and the socket,
and no other service could start.
"""

HUNG: Final = 70
"""The exit code of such an end (`EX_SOFTWARE` of sysexits.h)."""

CONNECTION_LIMIT: Final = 1000
"""On the socket, and as many on the port: strangers there keep no hook out."""

DESCRIPTORS: Final = 8192
"""A stop may have its socket and the ledger's files open at once."""

CUT_AFTER_S: Final = 1.0
"""After the deadline, until requests that still run at the service's end are cut off."""

QUEUE_S: Final = 0.05
"""For taking in those who connected before the end and wait in the socket's queue."""

FIRST_REQUEST_S: Final = 0.5
"""For the request of somebody who connected just before the end."""


class Service:
    """
    One run of the service, from its making to the return of `serve`.

    It ends by SIGTERM or SIGINT, by `stop`, when the socket's file is no longer its own, and after `idle_exit_s` without a request where
    it listens on no port. It then takes no new work at once; requests that run may end, at most `deadline_s` + 1 s later.
    A second signal ends it at once.
    """

    def __init__(
        self,
        claim: Claim,
        *,
        version: str,
        deadline_s: float,
        idle_exit_s: float | None = None,
        on_tick: Callable[[], None] | None = None,
        on_end: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """
        `on_tick` is called about once a second in a thread, never twice at once; `on_end` in the loop, after the last request.
        """
        self.version: Final = version
        self._claim: Final = claim
        self._deadline_s = deadline_s
        self._idle_exit_s = idle_exit_s
        self._on_tick: Final = on_tick
        self._on_end: Final = on_end
        self._tick: asyncio.Future[None] | None = None
        self._running = 0
        self._turns = 0
        """Of the loop, about one a second."""
        self._last_request_at = time.monotonic()
        self._ends = False
        self._signals = 0
        self._is_over = False

    @property
    def is_ending(self) -> bool:
        """
        Whether no new work is taken any more.
        """
        return self._ends

    def let_run(self, deadline_s: float) -> None:
        """
        Give requests that have this deadline the time to end, should the service end first.
        """
        self._deadline_s = max(self._deadline_s, deadline_s)

    def stop(self) -> None:
        """
        End, from any thread: nobody can connect from now on.
        """
        self._ends = True
        self._claim.release()

    def serve(self, app: App, *, port_socket: socket.socket | None = None, port_app: App | None = None) -> None:
        """
        Answer with `app` on the claimed socket, and with `port_app` on a port where there is one, until the service has ended.
        """
        sockets = [self._claim.socket]
        if port_socket is not None:
            sockets.append(port_socket)
            self._idle_exit_s = None
        self._last_request_at = time.monotonic()
        _silence_loggers()
        _raise_descriptor_limit()
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            server = _Server(_config(self._counted(app, port_app or app), self.version), self)
            # Its threads are daemons, and what goes wrong in its callbacks is not told on stderr: a full table of
            # descriptors would be told hundreds of times a second.
            bounded_loop.run(server.serve(sockets=sockets))
        finally:
            self.stop()
            self._is_over = True
            for listening in sockets:
                listening.close()

    def each_second(self) -> None:
        """
        Look whether there is a reason to end, and call `on_tick`.
        """
        self._turns += 1
        if not self._claim.is_ours() or self._is_idle():
            self.stop()
        if self._on_tick is not None and (self._tick is None or self._tick.done()):
            self._tick = asyncio.get_running_loop().run_in_executor(None, self._on_tick)

    def signalled(self) -> None:
        """
        End; at the second signal, without waiting for anybody.
        """
        self._signals += 1
        self.stop()

    async def end(self, server: Server) -> None:
        """
        Take in who waits, tell them, let running requests end, and hang up on everybody else.
        """
        self.stop()
        started_at = time.monotonic()
        await asyncio.sleep(QUEUE_S)
        for listening in server.servers:
            listening.close()

        connections = server.server_state.connections
        _ask_to_close(connections, lambda one: bool(one.cycle))
        while connections and self._signals < 2 and (waited_s := time.monotonic() - started_at) < self._grace_s:
            if waited_s > FIRST_REQUEST_S:
                _ask_to_close(connections, lambda _one: True)
            await asyncio.sleep(0.02)
        for connection in list(connections):
            connection.transport.abort()
        if self._on_end is not None:
            await self._on_end()

    def _watch(self) -> None:
        """
        End the process where the loop hangs for good, as when a thread died for lack of memory while the loop waited for it.
        """
        seen, looks = self._turns, 0
        while not self._is_over:
            time.sleep(LOOK_S)
            looks = looks + 1 if self._turns == seen else 0
            seen = self._turns
            # At its end the loop does not turn, and may take as long as the requests that run.
            patience = MOST_LOOKS + (self._grace_s // LOOK_S if self._ends else 0)
            if looks >= patience and not self._is_over:
                os._exit(HUNG)

    @property
    def _grace_s(self) -> float:
        return self._deadline_s + CUT_AFTER_S

    def _is_idle(self) -> bool:
        if self._idle_exit_s is None or self._running:
            return False
        return time.monotonic() - self._last_request_at >= self._idle_exit_s

    def _counted(self, app: App, port_app: App) -> App:
        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            is_on_port = scope["server"] is not None and scope["server"][1] is not None
            self._running += 1
            try:
                await (port_app if is_on_port else app)(scope, receive, send)
            finally:
                self._running -= 1
                self._last_request_at = time.monotonic()

        return counted


class _Server(Server):
    """
    uvicorn's server with our reasons to end and our way of ending.
    """

    def __init__(self, config: Config, service: Service) -> None:
        super().__init__(config)
        self._service: Final = service
        config.load()
        # uvicorn would set them at its first tick, after the first requests.
        self.server_state.default_headers = config.encoded_headers

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._service.each_second()
        return self._service.is_ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002
        await self._service.end(self)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # uvicorn would raise the signal again at its end, and the caller could not flush anything.
        self._service.signalled()


class _Connection(H11Protocol):
    """
    uvicorn's connection, with limits for those who send slowly or never read.
    """

    _head_due: asyncio.TimerHandle | None = None
    _answer_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self.app_state = {**self.app_state, IS_CONNECTED: lambda: not transport.is_closing()}
        self.family = transport.get_extra_info("socket").family
        if len(self.connections) > CONNECTION_LIMIT and self._are_too_many():
            transport.abort()
        self._head_due = self.loop.call_later(HEAD_WAIT_S, transport.abort)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._head_due = _cancelled(self._head_due)
        elif self._head_due is None:
            self._head_due = self.loop.call_later(HEAD_WAIT_S, self.transport.abort)

    def _are_too_many(self) -> bool:
        return sum(getattr(one, "family", None) == self.family for one in self.connections) > CONNECTION_LIMIT

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._answer_due = self._answer_due or self.loop.call_later(ANSWER_WAIT_S, self._give_up_unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_due = _cancelled(self._head_due)
        self._answer_due = _cancelled(self._answer_due)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        body = error_line(msg)
        headers = [
            *self.server_state.default_headers,
            (b"content-type", ERROR_TYPE.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *SAFE_HEADERS,
        ]
        with suppress(h11.LocalProtocolError):  # an answer was begun already
            response = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _give_up_unread(self) -> None:
        self._answer_due = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def _ask_to_close(connections: set[Any], which: Callable[[H11Protocol], bool]) -> None:
    """
    Close connections without a request at once, and those with one after its answer.
    """
    for connection in list(connections):
        if which(connection) and not connection.transport.is_closing():
            connection.shutdown()


def _config(app: App, version: str) -> Config:
    # All that uvicorn would otherwise read from the environment or say to somebody is given here.
    return Config(
        app,  # pyright: ignore[reportArgumentType]
        http=_Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        workers=1,
        proxy_headers=False,
        forwarded_allow_ips="",
        server_header=False,
        date_header=False,
        headers=[("turngate-version", version)],
        backlog=BACKLOG,
        h11_max_incomplete_event_size=HEAD_LIMIT,
    )


def _silence_loggers() -> None:
    """
    Keep the libraries' warnings from stderr, where Python writes what no handler takes.
    """
    for name in ("uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def _raise_descriptor_limit() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
