"""
A small file that somebody else wrote, read whole and without waiting for anything.
"""

from __future__ import annotations

import os
from stat import S_ISREG
from typing import Final

LIMIT: Final = 4_000_000
"""In bytes; settings have some thousands."""


class TooLarge(OSError):
    """
    The file has more bytes than are read.
    """


def read_small(path: str, limit: int = LIMIT) -> bytes | None:
    """
    Give the file's content, None where there is no such file.

    Raises OSError for what is no plain file or cannot be read, and `TooLarge`; never waits for a pipe or a device.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("not a plain file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise TooLarge("too large")
    return content
