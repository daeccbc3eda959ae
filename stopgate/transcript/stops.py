"""
Every stop that a transcript tells of: where the agent had ended its turn, and the client asked its hooks.

One pass from the file's beginning, which parses only what can end a turn. Read up to a stop's `end`, the file is what the gate would
have found at that stop.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final, NamedTuple

from ..events import BackgroundTask
from .authors import author_of
from .entries import (
    Entry,
    as_dict,
    as_text,
    blocks_of,
    content_of,
    is_needed,
    is_synthetic,
    read_line,
    texts_of,
)
from .lines import HEAD, LONGEST_LINE, TAIL, Overlong, open_file
from .overlong import user_entry
from .running import RunningTasks

_HOOKED: Final = (b'"hookEvent":"Stop"', b'"hookEvent":"SubagentStop"', b'"subtype":"stop_hook_summary"')
"""What the client writes where its hooks were asked. Bytes are searched for ten times as fast as by a pattern (measured)."""
_AN_END: Final = 800
"""Bytes of a line's two ends, where the client writes an entry's own fields."""
_FIRST_KEY: Final = 40
"""Bytes in which the first key of a line ends."""

_CONTENT: Final = re.compile(rb'"content"\s*:\s*\[\s*\{\s*"type"\s*:\s*("\w+")')
_BEHIND_CONTENT: Final = re.compile(rb'\]\s*,\s*"stop_reason"\s*:')

_ENDS: Final = ("end_turn", "stop_sequence", "max_tokens", "refusal", "model_context_window_exceeded")
_GOES_ON: Final = ("tool_use", "pause_turn")
_FEEDBACK: Final = "Stop hook feedback"
_INTERRUPTED: Final = "[Request interrupted by user"


class PastStop(NamedTuple):
    """
    One stop of the past.
    """

    path: str
    end: int
    """Bytes of the file that stood there at the stop: up to the end of the reply's last line."""
    session_id: str = ""
    agent_id: str = ""
    prompt_id: str = ""
    """The last `promptId` before the reply."""
    at: str = ""
    """When the reply was written, as the client writes times."""
    reply: str = ""
    cwd: str = ""
    client_version: str = ""
    is_subagent: bool = False
    tasks: tuple[BackgroundTask, ...] = ()
    """Launched in the background and not known to have ended."""
    message_id: str = ""
    """The id of the message with the reply, which a copy of the session keeps."""
    model: str = ""
    """The model that wrote the reply."""
    parent_uuid: str = ""
    """The entry that the reply's last one follows."""
    is_cut: bool = False
    """A line of the reply is too long to be held: then `reply` is not the whole of it."""


def stops_in(path: str, *, subagent: bool | None = None) -> Iterator[PastStop]:
    """
    Every stop in a transcript, the oldest first; one that a resumed session repeats is given once.

    Whether the file is a subagent's own tells itself where *subagent* is None. Raises `Unopened` where there is no such file.
    A reply that the person went back behind later on was a stop of its time, too. There is none where the person interrupted the agent, or
    where an error of the API ended the turn.
    """
    with open(open_file(path), "rb") as file:
        if subagent is None:
            subagent = _is_subagents_own(path, _lines(file.fileno()))
        stops = _Stops(path, subagent=subagent)
        start = 0
        for line, end in _lines(file.fileno()):
            stops.take(line, start, end)
            start = end
            if stops.found:
                yield from stops.found
                stops.found.clear()
        stops.settle(start)
        yield from stops.found


def _lines(descriptor: int) -> Iterator[tuple[bytes, int]]:
    """
    Each line of a file with the offset behind it; of one that is too long to be held, its two ends.
    """
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb", buffering=1024 * 1024, closefd=False) as file:
        end = 0
        while line := file.readline(LONGEST_LINE + 1):
            end += len(line)
            if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
                yield line, end
                continue
            overlong, tail = Overlong(line[:HEAD]), line[-TAIL:]
            while not line.endswith(b"\n") and (line := file.readline(LONGEST_LINE)):
                end += len(line)
                tail = (tail + line)[-TAIL:]
            overlong.tail = tail.rstrip(b"\n")
            yield overlong, end


