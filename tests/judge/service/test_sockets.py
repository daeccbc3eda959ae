"""
One service for each state directory, and one clear line where none can start.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from turngate.judge.service.sockets import LOCK_NAME, SOCKET_NAME, CannotServe, Claim, claim, listen_on_port

from .running import a_process, connect


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    return tmp_path / "state" / "turngate"


def line_of(folder: Path) -> str:
    """
    Give the one line that says why nobody can serve the folder.
    """
    with pytest.raises(CannotServe) as caught:
        claim(str(folder))
    line = str(caught.value)
    assert "\n" not in line
    return line


def closed(held: Claim) -> None:
    held.release()
    held.socket.close()


def test_a_claimed_directory_is_private_and_its_socket_listens(folder: Path) -> None:
    """
    A missing state directory is made for the user alone, and whoever connects waits until the service accepts.
    """
    held = claim(str(folder))

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / SOCKET_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / LOCK_NAME).stat().st_mode) == 0o600
    with connect(held.path) as waiting:
        waiting.sendall(b"early")
        accepted, _ = held.socket.accept()
        assert accepted.recv(10) == b"early"
        accepted.close()
    closed(held)


def test_no_descriptor_is_inherited(folder: Path) -> None:
    """
    A program that the service starts must not hold its lock or socket.
    """
    held = claim(str(folder))
    inherited = subprocess.run(
        ["/bin/ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True, close_fds=False
    ).stdout

    assert LOCK_NAME not in inherited
    assert f"socket:[{os.fstat(held.socket.fileno()).st_ino}]" not in inherited
    closed(held)


def test_a_live_service_is_refused_by_its_process(folder: Path) -> None:
    """
    The second service is told which process serves already, and changes nothing.
    """
    held = claim(str(folder))

    assert line_of(folder) == f"{folder}: another service is running there (process {os.getpid()})"
    assert held.is_ours()
    closed(held)


def test_of_many_claims_at_once_one_succeeds(folder: Path) -> None:
    """
    However many services start at once, one serves.
    """
    barrier = threading.Barrier(12)
    held: list[Claim] = []
    refused: list[str] = []

    def try_it() -> None:
        barrier.wait()
        try:
            held.append(claim(str(folder)))
        except CannotServe as error:
            refused.append(str(error))

    threads = [threading.Thread(target=try_it) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(held), len(refused)) == (1, 11)
    closed(held[0])


def test_the_socket_of_a_killed_service_is_replaced(folder: Path) -> None:
    """
    After `kill -9` the socket's file stays; it is known to be stale because nobody holds the lock.
    """
    with a_process(folder) as process:
        process.popen.send_signal(signal.SIGKILL)
        process.popen.wait()
    assert (folder / SOCKET_NAME).exists()

    held = claim(str(folder))

    with connect(held.path):
        assert held.is_ours()
    closed(held)


def test_a_release_lets_another_service_start(folder: Path) -> None:
    """
    After a release nobody can connect, who waits can still be accepted, and releasing again does nothing to the successor.
    """
    held = claim(str(folder))
    waiting = connect(held.path)

    held.release()

    assert not (folder / SOCKET_NAME).exists()
    held.socket.accept()[0].close()
    waiting.close()
    successor = claim(str(folder))
    held.release()
    assert successor.is_ours()
    assert not held.is_ours()
    closed(successor)
    held.socket.close()


def test_a_removed_state_directory_is_noticed(folder: Path) -> None:
    """
    A service whose directory was removed and made anew by another one leaves the other one's socket alone.
    """
    held = claim(str(folder))
    for name in (SOCKET_NAME, LOCK_NAME):
        (folder / name).unlink()
    folder.rmdir()

    assert not held.is_ours()
    successor = claim(str(folder))
    assert not held.is_ours()
    closed(held)
    assert successor.is_ours()
    closed(successor)


def test_a_lock_file_that_is_removed_while_it_is_locked_excludes_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A lock counts only while its file is the one that others will find.
    """
    flock, times = fcntl.flock, iter(range(9))

    def flock_and_lose(descriptor: int, operation: int) -> None:
        flock(descriptor, operation)
        if next(times) == 0:
            (folder / LOCK_NAME).unlink()

    monkeypatch.setattr(fcntl, "flock", flock_and_lose)
    held = claim(str(folder))
    monkeypatch.undo()

    assert "another service is running" in line_of(folder)
    closed(held)


