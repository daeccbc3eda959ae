"""
Files of the lab: written whole or line by line, for their owner alone.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path

from .errors import LabError


def write_whole(path: Path, content: str | bytes) -> None:
    """
    Write a file (mode 0600) so that a reader sees all of it or what was there before; through a link, what it leads to. Raises `LabError`.
    """
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    target = Path(os.path.realpath(path))
    part = target.parent / f".{target.name}.{os.getpid()}.part"
    try:
        if target.exists() and not target.is_file():
            raise LabError(f"{path}: cannot be written: no regular file")
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise LabError(f"{path}: cannot be written: {error.strerror}") from error


def append_line(path: Path, line: str) -> None:
    """
    Add one line that is on the disk when this returns; a line that a crash cut off before is ended first. Raises `LabError`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with open(descriptor, "r+b", buffering=0) as file:
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
