"""
A real service around handlers of a test: in a thread, or as a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turngate.judge.service import server
from turngate.judge.service.app import Handlers, HookReply, RelayedEvent, build_app
from turngate.judge.service.guard import on_loopback_port, on_unix_socket
from turngate.judge.service.server import Service
from turngate.judge.service.sockets import claim, listen_on_port
from turngate.judge.service.web import Web

VERSION = "0.1.0"
DECISION = "01jd0000000000a"
TOKEN = "team-token-0123456789"
PATIENCE_S = 20.0
"""How long a test waits for what must come; nothing is concluded from how long it took."""

Hook = Callable[[RelayedEvent], Awaitable[HookReply]]


class Answer(NamedTuple):
    """
    One HTTP response; the names of its headers are in lower case.
    """

    status: int
    headers: dict[str, str]
    body: bytes


class Running:
    """
    A service, what it was asked, and what it told its owner.
    """

    def __init__(self, path: str, port: int | None, service: Service, hook: Hook | None) -> None:
        self.path = path
        self.port = port
        self.service = service
        self.relayed: list[RelayedEvent] = []
        self.refused: list[str] = []
        self.failed: list[BaseException] = []
        self.judged: list[tuple[bytes, str]] = []
        self.hook_is_running = threading.Event()
        self._hook = hook

    async def hook(self, relayed: RelayedEvent) -> HookReply:
        self.relayed.append(relayed)
        self.hook_is_running.set()
        return await self._hook(relayed) if self._hook else HookReply(stdout=b'{"decision":"block"}')

    async def judge(self, body: bytes, content_type: str) -> tuple[int, bytes]:
        self.judged.append((body, content_type))
        if body == b"break":
            raise RuntimeError("a fault of ours")
        return 200, b'{"outcome":"ok"}\n'

    def health(self, full: bool) -> dict[str, object]:
        return {"status": "ok", "spend": "0.01"} if full else {"status": "ok"}

    def metrics(self, accept: str) -> tuple[bytes, str]:
        return b"x" * 3_000_000 if accept == "big" else b"up 1\n", "text/plain; version=0.0.4"

    def send(self, data: bytes) -> bytes:
        """
        Send bytes on a connection of its own, and give all that comes back until it is closed.
        """
        with self.connected() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            return read_all(connection)

    def connected(self) -> socket.socket:
        return connect(self.path)


def connect(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE_S)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def read_all(connection: socket.socket) -> bytes:
    parts: list[bytes] = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def read_answer(data: bytes) -> Answer:
    """
    Read one HTTP response by hand, whose body has the length that it says.
    """
    head, _, body = data.partition(b"\r\n\r\n")
    status, *fields = head.decode("ascii").split("\r\n")
    headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
    assert status.startswith("HTTP/1.1 "), data[:200]
    assert int(headers["content-length"]) == len(body)
    return Answer(int(status.split()[1]), headers, body)


def read_one(connection: socket.socket) -> Answer:
    """
    Read one response from a connection that stays open.
    """
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0) if end else 1
        if len(body) >= length:
            return read_answer(data)
        part = connection.recv(1 << 16)
        assert part, f"hung up after {data!r}"
        data += part


def a_hook_request(
    body: bytes = b"{}",
    *,
    without: str = "",
    close: bool = True,
    length: int | None = None,
    headers: Mapping[str, str] | None = None,
    **changed: str,
) -> bytes:
    """
    The request of a hook; `changed` are headers, with `_` for `-`.
    """
    fields = {
        "host": "turngate",
        "content-type": "application/json",
        "content-length": str(len(body) if length is None else length),
        "turngate-version": VERSION,
        "turngate-decision": DECISION,
        "turngate-started-ms": str(int(time.monotonic() * 1000) - 23),
        "turngate-deadline-s": "8",
        "turngate-environ": "HOME=/home/u",
        **{name.replace("_", "-"): value for name, value in changed.items()},
        **(headers or {}),
    }
    fields.pop(without, None)
    if close:
        fields["connection"] = "close"
    lines = ["POST /v1/hook/claude-code HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@contextlib.contextmanager
def running(
    folder: Path,
    hook: Hook | None = None,
    *,
    port: bool = False,
    untold: Any = None,
    deadline_s: float = 2.0,
    web: Web | None = None,
    entrance: Callable[[], str] | None = None,
    **options: Any,
) -> Generator[Running]:
    """
    Run a service in a thread until the block ends, and then expect its end; `untold` replaces what keeps refusals and failures.
    """
    held = claim(str(folder))
    listening = listen_on_port(0) if port else None
    service = Service(held, version=VERSION, deadline_s=deadline_s, **options)
    run = Running(held.path, listening.getsockname()[1] if listening else None, service, hook)
    handlers = Handlers(
        run.hook,
        run.judge,
        run.health,
        run.metrics,
        is_ending=lambda: service.is_ending,
        on_other_version=service.stop,
        refused=(untold or run.refused).append,
        failed=(untold or run.failed).append,
        entrance=entrance,
    )
    app = build_app(handlers, VERSION, hooks=True)
    thread = threading.Thread(
        target=service.serve,
        args=(on_unix_socket(app),),
        kwargs={
            "port_socket": listening,
            "port_app": on_loopback_port(
                build_app(handlers, VERSION, hooks=False), TOKEN, web, web.takes if web else _no_page
            ),
        },
        daemon=True,
    )
    thread.start()
    try:
        yield run
    finally:
        service.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "the service did not end"


def _no_page(_path: str) -> bool:
    return False


class Process:
    """
    A service in a process of its own, started as `python -I this_file FOLDER ...`.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-I", __file__, str(folder), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def line(self) -> bytes:
        assert self.popen.stdout
        assert select.select([self.popen.stdout], [], [], PATIENCE_S)[0], "nothing was said"
        return self.popen.stdout.readline()

    def ended(self) -> tuple[int, bytes]:
        """
        Wait for the end, and give the exit code and what was written to stderr.
        """
        _, err = self.popen.communicate(timeout=PATIENCE_S)
        return self.popen.returncode, err


