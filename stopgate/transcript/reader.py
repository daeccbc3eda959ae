"""
A session's transcript, read backwards from its end to the last human prompt, and a little behind it.

Gives a `Record` of the turn: what was asked, what the agent did, what the client said meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from .authors import author_of, is_local_output, prompt_text
from .entries import Entry, as_text, blocks_of, content_of, is_broken, is_needed, read_line
from .happenings import Happenings
from .lines import BLOCK, LONGEST_LINE, REACH, Backwards, Overlong, Unopened, open_file
from .overlong import user_entry
from .record import Record, ToolUse
from .turn_before import TurnBefore, dead_in_turn

MOST_ENTRIES: Final = 100_000
"""Entries of a turn that are taken in: some two seconds' worth."""


class Limits(NamedTuple):
    """
    How much of a file is read, in bytes.
    """

    block: int = BLOCK
    longest_line: int = LONGEST_LINE
    reach: int = REACH


def read(
    path: str,
    *,
    subagent: bool = False,
    limits: Limits = Limits(),  # noqa: B008
    end: int | None = None,
) -> Record:
    """
    The record of the last turn in a transcript. Never raises for what the path or the file is; `problem` then says it.

    In a subagent's own file, *subagent*, the request is its dispatch prompt. With *end*, in bytes, the file is read as if it ended
    there: the turn is that of an earlier stop.
    """
    try:
        descriptor = open_file(path)
    except Unopened as error:
        return Record(problem=str(error), path=as_text(path))

    try:
        return _Reader(descriptor, subagent=subagent, limits=limits, end=end).record()._replace(path=path)
    finally:
        os.close(descriptor)


class _Reader:
    def __init__(
        self,
        descriptor: int,
        *,
        subagent: bool,
        limits: Limits,
        end: int | None = None,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._descriptor: Final = descriptor
        self._subagent: Final = subagent
        self._limits: Final = limits
        self._end: Final = end
        self._without: Final = without
        self._lines: Final = self._backwards()
        self._turn: Final = Happenings()
        self._damaged = 0
        self._taken_in = 0
        self._is_cut = False
        """The prompt is too long to be read, or too many entries stand before it."""
        self._command_is_local = False

    def record(self) -> Record:
        lines = iter(self._lines)
        prompt, rest = self._to_the_prompt(lines)
        record = self._recorded(prompt)
        if not prompt:
            return record

        before = TurnBefore(prompt, self._turn.replies, subagent=self._subagent)
        for entry in rest:
            before.add(entry)
        before.read(lines)
        if before.dead and not self._without:
            dead = dead_in_turn(self._backwards(), record.human_id, before.dead)
            if dead:
                return _Reader(
                    self._descriptor, subagent=self._subagent, limits=self._limits, end=self._end, without=dead
                ).record()
        return record._replace(previous_reply=before.reply)

    def _backwards(self) -> Backwards:
        block, longest, reach = self._limits
        return Backwards(self._descriptor, block=block, longest=longest, reach=reach, end=self._end)

    def _to_the_prompt(self, lines: Iterator[bytes]) -> tuple[Entry, list[Entry]]:
        """
        Take in the lines of the turn; give its prompt, and the entries before it on the same line, newest first.
        """
        for line in lines:
            if isinstance(line, Overlong):
                if prompt := self._overlong(user_entry(line)):
                    return prompt, []
                continue
            if self._taken_in > MOST_ENTRIES:
                self._is_cut = True
                return {}, []
            entries = self._entries(line)
            self._taken_in += len(entries)
            while entries:
                entry = entries.pop()
                if self._is_prompt(entry):
                    self._turn.prompt(entry)
                    return entry, entries[::-1]
                self._turn.add(entry, subagent=self._subagent)
        return {}, []

    def _overlong(self, entry: Entry) -> Entry:
        """
        Take in an entry that is only begun; give it, without its content, where it is the prompt.
        """
        if not entry or not self._is_on_branch(entry):
            return {}
        if self._is_prompt(entry):
            self._is_cut = True
            self._turn.prompt(entry)
            return {**entry, "message": {}}
        results = blocks_of(content_of(entry), "tool_result")
        for block in results:
            self._turn.unread_result(as_text(block.get("tool_use_id")))
        if not results:
            self._turn.add(entry, subagent=self._subagent)
        return {}

    def _entries(self, line: bytes) -> list[Entry]:
        if not is_needed(line):
            self._damaged += is_broken(line)
            return []
        reading = read_line(line)
        self._damaged += reading.damaged
        return [entry for entry in reading.entries if self._is_on_branch(entry)]

    def _is_on_branch(self, entry: Entry) -> bool:
        if entry.get("isSidechain") and not self._subagent:
            return False
        return not self._without or as_text(entry.get("uuid")) not in self._without

    def _is_prompt(self, entry: Entry) -> bool:
        """
        Whether an entry is the human prompt. Of a slash command only what comes after it shows whether it is one.
        """
        if entry.get("type") == "assistant":
            self._command_is_local = False
        if entry.get("type") == "system":
            self._command_is_local = self._command_is_local or is_local_output(entry)
        if entry.get("type") != "user":
            return False

        author = author_of(entry, subagent=self._subagent)
        if author == "command output":
            self._command_is_local = True
        if author != "command":
            return author == "person"
        # What a local command printed says nothing of the commands before it.
        is_local, self._command_is_local = self._command_is_local, False
        return not is_local

    def _recorded(self, prompt: Entry) -> Record:
        turn, lines = self._turn, self._lines
        calls = (*reversed(turn.first_calls), *reversed(turn.calls.values()))
        return Record(
            human_id=as_text(prompt.get("uuid")),
            prompt_ids=tuple(reversed(turn.prompt_ids)),
            request=prompt_text(content_of(prompt)),
            later_prompts=tuple(reversed(turn.later_prompts)),
            last_message=turn.last_message,
            calls=calls,
            calls_left_out=turn.calls_left_out,
            launches=_launches(calls),
            notices=dict(reversed(turn.notices.items())),
            ended_tasks=frozenset(turn.ended),
            resumed_tasks=frozenset(turn.resumed),
            wakeups_pending=tuple(turn.pending),
            own_holds=turn.own_holds,
            plan_mode=bool(turn.plan_mode),
            client_version=turn.version,
            cwd=turn.cwd,
            damaged=self._damaged,
            skipped=lines.skipped,
            out_of_reach=lines.out_of_reach or self._is_cut or bool(turn.calls_left_out),
        )


def _launches(calls: Iterable[ToolUse]) -> dict[str, str]:
    """
    What each task does that a call of the turn started.
    """
    return {
        call.outcome.task_id: as_text(call.input.get("description")) or as_text(call.input.get("command")) or call.name
        for call in calls
        if call.outcome and call.outcome.state == "background"
    }