def test_a_path_of_107_bytes_is_the_longest(tmp_path: Path) -> None:
    """
    A Unix socket's path has at most 107 bytes; one more is told with the variable that helps.
    """
    room = 107 - len(os.fsencode(tmp_path)) - len(SOCKET_NAME) - 2
    if room < 1:
        pytest.skip("the temporary directory's own path is too long")

    closed(claim(str(tmp_path / ("d" * room))))
    line = line_of(tmp_path / ("d" * (room + 1)))

    assert "has 108 bytes, at most 107" in line
    assert "TURNGATE_STATE_DIR" in line
    assert not (tmp_path / ("d" * (room + 1))).exists()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777], ids=oct)
def test_a_directory_in_which_others_may_write_is_refused(folder: Path, mode: int) -> None:
    """
    Who may write in the directory could put a socket of their own there.
    """
    folder.mkdir(parents=True)
    folder.chmod(mode)

    assert f"others may write in the state directory (mode {mode:04o})" in line_of(folder)


def test_a_directory_that_others_may_read_is_served(folder: Path) -> None:
    """
    Reading the directory gives nobody the socket.
    """
    folder.mkdir(parents=True)
    folder.chmod(0o755)

    closed(claim(str(folder)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(folder: Path) -> None:
    """
    The state directory must be the user's own.
    """
    folder.mkdir(parents=True)
    os.chown(folder, 12345, 12345)

    assert line_of(folder) == f"{folder}: the state directory belongs to another user"


def test_what_is_no_socket_is_not_removed(folder: Path) -> None:
    """
    Only a socket can be left over from a service.
    """
    folder.mkdir(parents=True, mode=0o700)
    (folder / SOCKET_NAME).write_text("mine")

    assert "not a socket" in line_of(folder)
    assert (folder / SOCKET_NAME).read_text() == "mine"
    (folder / SOCKET_NAME).unlink()
    closed(claim(str(folder)))


def test_a_linked_lock_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """
    No file elsewhere is emptied through a link.
    """
    folder.mkdir(parents=True, mode=0o700)
    (tmp_path / "precious").write_text("mine")
    (folder / LOCK_NAME).symlink_to(tmp_path / "precious")

    assert str(folder) in line_of(folder)
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize("place", ["a file", "line\nfeed/in a file", "nul\0"], ids=["file", "line-feed", "nul"])
def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path, place: str) -> None:
    """
    Whatever is wrong with the directory's place is one line, and no traceback.
    """
    if "\0" not in place:
        file = tmp_path / place
        file.parent.mkdir(exist_ok=True)
        file.write_text("")

    assert line_of(tmp_path / place / "turngate")


def test_a_port_in_use_is_named() -> None:
    """
    The line names the setting and the port.
    """
    with listen_on_port(0) as first:
        port: int = first.getsockname()[1]
        with pytest.raises(CannotServe, match=rf"^service\.http_port: port {port} of 127\.0\.0\.1 is in use$"):
            listen_on_port(port)


@pytest.mark.parametrize("port", [-1, 65536])
def test_an_impossible_port_is_one_line(port: int) -> None:
    """
    A port that cannot be is told like one that is taken.
    """
    with pytest.raises(CannotServe, match=rf"^service\.http_port: port {port} of 127\.0\.0\.1: "):
        listen_on_port(port)


def test_a_port_is_only_open_on_loopback() -> None:
    """
    No other machine reaches the port.
    """
    with listen_on_port(0) as listening:
        assert listening.family == socket.AF_INET
        assert listening.getsockname()[0] == "127.0.0.1"


def test_nothing_heavy_is_imported_before_the_socket_listens() -> None:
    """
    The time until a hook can connect is not the time that a web framework takes to be imported.
    """
    code = "import sys, turngate.judge.service.sockets; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"asyncio", "uvicorn", "starlette", "h11", "anyio", "pydantic", "httpx", "anthropic"} & set(loaded)


def test_a_lock_whose_holder_is_dying_is_waited_for(folder: Path) -> None:
    """
    A killed process keeps its lock for some milliseconds after it ceased to listen; a service that gave up then would never come.
    """
    folder.mkdir(mode=0o700, parents=True)
    held = (folder / LOCK_NAME).open("wb")
    fcntl.flock(held, fcntl.LOCK_EX)
    dying = threading.Timer(0.1, held.close)
    dying.start()

    claimed = claim(str(folder))
    dying.join()

    assert claimed.is_ours()
    closed(claimed)
