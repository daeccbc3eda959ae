"""
Background tasks in a whole transcript: which were launched there, and which ended.

Scans bytes and parses only lines that can matter; bounded like all reading here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import Final

from .authors import author_of, queued_author
from .entries import Entry, as_dict, as_text, blocks_of, content_of, is_needed, read_line
from .happenings import resumed_by
from .lines import Backwards, Overlong, Unopened, open_file
from .notices import notices_in
from .record import Record
from .tool_outcomes import outcome_of

_LAUNCH: Final = re.compile(rb"backgroundTaskId|isAsync|async_launched|with ID: |Async agent launched successfully")


def launched_by(path: str, *, home: str | None = None) -> frozenset[str]:
    """
    The ids of all tasks whose launch stands anywhere in a transcript, as far as it is read.
    """
    return frozenset(
        task
        for line in _lines(path, home)
        if _LAUNCH.search(line)
        for entry in read_line(line).entries
        for task in _launched_in(entry)
    )


def notified(record: Record, task_id: str, *, home: str | None = None) -> bool:
    """
    Whether a notification of the task's end stands in the transcript; not so if the task was resumed after it.
    """
    if not task_id or task_id in record.ended_tasks:
        return bool(task_id)
    if task_id in record.resumed_tasks or task_id in record.launches:
        return False
    return _last_word(record.path, task_id, home)


def _last_word(path: str, task_id: str, home: str | None) -> bool:
    needle = task_id.encode("utf-8", "replace")
    for line in _lines(path, home):
        if needle not in line or not is_needed(line):
            continue
        for entry in reversed(read_line(line).entries):
            if task_id in _ended_in(entry):
                return True
            if task_id in _launched_in(entry) or task_id in _resumed_in(entry):
                return False
    return False


def _lines(path: str, home: str | None) -> Iterator[bytes]:
    try:
        descriptor = open_file(path, home=home)
    except Unopened:
        return
    try:
        for line in Backwards(descriptor):
            if not isinstance(line, Overlong):
                yield line
    finally:
        os.close(descriptor)


def _launched_in(entry: Entry) -> list[str]:
    outcomes = [outcome_of(entry, block) for block in blocks_of(content_of(entry), "tool_result")]
    return [outcome.task_id for outcome in outcomes if outcome.state == "background"]


def _resumed_in(entry: Entry) -> set[str]:
    return {
        value
        for use in blocks_of(content_of(entry), "tool_use")
        for value in resumed_by(as_text(use.get("name")), as_dict(use.get("input")))
    }


def _ended_in(entry: Entry) -> Collection[str]:
    attachment = as_dict(entry.get("attachment"))
    if entry.get("type") == "user" and author_of(entry) == "notification":
        return notices_in(content_of(entry))
    if attachment.get("type") == "queued_command" and queued_author(attachment) == "notification":
        return notices_in(attachment.get("prompt"))
    if entry.get("operation") == "enqueue" and as_text(entry.get("content")).lstrip().startswith("<task-notification>"):
        return notices_in(entry.get("content"))
    return ()
