"""
Background tasks that run at a place of a transcript, taken in line by line, the oldest first.

A launch counts until a notification tells of the end, the agent stops the task or reads its output to its end. What ended with the
client's process leaves no trace, and counts on.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from ..events import BackgroundTask
from .entries import Entry, as_dict, as_text, blocks_of, content_of, read_line
from .tasks import LAUNCHES, ended_in, resumed_in
from .tool_outcomes import TASK_ENDERS, TASK_TOOLS, Outcome, as_launch, outcome_of

_RECENT: Final = 64
"""Lines with calls that are kept until a result tells that one of them started something."""
_LONGEST_CALL: Final = 200_000
_LONGEST_TEXT: Final = 1_000
_TYPES: Final = {"Bash": "shell", "PowerShell": "shell", "Agent": "subagent", "Task": "subagent"}
_LOOKS: Final = re.compile(b'"name"\\s*:\\s*"(?:' + "|".join(sorted(TASK_TOOLS)).encode() + b')"')
_RESUMES: Final = re.compile(rb'"SendMessage"|"resume"')


class RunningTasks:
    """
    The tasks that run at the place reached so far.
    """

    def __init__(self) -> None:
        self._running: Final[dict[str, BackgroundTask]] = {}
        self._ended: Final[dict[str, BackgroundTask]] = {}
        self._recent: Final[deque[bytes]] = deque(maxlen=_RECENT)
        self._looks: Final[dict[str, Entry]] = {}
        """Calls that look at a task or end it, by id, until their result comes."""

    @property
    def now(self) -> tuple[BackgroundTask, ...]:
        """
        The tasks that run, in the order of their launch.
        """
        return tuple(self._running.values())

    def calls(self, line: bytes) -> None:
        """
        Take in a line in which the agent calls tools.
        """
        if len(line) <= _LONGEST_CALL:
            self._recent.append(line)
        if self._ended and _RESUMES.search(line):
            self._resumed(line)
        if self._running and _LOOKS.search(line):
            for use in _uses_in(line):
                if use.get("name") in TASK_TOOLS:
                    self._looks[as_text(use.get("id"))] = use

    def is_told_by(self, line: bytes) -> bool:
        """
        Whether a line with results can tell anything of tasks, at a glance.
        """
        return (
            ((b"ckground" in line or b"sync" in line) and any(sign in line for sign in LAUNCHES))
            or b"<task-notification>" in line
            or any(call.encode("utf-8", "replace") in line for call in self._looks)
        )

    def told(self, entry: Entry) -> None:
        """
        Take in an entry that may tell of a task's launch or end.
        """
        for block in blocks_of(content_of(entry), "tool_result"):
            self._result(as_text(block.get("tool_use_id")), outcome_of(entry, block))
        for task in ended_in(entry):
            self._end(task)

    def _result(self, call: str, outcome: Outcome) -> None:
        if look := self._looks.pop(call, None):
            if outcome.is_over or (outcome.state == "ok" and look.get("name") in TASK_ENDERS):
                self._end(outcome.task_id)
                for task in as_dict(look.get("input")).values():
                    self._end(task)
            return
        if outcome.state != "background" and not outcome.claimed_task:
            return
        use = self._call(call)
        outcome = as_launch(outcome, as_text(use.get("name")), as_dict(use.get("input")))
        if outcome.state == "background":
            self._running[outcome.task_id] = _task(outcome.task_id, use)

    def _call(self, call: str) -> Entry:
        named = call.encode("utf-8", "replace")
        for line in reversed(self._recent):
            for use in _uses_in(line) if named in line else ():
                if use.get("id") == call:
                    return use
        return {}

    def _end(self, task: object) -> None:
        if isinstance(task, str) and (ended := self._running.pop(task, None)):
            self._ended[task] = ended

    def _resumed(self, line: bytes) -> None:
        for entry in read_line(line).entries:
            for task in resumed_in(entry) & self._ended.keys():
                self._running[task] = self._ended.pop(task)


def _uses_in(line: bytes) -> list[Entry]:
    return [use for entry in read_line(line).entries for use in blocks_of(content_of(entry), "tool_use")]


def _task(task: str, use: Entry) -> BackgroundTask:
    name, given = as_text(use.get("name")), as_dict(use.get("input"))
    return BackgroundTask(
        task,
        _TYPES.get(name, name.lower()),
        "running",
        as_text(given.get("description"))[:_LONGEST_TEXT],
        as_text(given.get("command"))[:_LONGEST_TEXT],
    )
