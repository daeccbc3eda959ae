"""
What lies right behind the human prompt: the reply that it answers, and a branch that the person left by going back.

`parentUuid` only ever excludes, and only what provably hangs on another branch; where a chain is broken, the order in
the file decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .authors import author_of
from .clipped import clip
from .entries import Entry, as_dict, as_text, blocks_of, is_needed, is_synthetic, read_line, texts_of
from .lines import Overlong
from .overlong import user_entry

BEHIND: Final = 4 * 1024 * 1024
"""Bytes that are read behind the prompt at most."""
KEPT: Final = 4_000
"""Characters kept of the end of the previous reply."""

_PARENT: Final = re.compile(rb'"parentUuid"\s*:\s*"([^"\\]+)"')
_ID: Final = re.compile(rb'[{,]\s*"uuid"\s*:\s*"([^"\\]+)"')


class TurnBefore:
    """
    The turn before the prompt, taken in from its end.
    """

    def __init__(self, prompt: Entry, replies: Iterable[str], *, subagent: bool) -> None:
        self._prompt_id: Final = as_text(prompt.get("uuid"))
        self._replies: Final = frozenset(replies) - {""}
        self._subagent: Final = subagent
        self._expected = as_text(prompt.get("parentUuid"))
        """The id that the next entry on the branch has; empty where nothing is known, and then everything is on it."""
        self._unproven: set[str] = set()
        self._dead: set[str] = set()
        self._on_branch = _Reply()
        self._in_file = _Reply()

    @property
    def reply(self) -> str:
        """
        The end of the text with which the turn before ended.
        """
        # Where the branch's chain is broken, the last text in the file before it is the best that is known.
        found = self._on_branch if self._on_branch.is_settled or not self._unproven else self._in_file
        return clip(found.text, start=0, end=KEPT)

    @property
    def dead(self) -> frozenset[str]:
        """
        The ids of entries on a branch that the person left.
        """
        return frozenset(self._dead)

    def read(self, lines: Iterator[bytes]) -> None:
        """
        Take in lines, the last one first, until the reply is whole.
        """
        taken = 0
        for line in lines:
            taken += len(line)
            if self._on_branch.is_settled or taken > BEHIND:
                return
            if isinstance(line, Overlong):
                self.add(user_entry(line))
                continue
            if not is_needed(line):
                self._pass(line)
                continue
            for entry in reversed(read_line(line).entries):
                self.add(entry)

    def add(self, entry: Entry) -> None:
        """
        Take in one entry.
        """
        if entry.get("isSidechain") and not self._subagent:
            return
        on_branch = self._follow(as_text(entry.get("uuid")), as_text(entry.get("parentUuid")))
        kind = entry.get("type")
        if kind == "assistant" and as_text(entry.get("uuid")) in self._replies:
            return  # a resumed session repeats entries
        for reply, counts in ((self._on_branch, on_branch), (self._in_file, True)):
            if counts and kind == "assistant":
                reply.add(entry)
            elif counts and kind == "user" and self._is_other_prompt(entry):
                reply.end()

    def _pass(self, line: bytes) -> None:
        if self._expected and (found := _ID.search(line)):
            parent = _PARENT.search(line)
            self._follow(found[1].decode("utf-8", "replace"), parent[1].decode("utf-8", "replace") if parent else "")

    def _follow(self, entry_id: str, parent: str) -> bool:
        if not self._expected or not entry_id:
            return True
        if entry_id != self._expected:
            self._unproven.add(entry_id)
            return False
        self._dead |= self._unproven
        self._unproven.clear()
        self._in_file = _Reply()
        self._expected = parent
        return True

    def _is_other_prompt(self, entry: Entry) -> bool:
        if self._prompt_id and entry.get("uuid") == self._prompt_id:
            return False
        return author_of(entry, subagent=self._subagent) in ("person", "command")


class _Reply:
    """
    The final message of a turn, put together from the end. One that calls a tool is none: the turn was interrupted.
    """

    def __init__(self) -> None:
        self.text = ""
        self.is_settled = False
        self._id: str | None = None
        self._saw_agent = False

    def add(self, entry: Entry) -> None:
        message = as_dict(entry.get("message"))
        if self.is_settled or not message or is_synthetic(entry):
            return
        self._saw_agent = True
        content = message.get("content")
        text = "\n\n".join(texts_of(content))
        message_id = as_text(message.get("id")) or as_text(entry.get("uuid"))
        if self._id not in (None, message_id):
            self.is_settled = True
        elif blocks_of(content, "tool_use") or message.get("stop_reason") == "tool_use":
            self.text = ""
            self.is_settled = True
        elif text:
            self._id = message_id
            self.text = "\n\n".join(part for part in (text, self.text) if part)

    def end(self) -> None:
        # A prompt that no reply followed, stopped by a hook or sent twice, was no turn.
        self.is_settled = self.is_settled or self._saw_agent


def dead_in_turn(lines: Iterable[bytes], prompt_id: str, dead: frozenset[str]) -> frozenset[str]:
    """
    The ids of entries after the prompt whose parents lead to *dead* ones. *lines* are the file's, the last one first.
    """
    children: dict[str, list[str]] = {}
    for line in lines:
        found, parent = _ID.search(line), _PARENT.search(line)
        if not found:
            continue
        entry_id = found[1].decode("utf-8", "replace")
        if entry_id == prompt_id:
            break
        if parent:
            children.setdefault(parent[1].decode("utf-8", "replace"), []).append(entry_id)

    reached: set[str] = set()
    waiting = list(dead)
    while waiting:
        for child in children.pop(waiting.pop(), ()):
            reached.add(child)
            waiting.append(child)
    return frozenset(reached)
