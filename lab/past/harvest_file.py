"""
The file that a harvest fills, beside a list of the transcripts that are in it: what is done is not done again.

Whole transcripts are added at a time. A line that a crash cut off is dropped, and a case that is there already is not added again.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import re
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from ...costing.whole_file import NO_FILE
from ..cases import LONGEST_LINE
from ..errors import LabError
from ..files import write_whole

_FORMAT: Final = 2
_EVERY_S: Final = 1.0
"""Between two writings: what a crash costs at most."""
_MARK: Final = re.compile(rb'"([0-9a-f]{32})"')
_ID: Final = re.compile(rb'\{"id": "([^"\\]+)"')


class Sample(NamedTuple):
    """
    So many cases, drawn blindly: the same for the same seed and cases, in whatever order they come.
    """

    size: int
    seed: int = 0

    def rank(self, case_id: str) -> str:
        """
        Give what a case is drawn by: those of the lowest ranks are the sample.
        """
        return sha256(f"{self.seed}:{case_id}".encode()).hexdigest()


@contextmanager
def harvest_file(out: Path, sample: Sample | None) -> Generator[HarvestFile]:
    """
    Open the file for one process alone, and write the sample at the end. Raises `LabError`.

    Where no case is there any more, nothing counts as done.
    """
    if not out.name:
        raise LabError(f"--out {out}: expected the name of a file")
    done = out.with_name(f"{out.name}.done")
    for file in (out, done):
        if file.exists() and not file.is_file():
            raise LabError(f"{file}: cannot be written: {NO_FILE}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if out.exists() and not done.exists():
            raise LabError(f"{out}: exists, and is no harvest to go on with: name another file")
        pool = out.with_name(f"{out.name}.pool") if sample else out
        with open(done, "ab", opener=_private) as done_file, open(pool, "ab", opener=_private) as pool_file:
            _take(done_file.fileno(), done)
            file = HarvestFile(pool, pool_file.fileno(), done, done_file.fileno(), sample)
            try:
                yield file
            finally:
                file.flush()
        if sample:
            write_whole(out, file.drawn(sample))
    except OSError as error:
        raise LabError(f"{error.filename or out}: cannot be written: {error.strerror}") from error


class HarvestFile:
    """
    The cases so far and the transcripts that they are from.
    """

    def __init__(self, pool: Path, pool_fd: int, done: Path, done_fd: int, sample: Sample | None) -> None:
        self._pool: Final = pool
        self._pool_fd: Final = pool_fd
        self._done_fd: Final = done_fd
        self._sample: Final = sample
        self._cases: Final[list[str]] = []
        self._marks: Final[list[str]] = []
        self._written = time.monotonic()
        self._ids: Final = _ids_of(pool, pool_fd)
        marks = _marks_of(done, done_fd, {"format": _FORMAT, "sample": sample and [*sample]})
        self._done: Final = marks if self._ids else set[str]()
        self._drawn: Final = _Lowest(sample, self._ids)

    @property
    def cases(self) -> int:
        """
        The cases that are there; of a sample, those that are drawn.
        """
        return min(len(self._ids), self._sample.size) if self._sample else len(self._ids)

    def has(self, transcript: Path) -> bool:
        """
        Whether a transcript, as it is now, was harvested already.
        """
        return _mark(transcript) in self._done

    def add(self, transcript: Path, cases: Mapping[str, str]) -> int:
        """
        Add the lines of a transcript's cases, by id; give how many were there already.
        """
        known = 0
        for case_id, line in cases.items():
            if case_id in self._ids:
                known += 1
            elif self._drawn.takes(case_id):
                self._ids.add(case_id)
                self._cases.append(line)
        self._marks.extend({_mark(transcript)} - {""})
        if time.monotonic() - self._written > _EVERY_S:
            self.flush()
        return known

    def flush(self) -> None:
        """
        Write what was added: the cases first, for a transcript counts as done only once its cases are there.
        """
        _append(self._pool_fd, "".join(self._cases))
        _append(self._done_fd, "".join(json.dumps(mark) + "\n" for mark in self._marks))
        self._done.update(self._marks)
        self._cases.clear()
        self._marks.clear()
        self._written = time.monotonic()

    def drawn(self, sample: Sample) -> str:
        """
        Give the lines of the sample, in the order of their ranks.
        """
        ranked = ((sample.rank(case_id), line) for case_id, line in _cases_in(self._pool))
        return "".join(line.decode() for _, line in heapq.nsmallest(sample.size, ranked))


class _Lowest:
    """
    Whether a case can still be of the sample.
    """

    def __init__(self, sample: Sample | None, ids: Iterable[str]) -> None:
        self._sample: Final = sample
        self._ranks: Final[list[int]] = []
        for case_id in ids:
            self.takes(case_id)

    def takes(self, case_id: str) -> bool:
        if self._sample is None:
            return True
        # The heap's first is its lowest: so ranks are negative, to have the highest there.
        rank = -int(self._sample.rank(case_id), 16)
        if len(self._ranks) < self._sample.size:
            heapq.heappush(self._ranks, rank)
            return True
        return heapq.heappushpop(self._ranks, rank) != rank


def _cases_in(pool: Path) -> Generator[tuple[str, bytes]]:
    with pool.open("rb") as file:
        for number, line in enumerate(file, start=1):
            found = _ID.match(line)
            if not found:
                raise LabError(f"{pool}: line {number}: no harvested case")
            yield found[1].decode("utf-8", "replace"), line


def _ids_of(pool: Path, descriptor: int) -> set[str]:
    _drop_cut_line(descriptor)
    return {case_id for case_id, _ in _cases_in(pool)}


def _marks_of(done: Path, descriptor: int, header: Mapping[str, object]) -> set[str]:
    _drop_cut_line(descriptor)
    first, lines = json.dumps(header), done.read_bytes().splitlines()
    if not lines:
        _append(descriptor, first + "\n")
    elif lines[0] != first.encode():
        raise LabError(
            f"{done}: of a harvest with another --sample or --seed, or by another version: name another file"
        )
    marks: set[str] = set()
    for number, line in enumerate(lines[1:], start=2):
        found = _MARK.fullmatch(line)
        if not found:
            raise LabError(f"{done}: line {number}: damaged: remove it and the file beside it to begin anew")
        marks.add(found[1].decode())
    return marks


def _drop_cut_line(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    start = max(0, size - 2 * LONGEST_LINE)
    data = os.pread(descriptor, size - start, start)
    if data and not data.endswith(b"\n"):
        os.ftruncate(descriptor, start + data.rfind(b"\n") + 1)


def _append(descriptor: int, text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(descriptor, data) :]
    os.fsync(descriptor)


def _mark(transcript: Path) -> str:
    """
    The transcript's path, size and time as a hash, for the path tells who the person is.
    """
    try:
        stat = transcript.stat()
    except OSError:
        return ""
    place = f"{os.path.realpath(transcript)}\0{stat.st_size}\0{stat.st_mtime_ns}"
    return sha256(place.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _private(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_WRONLY | os.O_RDWR, 0o600)


def _take(descriptor: int, done: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise LabError(f"{done}: another process fills this file") from None
