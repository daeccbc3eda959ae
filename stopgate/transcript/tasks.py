"""
Background tasks in a whole transcript: which were launched there, and which ended.

Scans bytes and parses only lines that can matter; bounded like all reading here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import Final

from .authors import delivered_in, queued_author
from .entries import Entry, as_dict, as_text, blocks_of, content_of, is_needed, read_line
from .happenings import resumed_by
from .lines import REACH, Backwards, Overlong, Unopened, open_file
from .notices import notices_in
from .record import Record
from .tool_outcomes import Outcome, as_launch, outcome_of

BEHIND: Final = 32 * 1024 * 1024
"""Bytes that are read at most to learn whether tasks of earlier turns have ended."""
MANY: Final = 20
"""Task ids; each may cost time at every byte, so for more of them less is read."""

LAUNCHES: Final = (
    b"backgroundTaskId",
    b"isAsync",
    b"async_launched",
    b"with ID: ",
    b"Async agent launched successfully",
)
"""Of these one stands in each line that tells of a launch."""
_LAUNCH: Final = re.compile(b"|".join(LAUNCHES))


def launched_by(path: str) -> frozenset[str]:
    """
    The ids of all tasks whose launch stands anywhere in a transcript, as far as it is read.
    """
    launched: set[str] = set()
    claims: dict[str, Outcome] = {}
    """Results that tell of a launch by their text, until their call is found, which stands before them."""
    for line in _lines(path, REACH):
        if not _LAUNCH.search(line) and not (claims and b'"tool_use"' in line):
            continue
        for entry in reversed(read_line(line).entries):
            launched.update(_claimed_by(entry, claims))
            launched.update(_launched_in(entry))
            claims.update(_claims_in(entry))
    return frozenset(launched)


def notified(record: Record, task_ids: Collection[str], *, end: int | None = None) -> frozenset[str]:
    """
    Those of the tasks of whose end a notification stands in the transcript; not so if a task was resumed after it.

    What the turn itself does not tell is looked for up to `BEHIND` bytes back, in one pass for all. The transcript is read as if it
    ended at `end`, where that is given.
    """
    ids = frozenset(task_ids) - {""}
    ended = ids & record.ended_tasks
    unknown = ids - ended - record.resumed_tasks - record.launches.keys()
    return ended | _ended_by_their_last_word(record.path, unknown, end)


def _ended_by_their_last_word(path: str, ids: frozenset[str], end: int | None) -> frozenset[str]:
    ended: set[str] = set()
    open_ids = set(ids)
    named = _any_of(open_ids)
    reach = BEHIND * min(MANY, len(ids)) // max(1, len(ids))
    for line in _lines(path, reach, end) if ids else ():
        if not named.search(line) or not is_needed(line):
            continue
        for entry in reversed(read_line(line).entries):
            told = ended_in(entry)
            ended |= open_ids.intersection(told)
            open_ids.difference_update(told, _launched_in(entry), resumed_in(entry))
        if not open_ids:
            break
        named = _any_of(open_ids)
    return frozenset(ended)


def _any_of(ids: Collection[str]) -> re.Pattern[bytes]:
    # One pattern, since ids have much in common: for twenty of them a twentieth of the time (measured).
    return re.compile(b"|".join(re.escape(task.encode("utf-8", "replace")) for task in sorted(ids)))


def _lines(path: str, reach: int, end: int | None = None) -> Iterator[bytes]:
    try:
        descriptor = open_file(path)
    except Unopened:
        return
    try:
        for line in Backwards(descriptor, reach=reach, end=end):
            if not isinstance(line, Overlong):
                yield line
    finally:
        os.close(descriptor)


def _launched_in(entry: Entry) -> list[str]:
    outcomes = [outcome_of(entry, block) for block in blocks_of(content_of(entry), "tool_result")]
    return [outcome.task_id for outcome in outcomes if outcome.state == "background"]


def _claims_in(entry: Entry) -> dict[str, Outcome]:
    results = {
        as_text(block.get("tool_use_id")): outcome_of(entry, block)
        for block in blocks_of(content_of(entry), "tool_result")
    }
    return {call: outcome for call, outcome in results.items() if outcome.claimed_task}


def _claimed_by(entry: Entry, claims: dict[str, Outcome]) -> list[str]:
    outcomes = [
        as_launch(claim, as_text(use.get("name")), as_dict(use.get("input")))
        for use in blocks_of(content_of(entry), "tool_use")
        if (claim := claims.pop(as_text(use.get("id")), None))
    ]
    return [outcome.task_id for outcome in outcomes if outcome.state == "background"]


def resumed_in(entry: Entry) -> set[str]:
    """
    What the calls of an entry may make run again.
    """
    return {
        value
        for use in blocks_of(content_of(entry), "tool_use")
        for value in resumed_by(as_text(use.get("name")), as_dict(use.get("input")))
    }


def ended_in(entry: Entry) -> Collection[str]:
    """
    The tasks of whose end an entry tells, delivered or enqueued.
    """
    attachment = as_dict(entry.get("attachment"))
    if entry.get("type") == "user":
        return notices_in(delivered_in(entry))
    if attachment.get("type") == "queued_command" and queued_author(attachment) == "notification":
        return notices_in(attachment.get("prompt"))
    if entry.get("operation") == "enqueue" and as_text(entry.get("content")).lstrip().startswith("<task-notification>"):
        return notices_in(entry.get("content"))
    return ()
