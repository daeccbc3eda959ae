"""
The service runs until there is a reason to end, ends without breaking anything off, and no client can keep it.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import signal
import socket
import threading
from pathlib import Path

import pytest

from turngate.judge import bounded_loop
from turngate.judge.service import server
from turngate.judge.service.app import HookReply, RelayedEvent
from turngate.judge.service.server import Service
from turngate.judge.service.sockets import SOCKET_NAME, claim, listen_on_port

from .running import PATIENCE_S, VERSION, a_hook_request, a_process, connect, read_all, read_answer, read_one, running

SCRAPE = b"GET /metrics HTTP/1.1\r\nhost: t\r\n"


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    return tmp_path / "state"


class Gate:
    """
    A hook handler that answers when it is opened.
    """

    def __init__(self) -> None:
        self.opened = threading.Event()

    async def __call__(self, _relayed: RelayedEvent) -> HookReply:
        while not self.opened.is_set():
            await asyncio.sleep(0.005)
        return HookReply(stdout=b"{}")


def is_hung_up(connection: socket.socket) -> bool:
    """
    Wait until the other side has closed, without reading a byte.
    """
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(PATIENCE_S * 1000))


# Starting


def test_who_connects_before_the_server_runs_is_answered_in_full(folder: Path) -> None:
    """
    The first hooks wait in the socket's queue; their answers are like all others.
    """
    with a_process(folder) as process, connect(str(folder / SOCKET_NAME)) as connection:
        connection.sendall(a_hook_request(b"0"))
        answer = read_answer(read_all(connection))

        assert answer.headers["turngate-version"] == VERSION
        assert answer.body == b'{"pid":%d}' % process.popen.pid


def test_the_environment_of_the_service_decides_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Variables that are meant for other servers neither stop nor change this one.
    """
    monkeypatch.setenv("WEB_CONCURRENCY", "many")
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")

    with running(folder) as run:
        assert read_answer(run.send(a_hook_request())).status == 200


def test_one_connection_carries_many_requests(folder: Path) -> None:
    """
    Connections are kept alive where the client does not close them.
    """
    with running(folder) as run, run.connected() as connection:
        for _ in range(3):
            connection.sendall(a_hook_request(close=False))
            assert read_one(connection).body == b'{"decision":"block"}'


# Reasons to end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
def test_a_signal_lets_running_requests_end_and_returns(folder: Path, number: signal.Signals) -> None:
    """
    A running request is answered, nobody can connect any more, and then the owner can flush.
    """
    path = str(folder / SOCKET_NAME)
    with a_process(folder) as process, connect(path) as connection:
        connection.sendall(a_hook_request(b"0.5"))
        assert process.line() == b"asked\n"
        process.popen.send_signal(number)

        assert read_answer(read_all(connection)).body == b'{"pid":%d}' % process.popen.pid
        assert process.line() == b"flushed\n"
        assert process.ended() == (0, b"")
        with pytest.raises(FileNotFoundError):
            connect(path)


def test_a_second_signal_ends_at_once(folder: Path) -> None:
    """
    Who insists is not kept waiting by a running request.
    """
    with a_process(folder) as process, connect(str(folder / SOCKET_NAME)) as connection:
        connection.sendall(a_hook_request(b"600"))
        assert process.line() == b"asked\n"
        process.popen.send_signal(signal.SIGTERM)
        while (folder / SOCKET_NAME).exists():
            pass
        process.popen.send_signal(signal.SIGTERM)

        assert process.line() == b"flushed\n"
        assert process.ended() == (0, b"")
        assert b"pid" not in read_all(connection)


def test_what_clients_do_wrong_is_not_written_to_stderr(folder: Path) -> None:
    """
    Libraries warn on stderr where nobody configured logging: not here.
    """
    path = str(folder / SOCKET_NAME)
    with a_process(folder) as process:
        for wrong in (b"garbage\r\n\r\n", SCRAPE + b"upgrade: websocket\r\nconnection: upgrade, close\r\n\r\n"):
            with connect(path) as connection:
                connection.sendall(wrong)
                assert read_answer(read_all(connection))
        process.popen.send_signal(signal.SIGTERM)

        assert process.line() == b"flushed\n"
        assert process.ended() == (0, b"")


def test_a_removed_state_directory_ends_the_service(folder: Path) -> None:
    """
    A service that nobody can reach any more ends, with nothing said.
    """
    with a_process(folder) as process:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

        assert process.line() == b"flushed\n"
        assert process.ended() == (0, b"")


def test_an_idle_service_ends(folder: Path) -> None:
    """
    Without a request for the time that is set, it ends by itself.
    """
    held = claim(str(folder))

    Service(held, version=VERSION, deadline_s=1.0, idle_exit_s=0.01).serve(unused)

    assert not (folder / SOCKET_NAME).exists()


async def unused(*_: object) -> None:
    raise AssertionError("nobody asks")


