"""
The harvest: every past stop of recorded sessions as a case without labels, as the gate would have seen it.

Read by the gate's own reader up to where the file stood at the stop, put together as the gate does, masked. What the gate would not have
asked a judge about is left out, and counted under the gate's own code.
"""

from __future__ import annotations

import heapq
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ...costing.screen import one_line
from ...rubric.masking import clean, mask
from ...rubric.turn import Turn
from ...stopgate.events import STOP_EVENTS
from ...stopgate.evidence import build_turn
from ...stopgate.transcript import Record, read
from ...stopgate.transcript.lines import Unopened
from ...stopgate.transcript.stops import PastStop
from ..cases import Case, case_line, new_case
from ..errors import LabError
from .harvest_file import Sample, harvest_file
from .stops import id_of, read_stops
from .transcripts import transcripts_under
from .workers import workers

NOT_FOUND: Final = "reply_not_found"
"""Beside the gate's codes: the reader finds another reply at the stop, as where two clients write one session."""
TOO_LONG: Final = "reply_too_long"
"""Its line is longer than the reader holds, so that no reply is known."""

_IN_HAND: Final = 4
"""Transcripts for each process that are given out ahead."""
_LONGEST_NAME: Final = 200


class Way(NamedTuple):
    """
    How turns are harvested.
    """

    sample: Sample | None = None
    checks: tuple[str, ...] = ()
    """The person's own check commands, as patterns."""
    events: tuple[str, ...] = STOP_EVENTS
    continuations: int = 2


class Gathered(NamedTuple):
    """
    What one transcript gave.
    """

    path: Path
    cases: Mapping[str, str] = {}
    """By id, as lines. Of a sample, only those that can be of it."""
    stops: int = 0
    skipped: Mapping[str, int] = {}
    bytes: int = 0
    problem: str = ""


@dataclass
class Harvest:
    """
    What a harvest gave.
    """

    transcripts: int = 0
    read: int = 0
    """Of the transcripts, now or before."""
    done_before: int = 0
    """Of the transcripts, those that an earlier harvest into the same file has done."""
    stops: int = 0
    cases: int = 0
    """In the file, those of earlier harvests included."""
    known: int = 0
    """Stops that were in the file already: a session may lie in two folders."""
    skipped: Counter[str] = field(default_factory=Counter[str])
    bytes: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list[str])
    """One line for each transcript or folder that gave nothing, since it could not be read."""


def harvest(
    paths: Sequence[Path],
    *,
    out: Path,
    sample: int | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int, int], None] | None = None,
    way: Way = Way(),  # noqa: B008
) -> Harvest:
    """
    Add every stop of the transcripts in files and folders to a file of cases, or draw a sample of them.

    `progress` is told of transcripts done, of all, and of cases. Goes on where a harvest into the same file ended. Raises `LabError`.
    """
    drawn = None if sample is None else Sample(sample, seed)
    # The file may lie in a folder of transcripts.
    found, itself = transcripts_under(paths), Path(os.path.realpath(out))
    files = [file for file in found.files if file != itself]
    begun, total = time.monotonic(), Harvest(transcripts=len(files), problems=found.unreadable)
    with harvest_file(out, drawn) as kept:
        left = [file for file in files if not kept.has(file)]
        total.read = total.done_before = len(files) - len(left)
        jobs = min(jobs or os.cpu_count() or 1, len(left))
        for number, gathered in enumerate(_gathered(left, way._replace(sample=drawn), jobs), start=1):
            if gathered.problem:
                total.problems.append(gathered.problem)
            else:
                total.known += kept.add(gathered.path, gathered.cases)
                total.read += 1
            total.stops += gathered.stops
            total.skipped.update(gathered.skipped)
            total.bytes += gathered.bytes
            if progress:
                progress(total.done_before + number, len(files), kept.cases)
        total.cases = kept.cases
    total.seconds = time.monotonic() - begun
    return total


def gather(path: Path, way: Way) -> Gathered:
    """
    Harvest one transcript. Never raises for what is in it.
    """
    try:
        return _all_of(path, way)
    except (Unopened, OSError) as error:
        return Gathered(path, problem=one_line(f"{path.name}: {error}"))
    except Exception as error:  # one transcript must not take the others with it
        return Gathered(path, problem=one_line(f"{path.name}: {type(error).__name__}: {error}"))


