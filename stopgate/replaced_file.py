"""
A file replaced in one step, so that whoever reads it meets the old content or the new, and a lock for those who do so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

LOCK_WAIT_S: Final = 10.0

_PAUSE_S: Final = 0.05


class StillLocked(OSError):
    """
    Another process kept the lock for longer than one waits.
    """


def replace_file(path: str, content: bytes, *, mode: int | None = None) -> None:
    """
    Write the file whole, with this mode, else as the user's umask wants it. Raises OSError, and then nothing has changed.
    """
    folder, name = os.path.split(path)
    beside = os.path.join(folder, f".{name}.turngate-{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if mode is not None:
                os.chmod(beside, mode)  # noqa: PTH101
            os.fsync(descriptor)
        os.replace(beside, path)  # noqa: PTH105
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)  # noqa: PTH108
        raise


@contextmanager
def alone(lock: str, wait_s: float = LOCK_WAIT_S) -> Generator[None]:
    """
    Run the block while no other process runs one under the same lock, a file of ours. Raises `StillLocked`, and OSError.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return

    os.makedirs(os.path.dirname(lock), mode=0o700, exist_ok=True)  # noqa: PTH103
    held = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        give_up_at = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= give_up_at:
                    raise StillLocked(f"another process has held it for {wait_s:g} s") from error
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(held)
