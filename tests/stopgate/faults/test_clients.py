"""
What other clients of the service's socket can do, and what a hook can be given: the stop beside them is judged by the same service.
"""

from __future__ import annotations

import json
import os
import resource
import select
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from turngate.costing.stamps import new_id
from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.judge.service.server import CONNECTION_LIMIT

from ...judge.service.running import a_hook_request, connect, read_all, read_answer
from ..hook_runner import CLAIM, a_stop, assert_sound
from .service_stage import AMPLE_S, ANSWERED, Stage, a_closed_port, resident_peak_kb, wait_for

MB = 1 << 20
HEALTH = b"GET /healthz HTTP/1.1\r\nhost: turngate\r\n\r\n"
HOOK = b"POST /v1/hook/claude-code HTTP/1.1\r\nhost: turngate\r\n"
JUDGE = b"POST /v1/judge HTTP/1.1\r\nhost: turngate\r\ncontent-type: application/json\r\n"
ALLOWED_KB = 60 * 1024
"""By how much a client may raise the service's memory; its own limits are far below 100 MB."""

Client = Callable[[socket.socket], None]


def never_closes(connection: socket.socket) -> None:
    """
    Ask, read the answer, and stay.
    """
    connection.sendall(HEALTH)
    assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def never_reads(connection: socket.socket) -> None:
    """
    Ask as much as is taken, and read nothing.
    """
    connection.setblocking(False)
    with suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
        while connection.send(HEALTH * 100):
            pass


def says(*parts: bytes) -> Client:
    def client(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)

    return client


CLIENTS = {
    "says-nothing": says(),
    "never-closes": never_closes,
    "never-reads": never_reads,
    "sends-headers-slowly": says(*(HEALTH[i : i + 1] for i in range(20))),
    "sends-one-header-after-another": says(HOOK, *(b"x-%d: 1\r\n" % i for i in range(50))),
    "sends-a-body-slowly": says(HOOK, b"content-length: 1000\r\n\r\n", b"{"),
    "speaks-another-protocol": says(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500),
}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_that_stays(stage: Stage, client: Client) -> None:
    """
    Fifty of them keep no stop waiting.
    """
    with ExitStack() as stack, ScriptedMessagesApi(otherwise=CLAIM) as api:
        for _ in range(50):
            client(stack.enter_context(connect(str(stage.socket))))
        stopped = stage.stop(api, deadline_s=AMPLE_S)
        assert stopped.ran.holds
        stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])


@pytest.fixture(name="port_stage")
def serve_on_a_port(short_path: Path) -> Iterator[Stage]:
    """
    A user whose service listens on a port too.
    """
    stage = Stage(short_path, TURNGATE_SERVICE_HTTP_PORT=a_closed_port().rpartition(":")[2])
    stage.ready()
    yield stage
    stage.end()


def test_strangers_on_the_port_that_are_as_many_as_may_be(port_stage: Stage) -> None:
    """
    Who comes after them to the port is turned away; the hooks on the socket are not.
    """
    too_many = 50
    address = ("127.0.0.1", int(port_stage.hook.environ["TURNGATE_SERVICE_HTTP_PORT"]))
    with descriptors(CONNECTION_LIMIT + 1000), ExitStack() as stack, ScriptedMessagesApi(otherwise=CLAIM) as api:
        poll = select.poll()
        for _ in range(CONNECTION_LIMIT + too_many):
            poll.register(stack.enter_context(socket.create_connection(address)), select.POLLIN)
        wait_for(lambda: len(poll.poll(0)) >= too_many)
        stopped = port_stage.stop(api, deadline_s=AMPLE_S)

        assert stopped.ran.holds
        port_stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])


