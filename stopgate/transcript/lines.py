"""
Lines of a file, newest first: bounded time, bounded memory, and never a wait.

Knows bytes and newlines only. What a line means is the business of `entries`.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator

BLOCK = 65_536
LONGEST_LINE = 4 * 1024 * 1024
HEAD = 65_536
"""Bytes kept of the beginning of a line that is too long."""
REACH = 64 * 1024 * 1024

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


class Unopened(Exception):
    """
    The path names nothing that can be read as a file; the text says why.
    """


class Overlong(bytes):
    """
    The first bytes of a line that is too long to be held.
    """


def open_file(path: object, *, home: str | None = None) -> int:
    """
    A descriptor of a regular file, opened without ever waiting for a writer.

    A leading `~` stands for *home*, else for the HOME of this process. Raises `Unopened`.
    """
    if not isinstance(path, str) or not path:
        raise Unopened("no path")

    try:
        return _open_regular(_at_home(path, home))
    except OSError as error:
        raise Unopened(error.strerror or "cannot be opened") from error
    except ValueError as error:
        raise Unopened("not a possible path") from error


def _at_home(path: str, home: str | None) -> str:
    if home and (path == "~" or path.startswith("~/")):
        return home + path[1:]
    return os.path.expanduser(path)  # noqa: PTH111 - a Path costs an import and drops nothing


def _open_regular(path: str) -> int:
    # Asked before opening too: to open a device can already do something.
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116
        raise Unopened("not a regular file")
    descriptor = os.open(path, _FLAGS)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise Unopened("not a regular file")


class Backwards:
    r"""
    The lines of an open file from the end that it had when this was made, the last one first, without empty ones.

    Split at `b"\n"` only: a transcript may hold U+2028 and its kin inside a line.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        block: int = BLOCK,
        longest: int = LONGEST_LINE,
        reach: int = REACH,
    ) -> None:
        self.skipped = 0
        """Lines too long to be held; each is given as `Overlong`."""
        self.out_of_reach = False
        """The reach was used up, or the disk failed, before the beginning of the file."""
        self._descriptor = descriptor
        self._end = os.fstat(descriptor).st_size
        self._block = block
        self._longest = longest
        self._reach = reach
        self._pieces: deque[bytes] = deque()
        self._length = self._held = 0

    def __iter__(self) -> Iterator[bytes]:
        position = self._end
        while position > 0:
            if self._end - position >= self._reach:
                self.out_of_reach = True
                return

            size = min(self._block, position, self._reach - (self._end - position))
            position -= size
            first, *lines = self._read(size, position).split(b"\n")
            if not lines:
                self._keep(first)
                continue

            self._keep(lines.pop())
            yield from self._finished()
            for line in reversed(lines):
                self._keep(line)
                yield from self._finished()
            self._keep(first)
        yield from self._finished()

    def _read(self, size: int, position: int) -> bytes:
        try:
            os.lseek(self._descriptor, position, os.SEEK_SET)
            return os.read(self._descriptor, size)
        except OSError:
            self.out_of_reach = True
            return b""

    def _keep(self, piece: bytes) -> None:
        self._pieces.appendleft(piece)
        self._length += len(piece)
        self._held += len(piece)
        while self._length > self._longest and self._held - len(self._pieces[-1]) >= HEAD:
            self._held -= len(self._pieces.pop())

    def _finished(self) -> Iterator[bytes]:
        line, length = b"".join(self._pieces), self._length
        self._pieces.clear()
        self._length = self._held = 0
        if length > self._longest:
            self.skipped += 1
            yield Overlong(line[:HEAD])
        elif line:
            yield line