class _Found(NamedTuple):
    """
    A stop that the gate would have asked a judge about.
    """

    case_id: str
    number: int
    stop: PastStop
    record: Record


def _all_of(path: Path, way: Way) -> Gathered:
    skipped: Counter[str] = Counter()
    number = 0
    lines: dict[str, str] = {}

    def judged() -> Iterator[_Found]:
        nonlocal number
        for number, stop in enumerate(read_stops(path), start=1):
            record = read(str(path), subagent=stop.is_subagent, end=stop.end)
            if reason := unjudged(stop, record, way):
                skipped[reason] += 1
                continue
            yield _Found(id_of(stop), number, stop, record)

    sample = way.sample
    # Of a sample, no more turns are put together than can be of it.
    found = judged() if sample is None else heapq.nsmallest(sample.size, judged(), lambda one: sample.rank(one.case_id))
    for one in found:
        lines[one.case_id] = case_line(_case(one, path, way))
    return Gathered(path, lines, number, skipped, path.stat().st_size)


def unjudged(stop: PastStop, record: Record, way: Way) -> str:
    """
    Say why the gate would not have asked a judge about a stop; nothing where it would have.
    """
    if ("SubagentStop" if stop.is_subagent else "Stop") not in way.events:
        return "pass_off"
    if stop.is_cut:
        return TOO_LONG
    if not stop.reply.strip():
        return "pass_empty_reply"
    last = record.last_message
    if last is not None and last.is_api_error:
        return "pass_api_error"
    if record.final_reply != stop.reply:
        return NOT_FOUND
    if record.wakeup_pending:
        return "pass_wakeup_pending"
    return "pass_cap_spent" if record.own_holds >= way.continuations else ""


def _case(found: _Found, path: Path, way: Way) -> Case:
    stop, record = found.stop, found.record
    turn = build_turn(
        record,
        reply=stop.reply,
        subagent=stop.is_subagent,
        checks=way.checks,
        cwd=stop.cwd,
        running_task_ids={task.id for task in stop.tasks},
    )
    fields = {
        "source": _name(f"{path.name}#{found.number}"),
        "session": _name(stop.session_id or path.stem),
        "client_version": _name(stop.client_version),
        "model": _name(stop.model),
        "tags": ["subagent"] if stop.is_subagent else [],
        "sample": "random" if way.sample else "picked",
    }
    try:
        return new_case(found.case_id, turn, **fields)
    except LabError:
        return new_case(found.case_id, _bounded(turn), **fields)


def _bounded(turn: Turn) -> Turn:
    # Over the limits of a case is a turn of thousands of calls alone.
    from ...judge.sendable import sendable

    return sendable(turn)


def _name(text: str) -> str:
    return one_line(mask(clean(text)))[:_LONGEST_NAME]


def _gathered(files: Collection[Path], way: Way, jobs: int) -> Iterator[Gathered]:
    if jobs <= 1:
        yield from (gather(file, way) for file in files)
        return
    left = dict.fromkeys(files)
    try:
        for gathered in _side_by_side(files, way, jobs):
            left.pop(gathered.path)
            yield gathered
    except BrokenProcessPool:
        # Whose fault it was is not told: each of those that are left gets a process that only it can take with it.
        yield from (_alone(file, way) for file in left)


def _side_by_side(files: Collection[Path], way: Way, jobs: int) -> Iterator[Gathered]:
    waiting = deque(files)
    running: set[Future[Gathered]] = set()
    with workers(jobs) as pool:
        while waiting or running:
            while waiting and len(running) < jobs * _IN_HAND:
                running.add(pool.submit(gather, waiting.popleft(), way))
            ready, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                yield future.result()


def _alone(file: Path, way: Way) -> Gathered:
    with workers(1) as pool:
        try:
            return pool.submit(gather, file, way).result()
        except BrokenProcessPool:
            return Gathered(file, problem=one_line(f"{file.name}: the process that read it ended"))