def test_a_running_request_is_not_idle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    However long a request takes, the service is there until its end, and idle only then.
    """
    gate, ticks = Gate(), Ticks(2)
    with running(folder, gate, idle_exit_s=600.0, on_tick=ticks) as run, run.connected() as connection:
        connection.sendall(a_hook_request())
        assert run.hook_is_running.wait(PATIENCE_S)
        monkeypatch.setattr(run.service, "_idle_exit_s", 0.0)
        assert ticks.enough.wait(PATIENCE_S)

        assert not run.service.is_ending
        gate.opened.set()
        assert read_answer(read_all(connection)).body == b"{}"
        while not run.service.is_ending:
            pass


def test_a_service_with_a_port_never_ends_idle(folder: Path) -> None:
    """
    Others count on a port, however rarely they ask.
    """
    ticks = Ticks(2)
    with running(folder, port=True, idle_exit_s=0.0, on_tick=ticks) as run:
        assert ticks.enough.wait(PATIENCE_S)
        assert not run.service.is_ending


class Ticks:
    """
    Counts its calls, and fails in each.
    """

    def __init__(self, wanted: int) -> None:
        self.enough = threading.Event()
        self._left = wanted

    def __call__(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self.enough.set()
        raise RuntimeError("a fault of the tick")


def test_the_tick_goes_on_whatever_it_raises(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """
    It is called again and again, and its faults neither end the service nor reach stderr.
    """
    ticks = Ticks(2)
    with running(folder, on_tick=ticks) as run:
        assert ticks.enough.wait(PATIENCE_S)
        assert read_answer(run.send(a_hook_request())).status == 200

    assert capfd.readouterr() == ("", "")


def test_a_tick_that_hangs_is_not_joined_by_another(folder: Path) -> None:
    """
    Work that waits for a locked ledger is not piled up.
    """
    may_end = threading.Event()
    calls: list[int] = []

    def tick() -> None:
        calls.append(1)
        may_end.wait(PATIENCE_S)

    async def two_seconds() -> None:
        service.each_second()
        service.each_second()
        may_end.set()

    held = claim(str(folder))
    service = Service(held, version=VERSION, deadline_s=1.0, on_tick=tick)
    bounded_loop.run(two_seconds())
    held.release()
    held.socket.close()

    assert calls == [1]


# Ending


def test_a_stopped_service_does_not_start(folder: Path) -> None:
    """
    A stop that comes before the server runs is not lost, and the socket and the port are closed.
    """
    held, port = claim(str(folder)), listen_on_port(0)
    service = Service(held, version=VERSION, deadline_s=1.0)
    service.stop()

    service.serve(unused, port_socket=port, port_app=unused)

    assert held.socket.fileno() == port.fileno() == -1


def test_who_waits_in_the_queue_at_the_end_is_told(folder: Path) -> None:
    """
    Who connected just before the end is answered 503 and starts another service; nobody is hung up on without a word.
    """
    with running(folder) as run:
        waiting = [run.connected() for _ in range(20)]
        run.service.stop()
        for connection in waiting:
            connection.sendall(a_hook_request(b"x" * 100_000))
        answers = [read_answer(read_all(connection)) for connection in waiting]
        for connection in waiting:
            connection.close()

    assert [answer.status for answer in answers] == [503] * 20
    assert run.relayed == []


def test_no_silent_client_delays_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Kept-alive connections, half a head, and connections without a byte are closed long before the deadline.
    """
    monkeypatch.setattr(server, "FIRST_REQUEST_S", 0.05)
    monkeypatch.setattr(server, "HEAD_WAIT_S", 600.0)
    with running(folder, deadline_s=600.0) as run:
        silent, half, kept = run.connected(), run.connected(), run.connected()
        half.sendall(a_hook_request()[:40])
        kept.sendall(a_hook_request(close=False))
        assert read_one(kept).status == 200
        run.service.stop()

        for connection in (silent, half, kept):
            assert read_all(connection) == b""
            connection.close()


def test_a_request_that_does_not_end_is_cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The end waits for the deadline and a little more, and then for nobody.
    """
    monkeypatch.setattr(server, "CUT_AFTER_S", 0.1)
    with running(folder, Gate(), deadline_s=0.1) as run, run.connected() as connection:
        connection.sendall(a_hook_request())
        assert run.hook_is_running.wait(PATIENCE_S)
        run.service.stop()

        assert read_all(connection) == b""


def test_a_worker_thread_that_hangs_does_not_keep_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Work that never returns, such as a name lookup, is left behind.
    """
    monkeypatch.setattr(server, "CUT_AFTER_S", 0.1)
    never = threading.Event()

    async def hook(_relayed: RelayedEvent) -> HookReply:
        await asyncio.get_running_loop().run_in_executor(None, never.wait)
        return HookReply()

    with running(folder, hook, deadline_s=0.1) as run, run.connected() as connection:
        connection.sendall(a_hook_request())
        assert run.hook_is_running.wait(PATIENCE_S)
    never.set()


# Clients that would keep it


