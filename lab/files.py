"""
Files of the lab: read whole, and written whole or line by line, for their owner alone. What is no regular file is refused.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from pathlib import Path

from ..costing.whole_file import NO_FILE, is_same, read_file, whole_file
from .errors import LabError


def read_there(path: Path) -> bytes:
    """
    Give what a file holds that has to be there. Raises `LabError`.
    """
    found = read_whole(path)
    if found is None:
        raise LabError(f"{path}: not readable: {os.strerror(errno.ENOENT)}")
    return found


def read_whole(path: Path) -> bytes | None:
    """
    Give what a file holds, None where there is none. Raises `LabError`, at once where a FIFO or a device would be waited for.
    """
    try:
        return read_file(path)
    except OSError as error:
        raise LabError(f"{path}: not readable: {error.strerror}") from error


def check_apart(out: Path, *read: Path) -> None:
    """
    Refuse to write a file that is read as well, whatever names or links lead to it. Raises `LabError`.
    """
    for one in read:
        if is_same(out, one):
            raise LabError(f"{out}: is {one} itself, which is read: name another file")


def write_whole(path: Path, content: str | bytes) -> None:
    """
    Write a file (mode 0600) so that a reader sees all of it or what was there before; through a link, what it leads to. Raises `LabError`.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    try:
        Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.write(data)
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}") from error


def append_line(path: Path, line: str) -> None:
    """
    Add one line that is on the disk when this returns; a line that a crash cut off before is ended first. Raises `LabError`.

    Others may add lines at the same time: each waits for the one before it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
        with open(descriptor, "r+b", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise LabError(f"{path}: cannot be written: {NO_FILE}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # half of another's line looks like one that was cut off
            size = file.seek(0, os.SEEK_END)
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = "\n" + line
            data = line.rstrip("\n").encode("utf-8", "replace") + b"\n"
            if file.write(data) != len(data):  # a disk that is filling up takes a part, and raises nothing
                os.ftruncate(descriptor, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}") from error


def is_json(line: bytes) -> bool:
    """
    Say whether a line is JSON at all: one that a crash cut off is not, wherever it was cut.
    """
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