@contextlib.contextmanager
def a_process(folder: Path, *arguments: str) -> Generator[Process]:
    """
    Run a service as a process until the block ends; it listens when the block begins.
    """
    process = Process(folder, *arguments)
    try:
        assert process.line() == b"listens\n"
        yield process
    finally:
        process.popen.kill()
        process.popen.communicate()


def _main(folder: str, *arguments: str) -> None:
    """
    Serve until the end; a hook whose body is a number is answered after so many seconds, or not before the end.
    """
    held = claim(folder)
    if "limit" in arguments:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    if "impatient" in arguments:
        server.LOOK_S = 0.5  # pyright: ignore[reportConstantRedefinition]

    async def hook(relayed: RelayedEvent) -> HookReply:
        print("asked", flush=True)
        if relayed.body == b"hang":
            time.sleep(3600)  # in the loop, as no handler of ours does
        with contextlib.suppress(ValueError):
            await asyncio.sleep(float(relayed.body))
        return HookReply(stdout=b'{"pid":%d}' % os.getpid())

    async def judge(_body: bytes, _content_type: str) -> tuple[int, bytes]:
        return 200, b"{}\n"

    service = Service(held, version=VERSION, deadline_s=600.0)
    handlers = Handlers(
        hook,
        judge,
        lambda _full: {},
        lambda _accept: (b"", "text/plain"),
        is_ending=lambda: service.is_ending,
        on_other_version=service.stop,
        refused=lambda _line: None,
        failed=lambda _error: None,
    )
    print("listens", flush=True)
    service.serve(on_unix_socket(build_app(handlers, VERSION, hooks=True)))
    print("flushed", flush=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