def _is_subagents_own(path: str, lines: Iterator[tuple[bytes, int]]) -> bool:
    for line, _ in lines:
        for entry in read_line(line).entries if is_needed(line) and not isinstance(line, Overlong) else ():
            if entry.get("type") in ("user", "assistant"):
                # Older clients write a subagent's entries into the session's own file, without any agent's id.
                is_named = bool(entry.get("agentId")) or PurePath(path).name.startswith("agent-")
                return bool(entry.get("isSidechain")) and is_named
    return False


def _has(line: bytes, sign: bytes) -> bool:
    """
    Whether a sign stands in a line; looked for where it is likely first.
    """
    return line.find(sign, 0, _AN_END) >= 0 or line.find(sign, max(0, len(line) - _AN_END)) >= 0 or sign in line


def _agents_entry(line: Overlong) -> Entry:
    """
    The agent's entry that a line holds, its content but the type of the first block; empty where it holds another kind.
    """
    content, behind = _CONTENT.search(line), [*_BEHIND_CONTENT.finditer(line.tail)]
    if not content or not behind:
        return {}
    block = b'"content":[{"type":%s,"text":"\xe2\x80\xa6"}' % content[1]
    found = read_line(line[: content.start()] + block + line.tail[behind[-1].start() :]).entries
    return found[0] if found and found[0].get("type") == "assistant" else {}


