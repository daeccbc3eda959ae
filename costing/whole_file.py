"""
A file that is read whole, or written whole or not at all, for its owner alone. What is no regular file is refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

NO_FILE: Final = "no regular file"


def read_file(path: Path) -> bytes | None:
    """
    Give what a file holds, None where there is none. Raises OSError, at once where a FIFO or a device would be waited for.
    """
    try:
        with open(path, "rb", opener=_at_once) as file:
            _check_is_file(os.fstat(file.fileno()))
            return file.read()
    except FileNotFoundError:
        return None


def is_same(one: Path, other: str | Path) -> bool:
    """
    Say whether two names lead to one file; one that is not there yet is another.
    """
    try:
        return one.samefile(other)
    except OSError:
        return False


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """
    Open a file (mode 0600) that takes the place of another, or of none, once the block has ended well: a reader sees either whole.

    Through a link, what it leads to. What a writer that was killed has left beside it is removed. Raises OSError, whose `strerror`
    says what is wrong.
    """
    target = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        _check_is_file(path.stat())
    _remove_left(target)
    part = target.parent / f".{target.name}.{os.getpid()}.part"
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            with suppress(OSError):  # not every file system has locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
            file.flush()
            os.fsync(file.fileno())
            part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _check_is_file(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, NO_FILE)


def _remove_left(target: Path) -> None:
    """
    Remove the parts that nobody writes any more: whoever writes one has locked it.
    """
    for part in target.parent.glob(f".{_literal(target.name)}.*.part"):
        with suppress(OSError), open(os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def _literal(name: str) -> str:
    from glob import escape

    return escape(name)