@contextmanager
def descriptors(number: int) -> Generator[None]:
    """
    Let this process have so many.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != hard < number:
        pytest.skip(f"this process may not open {number} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, number), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_clients_that_hang_up_before_they_are_answered(stage: Stage) -> None:
    """
    What they asked is not judged for nobody: at most those are that were being worked on.
    """
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        for number in range(20):
            variables = {**stage.hook.environ, "TURNGATE_JUDGE_BASE_URL": api.url}
            body = json.dumps(a_stop(session_id=f"gone-{number}")).encode()
            environ = "&".join(f"{name}={value}" for name, value in variables.items() if name != "PATH")
            request = a_hook_request(body, turngate_environ=environ, turngate_decision=new_id(datetime.now(UTC)))
            with connect(str(stage.socket)) as connection:
                connection.sendall(request)
        gone = {f"gone-{number}" for number in range(20)}
        stopped = stage.stop(api, deadline_s=AMPLE_S)
        assert stopped.ran.holds
        stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])
        wait_for(lambda: len(stage.lines(gone)) == 20)
        stage.assert_logged(gone, range(20, 21), "pass_service_error")
        stage.assert_counted(gone)


def chunks(size: int) -> Iterator[bytes]:
    for _ in range(size // MB):
        yield b"%x\r\n" % MB + b" " * MB + b"\r\n"
    yield b"0\r\n\r\n"


def blocks(size: int, block: bytes = b" " * MB) -> Iterator[bytes]:
    for _ in range(size // len(block)):
        yield block


LARGE = {
    "body-of-100-mb": (HOOK + b"content-length: %d\r\n\r\n" % (100 * MB), blocks),
    "body-of-100-mb-in-chunks": (HOOK + b"transfer-encoding: chunked\r\n\r\n", chunks),
    "body-of-100-mb-to-the-judge": (JUDGE + b"content-length: %d\r\n\r\n" % (100 * MB), blocks),
    "body-of-100-mb-in-chunks-to-the-judge": (JUDGE + b"transfer-encoding: chunked\r\n\r\n", chunks),
    "headers-of-100-mb": (HOOK, lambda size: blocks(size, b"x-long: " + b"x" * MB + b"\r\n")),
    "a-request-line-of-100-mb": (b"GET /", lambda size: blocks(size, b"x" * MB)),
    "length-without-end": (HOOK + b"content-length: " + b"9" * 400 + b"\r\n\r\n", blocks),
}


@pytest.mark.parametrize(("head", "rest"), LARGE.values(), ids=LARGE)
def test_a_client_that_sends_too_much(stage: Stage, head: bytes, rest: Callable[[int], Iterator[bytes]]) -> None:
    """
    It gets an answer or is hung up on, and takes little of the service's memory.
    """
    before = resident_peak_kb(stage.pid)
    with connect(str(stage.socket)) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(head)
            for part in rest(100 * MB):
                connection.sendall(part)
        answer = read_all(connection)
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = stage.stop(api, deadline_s=AMPLE_S)

    assert stopped.ran.holds
    assert not answer or read_answer(answer).status in (200, 400, 413)
    assert resident_peak_kb(stage.pid) - before < ALLOWED_KB
    stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])


def test_a_hook_that_is_given_100_mb(stage: Stage) -> None:
    """
    The client that writes them meets no broken pipe, and the turn ends.
    """
    before = resident_peak_kb(stage.pid)
    ran = stage.hook.run(b'{"hook_event_name":"Stop","last_assistant_message":"' + b"x" * 100 * MB + b'"}')

    assert_sound(ran)
    assert ran.out == b""
    assert resident_peak_kb(stage.pid) - before < ALLOWED_KB
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stage.assert_survived(stage.stop(api, deadline_s=AMPLE_S), outcome="block_verdict", tries=[ANSWERED])


def test_a_transcript_that_is_a_pipe(stage: Stage, tmp_path: Path) -> None:
    """
    The service waits for no file that a stop names.
    """
    path = tmp_path / "transcript.jsonl"
    os.mkfifo(path)
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = stage.stop(api, deadline_s=AMPLE_S, transcript_path=str(path))

    assert stopped.ran.holds
    stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])


def test_settings_that_are_a_pipe(stage: Stage, tmp_path: Path) -> None:
    """
    Settings that cannot be read are one clear line, and the turn ends.
    """
    path = tmp_path / "config.toml"
    os.mkfifo(path)
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = stage.stop(api, deadline_s=AMPLE_S, environ={"TURNGATE_CONFIG": str(path)})

    assert stopped.ran.out == b""
    assert b"config.toml" in stopped.ran.err
    stage.assert_survived(stopped, outcome="pass_internal_error")


def test_a_descriptor_limit_that_is_reached(stage: Stage) -> None:
    """
    A service that can accept nobody keeps no hook longer than the deadline, and accepts again later.
    """
    with ScriptedMessagesApi(otherwise=CLAIM) as api, stage.descriptors_left(0):
        stopped = stage.stop(api)

    assert stopped.ran.out == b""
    stage.assert_survived(stopped, outcome="pass_service_error")
    assert not api.requests


@pytest.mark.parametrize("left", [1, 2, 3])
def test_a_descriptor_limit_that_is_reached_by_the_stop_itself(stage: Stage, left: int) -> None:
    """
    A stop that is accepted, and for whose files there are no descriptors left, passes and asks nobody; with one more it is judged once.
    """
    with ScriptedMessagesApi(otherwise=CLAIM) as api, stage.descriptors_left(left):
        stopped = stage.stop(api, deadline_s=AMPLE_S)

    asked = len(api.requests)
    assert asked == (0 if left == 1 else 1)
    assert stopped.ran.holds is (asked == 1)
    outcome = "block_verdict" if asked else "pass_internal_error"
    stage.assert_survived(stopped, outcome=outcome, tries=[ANSWERED] * asked)
