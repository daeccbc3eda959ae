"""
How far something is, told to a person: a bar on a terminal, else a line now and then.
"""

from __future__ import annotations

import sys
import time
from typing import Final, TextIO

from ..stopgate.console import warn

EVERY_S: Final = 15.0
"""Between two lines where there is no terminal."""

_WIDTH: Final = 24
_MOST_OFTEN_S: Final = 0.1


class Progress:
    """
    The way from `done` to `total`; written to stderr.
    """

    def __init__(self, total: int, done: int = 0, stream: TextIO | None = None) -> None:
        self._total: Final = total
        self._first: Final = done
        self._stream: Final = stream or sys.stderr
        self._is_terminal: Final = self._stream.isatty()
        self._started: Final = time.monotonic()
        self._said = self._started
        self._is_open = False
        self._unsaid = ""

    def tell(self, done: int, more: str) -> None:
        """
        Say how far it is, not too often; `more` is shown beside it.
        """
        now = time.monotonic()
        line = f"{done}/{self._total}  {more}{self._left(done, now)}"
        if self._is_terminal:
            filled = _WIDTH * done // max(1, self._total)
            line = f"\r\x1b[K[{'#' * filled}{'.' * (_WIDTH - filled)}] {line}"
        if now - self._said < (_MOST_OFTEN_S if self._is_terminal else EVERY_S) and done < self._total:
            self._unsaid = line
            return
        self._said = now
        self._say(line)

    def _say(self, line: str) -> None:
        self._unsaid = ""
        if not self._is_terminal:
            warn(line)
            return
        self._stream.write(line)
        self._stream.flush()
        self._is_open = True

    def close(self) -> None:
        """
        End the line, which says on a terminal how far it came.
        """
        if self._unsaid and self._is_terminal:
            self._say(self._unsaid)
        if self._is_open:
            self._stream.write("\n")
            self._stream.flush()

    def _left(self, done: int, now: float) -> str:
        if done <= self._first or done >= self._total:
            return ""
        left_s = round((now - self._started) / (done - self._first) * (self._total - done))
        return f"  {left_s // 60}:{left_s % 60:02} left"