def _compact(line: bytes) -> bytes:
    """
    The line without spaces between its tokens, as the client writes it, where it can be read.
    """
    try:
        return json.dumps(json.loads(line), separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return line


class _Reply:
    """
    The message of the agent that may end its turn, so far.
    """

    def __init__(self, message_id: str) -> None:
        self.id: Final = message_id
        self.texts: Final[list[str]] = []
        self.stop_reason = ""
        self.is_other = False
        """It calls a tool, or the client wrote it itself."""
        self.is_cut = False
        self.is_hooked = False
        """The client's hooks were asked after it."""
        self.entry: Entry = {}
        self.end = 0
        self.prompt_id = ""
        self.tasks: tuple[BackgroundTask, ...] = ()

    @property
    def text(self) -> str:
        return "\n\n".join(self.texts)

    @property
    def ends_turn(self) -> bool:
        if self.is_other or self.stop_reason in _GOES_ON:
            return False
        return bool(self.texts) or self.stop_reason in _ENDS


class _Stops:
    def __init__(self, path: str, *, subagent: bool) -> None:
        self.found: Final[list[PastStop]] = []
        self._path: Final = path
        self._subagent: Final = subagent
        self._reply: _Reply | None = None
        self._prompt_id = ""
        self._tasks: Final = RunningTasks()
        self._seen: Final[set[str]] = set()

    def take(self, line: bytes, start: int, end: int) -> None:
        """
        Take in the line between two offsets.
        """
        if isinstance(line, Overlong):
            entry = user_entry(line) or _agents_entry(line)
            self._entry(entry, start, end)
            if self._reply and self._reply.entry is entry:
                self._reply.is_cut = True
            return
        if line.find(b'": ', 0, _FIRST_KEY) >= 0:
            line = _compact(line)
        if self._reply and any(sign in line for sign in _HOOKED):
            self._reply.is_hooked = True
        if self._is_taken(line, start):
            for entry in read_line(line).entries:
                self._entry(entry, start, end)

    def _is_taken(self, line: bytes, start: int) -> bool:
        """
        Whether a line is worth parsing. What the agent does between its replies is taken in at a glance.
        """
        is_users = _has(line, b'"type":"user"')
        if not is_users and not _has(line, b'"type":"assistant"'):
            return b"<task-notification>" in line
        if not self._subagent and line.find(b'"isSidechain":false', 0, _AN_END) < 0 and b'"isSidechain":true' in line:
            return False
        if line.find(b'"type":"progress"', 0, _AN_END) >= 0:
            return False
        if is_users:
            if b'"type":"tool_result"' not in line:
                return True
            self._goes_on(start)
            return self._tasks.is_told_by(line)
        if b'"type":"tool_use"' not in line:
            return True
        self._calls(line, start)
        return False

    def settle(self, start: int) -> None:
        """
        Take in that the turn is over: by what begins at this offset, if the agent had ended it.
        """
        reply, self._reply = self._reply, None
        # Of two entries on one line, the second cannot be cut off.
        if reply is None or not reply.ends_turn or reply.end > start:
            return
        entry = reply.entry
        stop = PastStop(
            path=self._path,
            end=reply.end,
            session_id=as_text(entry.get("sessionId")),
            agent_id=as_text(entry.get("agentId")) if self._subagent else "",
            prompt_id=reply.prompt_id,
            at=as_text(entry.get("timestamp")),
            reply=reply.text,
            cwd=as_text(entry.get("cwd")),
            client_version=as_text(entry.get("version")),
            is_subagent=self._subagent,
            tasks=reply.tasks,
            message_id=as_text(as_dict(entry.get("message")).get("id")),
            model=as_text(as_dict(entry.get("message")).get("model")),
            parent_uuid=as_text(entry.get("parentUuid")),
            is_cut=reply.is_cut,
        )
        self.found.append(stop)

    def _calls(self, line: bytes, start: int) -> None:
        self._tasks.calls(line)
        reply = self._reply
        if reply and reply.id and reply.id.encode("utf-8", "replace") in line:
            self._reply = None
            return
        self._goes_on(start)

    def _goes_on(self, start: int) -> None:
        """
        Take in that the agent goes on with no word of anybody: then a stop is sure only where hooks were asked.
        """
        if self._reply and self._reply.is_hooked:
            self.settle(start)
        self._reply = None

    def _entry(self, entry: Entry, start: int, end: int) -> None:
        if entry.get("isSidechain") and not self._subagent:
            return
        match entry.get("type"):
            case "assistant":
                self._agents(entry, start, end)
            case "user":
                self._tasks.told(entry)
                self._users(entry, start)
            case _:
                self._tasks.told(entry)

    def _agents(self, entry: Entry, start: int, end: int) -> None:
        message = as_dict(entry.get("message"))
        uuid = as_text(entry.get("uuid"))
        if not message or uuid in self._seen:
            return
        self._seen.update({uuid} - {""})
        message_id = as_text(message.get("id")) or uuid
        if self._reply is None or self._reply.id != message_id:
            self._goes_on(start)
            self._reply = _Reply(message_id)
        reply, content = self._reply, message.get("content")
        reply.texts.extend(text for text in texts_of(content) if text)
        reply.stop_reason = as_text(message.get("stop_reason")) or reply.stop_reason
        reply.is_other = reply.is_other or is_synthetic(entry) or bool(blocks_of(content, "tool_use"))
        reply.entry, reply.end = entry, end
        reply.prompt_id, reply.tasks = self._prompt_id, self._tasks.now

    def _users(self, entry: Entry, start: int) -> None:
        reply, author = self._reply, author_of(entry, subagent=self._subagent)
        said = "".join(texts_of(content_of(entry))[:1]).lstrip()
        if reply is None or author == "tool" or said.startswith(_INTERRUPTED):
            self._goes_on(start)
        elif reply.stop_reason == "max_tokens" and author == "nobody" and not said.startswith(_FEEDBACK):
            self._goes_on(start)  # the client bids the agent to go on where it was cut off
        else:
            self.settle(start)
        self._prompt_id = as_text(entry.get("promptId")) or self._prompt_id
