"""
One run of a program: fed, read within bounds, and ended with all that it started, whatever it does.

It runs in a session and a scratch folder of its own, which are both gone afterwards. POSIX only.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock
from typing import Final, NamedTuple

MAX_OUTPUT_BYTES: Final = 1_000_000
"""A program that writes more is ended."""

MAX_ERROR_BYTES: Final = 10_000
"""Of its standard error; the rest is read and forgotten."""

ENDING_S: Final = 0.25
"""Between being asked to end, which lets it take its own files away, and being killed."""

_LOOK_S: Final = 0.02
_PIECE: Final = 65_536


class Ended(NamedTuple):
    """
    What came of a run.
    """

    code: int
    """Negative: the number of the signal that ended it."""
    output: bytes
    """At most one byte more than `MAX_OUTPUT_BYTES`."""
    error: bytes
    was_stopped: bool
    """It was told to end, or took too long."""

    @property
    def is_too_long(self) -> bool:
        """
        Whether there was more output than is read.
        """
        return len(self.output) > MAX_OUTPUT_BYTES


class CliProcess:
    """
    A program to be run once, in a thread; `environ` is all of its environment but for `TMPDIR`, which is its own.
    """

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], given: bytes, *, timeout_s: float) -> None:
        self._arguments: Final = arguments
        self._environ: Final = environ
        self._given = memoryview(given)
        self._timeout_s: Final = timeout_s
        self._starting: Final = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed_at: float | None = None
        self._was_stopped = False
        self._is_over: Final = Event()

    def run(self) -> Ended:
        """
        Run the program to its end. Raises OSError where it cannot be started.
        """
        folder = ""
        try:
            folder = tempfile.mkdtemp(prefix="turngate-judge-")
            process = self._started(folder)
            if process is None:
                return Ended(-signal.SIGTERM, b"", b"", was_stopped=True)
            with process:
                return self._followed(process)
        finally:
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
            self._is_over.set()

    def end(self) -> None:
        """
        Have the program ended, from any thread: asked first, and soon killed.
        """
        with self._starting:
            self._was_stopped = True
            self._ask_to_end()

    def kill(self) -> None:
        """
        Kill it with all that it started.
        """
        with self._starting:
            self._was_stopped = True
            self._signal(signal.SIGKILL)

    def is_over(self, *, within_s: float) -> bool:
        """
        Wait until nothing of it is left; False where that takes longer.
        """
        return self._is_over.wait(within_s)

    def _started(self, folder: str) -> subprocess.Popen[bytes] | None:
        place = os.path.join(folder, "empty")
        os.mkdir(place, 0o700)  # noqa: PTH102
        with self._starting:
            if self._was_stopped:
                return None
            self._process = subprocess.Popen(  # noqa: S603
                self._arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=place,
                env={**self._environ, "TMPDIR": folder},
                start_new_session=True,
            )
        return self._process

    def _followed(self, process: subprocess.Popen[bytes]) -> Ended:
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018
        output, error = bytearray(), bytearray()
        give_up_at = time.monotonic() + self._timeout_s
        try:
            with selectors.DefaultSelector() as ready:
                for pipe, into in ((process.stdout, output), (process.stderr, error)):
                    os.set_blocking(pipe.fileno(), False)
                    ready.register(pipe, selectors.EVENT_READ, into)
                os.set_blocking(process.stdin.fileno(), False)
                ready.register(process.stdin, selectors.EVENT_WRITE)
                while ready.get_map() and process.poll() is None:
                    self._exchange(ready, output)
                    self._keep_to(give_up_at)
                # What it wrote last may still lie in the pipes; who else holds them is not waited for.
                self._read_rest(ready)
                while process.poll() is None:
                    self._keep_to(give_up_at)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_LOOK_S)
        finally:
            self._signal(signal.SIGKILL)
            process.wait()
        return Ended(process.returncode, bytes(output), bytes(error[:MAX_ERROR_BYTES]), self._was_stopped)

    def _exchange(self, ready: selectors.BaseSelector, output: bytearray) -> None:
        for key, _ in ready.select(_LOOK_S):
            if key.data is None:
                self._write(ready, key)
            elif _read(key) == b"":
                ready.unregister(key.fileobj)
        if len(output) > MAX_OUTPUT_BYTES:
            self._signal(signal.SIGKILL)

    def _write(self, ready: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        with suppress(BlockingIOError):
            try:
                self._given = self._given[os.write(key.fd, self._given[:_PIECE]) :]
            except (BrokenPipeError, ConnectionResetError):
                self._given = self._given[:0]
        if not self._given:
            ready.unregister(key.fileobj)
            self._close_input()

    def _close_input(self) -> None:
        if self._process and self._process.stdin:
            self._process.stdin.close()

    def _read_rest(self, ready: selectors.BaseSelector) -> None:
        for key in list(ready.get_map().values()):
            if key.data is not None:
                while _read(key) and len(key.data) <= MAX_OUTPUT_BYTES:
                    pass

    def _keep_to(self, give_up_at: float) -> None:
        now = time.monotonic()
        with self._starting:
            if self._killed_at is None and now >= give_up_at:
                self._was_stopped = True
                self._ask_to_end()
            if self._killed_at is not None and now >= self._killed_at:
                self._signal(signal.SIGKILL)

    def _ask_to_end(self) -> None:
        if self._killed_at is None:
            self._killed_at = time.monotonic() + ENDING_S
            self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        # The group has the process's own number: it was started as the first of a session.
        if self._process is not None and not self._is_over.is_set():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)


def _read(key: selectors.SelectorKey) -> bytes | None:
    """
    Read a piece: empty at the end, None where there is nothing yet.
    """
    try:
        piece = os.read(key.fd, _PIECE)
    except BlockingIOError:
        return None
    into: bytearray = key.data
    # One more than is wanted shows that it was too much.
    into += piece[: max(0, MAX_OUTPUT_BYTES + 1 - len(into))]
    return piece
