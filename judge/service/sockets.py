"""
The sockets of a service: one service for each state directory, known by a lock and reached by a file that only its owner may open.

They are taken before anything heavy is imported: who connects meanwhile waits in the socket's queue.
"""

# ruff: noqa: PTH101, PTH103, PTH108, PTH116
from __future__ import annotations

import errno
import os
import socket
import stat
import time
from contextlib import suppress
from typing import Final

SOCKET_NAME: Final = "turngate.sock"
LOCK_NAME: Final = "turngate.service.lock"

BACKLOG: Final = 512
"""Connections that may wait to be accepted; the system may allow fewer."""

PATH_LIMIT: Final = 107
"""Bytes of a Unix socket's path: `sun_path` has 108, the last one is NUL (unix(7))."""

DYING_S: Final = 0.5
"""For the holder of the lock to be gone, where nobody listens on the socket."""

_LOCK_TRIES: Final = 5
_PAUSE_S: Final = 0.01


class CannotServe(Exception):
    """
    Circumstances in which no service can start; its text is one line for a person.
    """

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.split()))


class AlreadyServed(CannotServe):
    """
    Another service runs there.
    """


class Claim:
    """
    The right to serve a state directory, held until it is released or the process ends; `socket` listens.
    """

    def __init__(self, path: str, listening: socket.socket, lock: int) -> None:
        self.path: Final = path
        self.socket: Final = listening
        self._file: Final = _identity(path)
        self._lock: int | None = lock

    def is_ours(self) -> bool:
        """
        Whether the socket's file is still the one that was bound.
        """
        return self._file is not None and _identity(self.path) == self._file

    def release(self) -> None:
        """
        Let nobody connect any more, and let another service start. Those who wait in the socket's queue can still be accepted.
        """
        lock, self._lock = self._lock, None
        if lock is None:
            return

        if self.is_ours():
            with suppress(OSError):
                os.unlink(self.path)
        os.close(lock)


def claim(folder: str) -> Claim:
    """
    Take a state directory for this process, make it where it is missing, and listen on its socket.

    Raises CannotServe.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise CannotServe("this system has no Unix sockets; hooks decide by themselves")

    path = os.path.join(folder, SOCKET_NAME)
    if (length := len(os.fsencode(path))) > PATH_LIMIT:
        raise CannotServe(
            f"{path}: the path of the socket has {length} bytes, at most {PATH_LIMIT} are possible; "
            "name a shorter directory in TURNGATE_STATE_DIR"
        )
    try:
        _make_private(folder)
        lock = _lock(os.path.join(folder, LOCK_NAME), folder)
    except (OSError, ValueError) as error:
        raise CannotServe(f"{folder}: {_reason(error)}") from error

    try:
        return Claim(path, _bound(path), lock)
    except BaseException as error:
        os.close(lock)
        if isinstance(error, OSError):
            raise CannotServe(f"{path}: {_reason(error)}") from error
        raise


def listen_on_port(port: int) -> socket.socket:
    """
    Listen on a port of 127.0.0.1; 0 is any free one.

    Raises CannotServe.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # Connections of a service that has just ended keep no successor from its port.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise CannotServe(f"service.http_port: port {port} of 127.0.0.1 is in use") from error
        raise CannotServe(f"service.http_port: port {port} of 127.0.0.1: {_reason(error)}") from error
    return listening


def _make_private(folder: str) -> None:
    """
    Make a state directory, or look whether the one that is there is ours alone to write in.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.stat(folder)
    if found.st_uid != os.geteuid():
        raise CannotServe(f"{folder}: the state directory belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CannotServe(
            f"{folder}: others may write in the state directory (mode {stat.S_IMODE(found.st_mode):04o}); "
            "close it with chmod 700"
        )


def _lock(path: str, folder: str) -> int:
    give_up_at = time.monotonic() + DYING_S
    for _ in range(_LOCK_TRIES):
        lock = _free_lock(path, folder, give_up_at)
        # A lock on a file that was removed meanwhile excludes nobody.
        if _identity(path) == _key(os.fstat(lock)):
            os.ftruncate(lock, 0)
            os.pwrite(lock, b"%d\n" % os.getpid(), 0)
            return lock
        os.close(lock)
    raise CannotServe(f"{path}: somebody keeps removing the lock file")


def _free_lock(path: str, folder: str, give_up_at: float) -> int:
    """
    Take the lock. One whose holder was killed is held until the last of its threads is gone: then nobody listens any more.
    """
    import fcntl

    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except BlockingIOError:
                if time.monotonic() >= give_up_at or _is_served(os.path.join(folder, SOCKET_NAME)):
                    holder = os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "unknown"
                    raise AlreadyServed(f"{folder}: another service is running there (process {holder})") from None
                time.sleep(_PAUSE_S)
    except BaseException:
        os.close(lock)
        raise


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        try:
            connection.connect(path)
        except BlockingIOError:  # more wait than its queue takes
            return True
        except OSError:
            return False
        return True


def _bound(path: str) -> socket.socket:
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
        # Nobody can connect before `listen`, so nobody can slip in before the mode is set.
        os.chmod(path, 0o600)
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _remove_stale(path: str) -> None:
    """
    Remove the socket of a service that ended without doing so: the lock is ours, so nobody serves it.
    """
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise CannotServe(f"{path}: not a socket; move it away")
    os.unlink(path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        return _key(os.lstat(path))
    except OSError:
        return None


def _key(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)