def test_a_loop_that_hangs_for_good_ends_the_process(folder: Path) -> None:
    """
    It would keep the lock and the socket, and each stop would wait for it in vain: another service can start.
    """
    with a_process(folder, "impatient") as process, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(folder / SOCKET_NAME))
        client.sendall(a_hook_request(b"hang"))

        assert process.ended() == (server.HUNG, b"")

    with a_process(folder):
        pass


@pytest.mark.parametrize(
    ("before", "sent"),
    [
        pytest.param(False, b"", id="nothing"),
        pytest.param(False, b"P", id="one-byte"),
        pytest.param(False, a_hook_request()[:60], id="half-a-head"),
        pytest.param(True, b"P", id="one-byte-after-a-request"),
        pytest.param(True, a_hook_request()[:60], id="half-a-head-after-a-request"),
    ],
)
def test_a_head_that_does_not_come_is_hung_up_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: bool, sent: bytes
) -> None:
    """
    Whoever sends slowly, also on a connection that was used, is not waited for.
    """
    monkeypatch.setattr(server, "HEAD_WAIT_S", 0.2)
    with running(folder) as run, run.connected() as connection:
        if before:
            connection.sendall(a_hook_request(close=False))
            assert read_one(connection).status == 200
        connection.sendall(sent)

        assert read_all(connection) == b""
        assert read_answer(run.send(a_hook_request())).status == 200


def test_one_byte_at_a_time_wins_no_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The limit counts from the connection, not from the last byte.
    """
    monkeypatch.setattr(server, "HEAD_WAIT_S", 0.2)
    with running(folder) as run, run.connected() as connection:
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        while not poll.poll(10):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(b"x")

        assert run.relayed == []


def test_a_request_that_takes_longer_than_a_head_may_is_answered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The head's limit ends with the head.
    """
    monkeypatch.setattr(server, "HEAD_WAIT_S", 0.1)

    async def hook(_relayed: RelayedEvent) -> HookReply:
        await asyncio.sleep(0.3)
        return HookReply(stdout=b"{}")

    with running(folder, hook) as run:
        assert read_answer(run.send(a_hook_request())).body == b"{}"


@pytest.mark.parametrize("close", [b"connection: close\r\n\r\n", b"\r\n"], ids=["close", "kept-alive"])
def test_an_answer_that_nobody_takes_is_dropped(folder: Path, monkeypatch: pytest.MonkeyPatch, close: bytes) -> None:
    """
    Who asks and does not read is hung up on.
    """
    monkeypatch.setattr(server, "ANSWER_WAIT_S", 0.2)
    with running(folder) as run, run.connected() as connection:
        connection.sendall(SCRAPE + b"accept: big\r\n" + close)

        assert is_hung_up(connection)
        assert len(read_all(connection)) < 3_000_000


def test_an_answer_that_is_taken_arrives_whole(folder: Path) -> None:
    """
    The limit for taking an answer does not cut one that is being read.
    """
    with running(folder) as run:
        answer = read_answer(run.send(SCRAPE + b"accept: big\r\nconnection: close\r\n\r\n"))

        assert answer.body == b"x" * 3_000_000


def test_too_many_connections_are_hung_up_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Above the limit a connection is closed, and below it all are served again.
    """
    monkeypatch.setattr(server, "CONNECTION_LIMIT", 3)
    with running(folder) as run:
        held = [run.connected() for _ in range(3)]
        for connection in held:
            connection.sendall(a_hook_request(close=False))
            assert read_one(connection).status == 200

        assert run.send(a_hook_request()) == b""

        for connection in held:
            connection.close()
        while not (answer := run.send(a_hook_request())):
            pass
        assert read_answer(answer).status == 200


def test_a_full_table_of_descriptors_is_survived(folder: Path) -> None:
    """
    At the limit of descriptors the service goes on, writes nothing to stderr, and serves who waits once some are free.
    """
    path = str(folder / SOCKET_NAME)
    with a_process(folder, "limit") as process:
        crowd = [connect(path) for _ in range(100)]
        waiting = connect(path)
        waiting.sendall(a_hook_request(b"0"))
        assert not select.select([waiting], [], [], 0.3)[0]
        for connection in crowd:
            connection.close()

        assert read_answer(read_all(waiting)).body == b'{"pid":%d}' % process.popen.pid
        waiting.close()
        process.popen.send_signal(signal.SIGTERM)
        assert process.ended() == (0, b"")


def test_many_requests_at_once_are_all_answered(folder: Path) -> None:
    """
    Two hundred hooks that wait at the same time each get their own answer.
    """
    gate = Gate()
    with running(folder, gate) as run:
        waiting = [run.connected() for _ in range(200)]
        for connection in waiting:
            connection.sendall(a_hook_request())
        while len(run.relayed) < 200:
            pass
        gate.opened.set()
        bodies = [read_answer(read_all(connection)).body for connection in waiting]
        for connection in waiting:
            connection.close()

    assert bodies == [b"{}"] * 200
