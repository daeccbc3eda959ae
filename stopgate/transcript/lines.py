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
TAIL = 4_096
"""Bytes kept of its end."""
REACH = 64 * 1024 * 1024
MOST_LINES = 500_000
"""Lines that are given, or passed over since they are empty; in use one has more than a hundred bytes."""

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)


class Unopened(Exception):
    """
    The path names nothing that can be read as a file; the text says why.
    """


class Overlong(bytes):
    """
    The first bytes of a line that is too long to be held.
    """

    tail: bytes = b""
    """Its last bytes."""


def open_file(path: object) -> int:
    """
    A descriptor of a regular file, opened without ever waiting for a writer. A leading `~` stands for HOME.

    Raises `Unopened`.
    """
    if not isinstance(path, str) or not path:
        raise Unopened("no path")

    try:
        return _open_regular(os.path.expanduser(path))  # noqa: PTH111 - a Path costs an import and drops nothing
    except OSError as error:
        raise Unopened(error.strerror or "cannot be opened") from error
    except ValueError as error:
        raise Unopened("not a possible path") from error


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

    With *end*, in bytes, as if the file ended there.

    Split at `b"\n"` only: a transcript may hold U+2028 and its kin inside a line.
    """

    def __init__(
        self,
        descriptor: int,
        *,
        block: int = BLOCK,
        longest: int = LONGEST_LINE,
        reach: int = REACH,
        end: int | None = None,
    ) -> None:
        self.skipped = 0
        """Lines too long to be held; each is given as `Overlong`."""
        self.out_of_reach = False
        """The reach or the lines were used up, or the file could not be read on, before its beginning."""
        self._descriptor = descriptor
        size = os.fstat(descriptor).st_size
        self._end = size if end is None else min(size, end)
        self._block = block
        self._longest = longest
        self._reach = reach
        self._pieces: deque[bytes] = deque()
        self._length = self._held = 0
        self._tail = b""
        self._lines_left = MOST_LINES

    def __iter__(self) -> Iterator[bytes]:
        position = self._end
        while position > 0:
            if self._end - position >= self._reach or self._lines_left <= 0:
                self.out_of_reach = True
                return

            size = min(self._block, position, self._reach - (self._end - position))
            position -= size
            block = self._read(size, position)
            if len(block) < size:
                # What lies further back would be glued to what is held of a line.
                self.out_of_reach = True
                return
            first, *lines = block.split(b"\n")
            if not lines:
                self._keep(first)
                continue

            self._keep(lines.pop())
            yield from self._finished()
            self._lines_left -= len(lines) + 1
            for line in reversed(lines):
                self._keep(line)
                yield from self._finished()
            self._keep(first)
        yield from self._finished()

    def _read(self, size: int, position: int) -> bytes:
        block = b""
        try:
            os.lseek(self._descriptor, position, os.SEEK_SET)
            while len(block) < size and (more := os.read(self._descriptor, size - len(block))):
                block += more
        except OSError:
            return b""
        return block

    def _keep(self, piece: bytes) -> None:
        self._pieces.appendleft(piece)
        self._length += len(piece)
        self._held += len(piece)
        if self._length > self._longest and not self._tail:
            self._tail = b"".join(self._pieces)[-TAIL:]
        while self._length > self._longest and self._held - len(self._pieces[-1]) >= HEAD:
            self._held -= len(self._pieces.pop())

    def _finished(self) -> Iterator[bytes]:
        line, length, tail = b"".join(self._pieces), self._length, self._tail
        self._pieces.clear()
        self._length = self._held = 0
        self._tail = b""
        if length > self._longest:
            self.skipped += 1
            overlong = Overlong(line[:HEAD])
            overlong.tail = tail
            yield overlong
        elif line:
            yield line
