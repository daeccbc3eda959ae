"""
What happened in a turn, taken in entry by entry, the newest first.
"""

from __future__ import annotations

from typing import Any, Final, cast

from .authors import author_of, is_stop_feedback, prompt_text, queued_author
from .entries import Entry, as_dict, as_text, blocks_of, content_of, texts_of
from .notices import notices_in
from .record import Message, Notice, ToolUse
from .tool_outcomes import Outcome, outcome_of

KEPT: Final = 4_000
"""Characters kept of a text in a call's input."""
RICH: Final = 1_000
"""Calls, the newest, of which texts are kept whole up to their limits; of older ones only what a line needs."""
POOR: Final = 600
_BULKY: Final = frozenset({"content", "old_string", "new_string", "new_source", "edits", "todos"})
_ASIDE: Final = frozenset(
    [
        "Bash",
        "BashOutput",
        "TaskOutput",
        "AgentOutputTool",
        "KillBash",
        "KillShell",
        "TaskStop",
        "TaskGet",
        "TaskUpdate",
        "Read",
        "Grep",
        "Glob",
    ]
)
"""Tools that name a task without making it run again."""


class Happenings:
    """
    The turn so far. Whatever is decided by what comes later can be decided at once, since the later was seen before.
    """

    def __init__(self) -> None:
        self.calls: dict[str, ToolUse] = {}
        """Newest first."""
        self.replies: set[str] = set()
        """The ids of the agent's entries."""
        self.later_prompts: list[str] = []
        """Newest first."""
        self.prompt_ids: dict[str, None] = {}
        self.notices: dict[str, Notice] = {}
        """Newest first."""
        self.ended: set[str] = set()
        self.resumed: set[str] = set()
        self.pending: dict[str, None] = {}
        self.feedbacks = 0
        self.plan_mode: bool | None = None
        self.version = ""
        self.cwd = ""
        self._last: Message | None = None
        self._outcomes: dict[str, Outcome] = {}
        self._fetched: set[str] = set()
        self._queue_emptied = False
        self._in_feedback = False

    @property
    def last_message(self) -> Message | None:
        """
        The newest message of the agent.
        """
        return self._last

    def add(self, entry: Entry, *, subagent: bool = False) -> None:
        """
        Take in the entry before those that were taken in already.
        """
        self.version = self.version or as_text(entry.get("version"))
        self.cwd = self.cwd or as_text(entry.get("cwd"))
        match entry.get("type"):
            case "assistant":
                self._assistant(entry)
            case "user":
                self._user(entry, subagent=subagent)
            case "attachment":
                self._attachment(as_dict(entry.get("attachment")))
            case "queue-operation":
                self._queue(entry)
            case "permission-mode":
                self._mode(entry.get("permissionMode"))
            case _:
                pass

    def prompt(self, entry: Entry) -> None:
        """
        Take in the human prompt, with which the turn begins.
        """
        self.version = self.version or as_text(entry.get("version"))
        self.cwd = self.cwd or as_text(entry.get("cwd"))
        self._prompt_id(entry)
        self._mode(entry.get("permissionMode"))

    def unread_result(self, call_id: str) -> None:
        """
        Take in that a call has a result, too long to be read.
        """
        if call_id not in self.calls:
            self._outcomes.setdefault(call_id, Outcome("unknown"))

    def _assistant(self, entry: Entry) -> None:
        message = as_dict(entry.get("message"))
        if not message:
            return
        self._in_feedback = False
        message_id = as_text(message.get("id")) or as_text(entry.get("uuid"))
        self.replies.add(as_text(entry.get("uuid")))
        content = message.get("content")
        for use in reversed(blocks_of(content, "tool_use")):
            self._call(use)
        self._message(message_id, entry, message, content)

    def _message(self, message_id: str, entry: Entry, message: Entry, content: object) -> None:
        if self._last is not None and self._last.id != message_id:
            return
        last = self._last or Message(message_id, "")
        self._last = Message(
            message_id,
            "\n\n".join(part for part in (*texts_of(content), last.text) if part),
            last.stop_reason or as_text(message.get("stop_reason")),
            last.is_api_error or bool(entry.get("isApiErrorMessage")) or message.get("model") == "<synthetic>",
            last.calls_tool or bool(blocks_of(content, "tool_use")),
        )

    def _call(self, use: Entry) -> None:
        call_id, name = as_text(use.get("id")), as_text(use.get("name"))
        # A resumed session repeats calls; the newest was seen first.
        if not call_id or not name or call_id in self.calls:
            return
        given, outcome = as_dict(use.get("input")), self._outcomes.pop(call_id, None)
        self.calls[call_id] = self._kept(ToolUse(call_id, name, _compact(given), outcome))
        if outcome is None or outcome.state in ("ok", "background"):
            again = resumed_by(name, given)
            if outcome and outcome.state == "background":
                again = again | {outcome.task_id}
            self.resumed.update(again - self.ended)
        if name == "ExitPlanMode" and outcome and outcome.state == "ok":
            self._mode("default")

    def _kept(self, use: ToolUse) -> ToolUse:
        if len(self.calls) < RICH:
            return use
        given = {key: value[:POOR] if isinstance(value, str) else value for key, value in use.input.items()}
        outcome = use.outcome
        if outcome is not None:
            room = 0 if outcome.state == "ok" else POOR
            outcome = outcome._replace(head=outcome.head[:room], tail=outcome.tail[-room:] if room else "")
        return ToolUse(use.id, use.name, given, outcome)

    def _user(self, entry: Entry, *, subagent: bool) -> None:
        self._prompt_id(entry)
        self._mode(entry.get("permissionMode"))
        content = content_of(entry)
        for block in blocks_of(content, "tool_result"):
            call_id = as_text(block.get("tool_use_id"))
            if call_id and call_id not in self._outcomes and call_id not in self.calls:
                self._outcomes[call_id] = outcome_of(entry, block)

        author = author_of(entry, subagent=subagent)
        if author == "feedback":
            self._feedback()
        elif author == "notification":
            self._delivered(content)

    def _attachment(self, attachment: Entry) -> None:
        kind = attachment.get("type")
        if kind in ("plan_mode", "plan_mode_exit"):
            self._mode("plan" if kind == "plan_mode" else "default")
        elif is_stop_feedback(attachment):
            self._feedback()
        elif kind == "queued_command":
            self._queued(attachment)
        elif kind == "task_status":
            self._fetched.add(as_text(attachment.get("taskId")))

    def _queued(self, attachment: Entry) -> None:
        prompt, author = attachment.get("prompt"), queued_author(attachment)
        if author == "notification":
            self._delivered(prompt)
        elif author == "person":
            self.later_prompts.append(prompt_text(prompt))

    def _queue(self, entry: Entry) -> None:
        content, operation = as_text(entry.get("content")), entry.get("operation")
        if operation == "popAll":
            self._queue_emptied = True
        if not content.lstrip().startswith("<task-notification>"):
            return

        told = notices_in(content)
        if operation == "remove":
            # Delivered in the middle of a turn, or to a subagent whose file this is not (measured on client 2.1.328).
            self._fetched.update(told)
        elif operation == "enqueue":
            self._ended(told)
            if not self._queue_emptied:
                self.pending.update(dict.fromkeys(task for task in told if task not in self._fetched))

    def _delivered(self, content: object) -> None:
        told = notices_in(content)
        self._fetched.update(told)
        self._ended(told)

    def _ended(self, told: dict[str, Notice]) -> None:
        for task, notice in told.items():
            self.notices.setdefault(task, notice)
        self.ended.update(task for task in told if task not in self.resumed)

    def _feedback(self) -> None:
        # One stop leaves several entries; a reply of the agent stands between two stops.
        self.feedbacks += not self._in_feedback
        self._in_feedback = True

    def _prompt_id(self, entry: Entry) -> None:
        if prompt_id := as_text(entry.get("promptId")):
            self.prompt_ids.setdefault(prompt_id)

    def _mode(self, mode: object) -> None:
        if self.plan_mode is None and isinstance(mode, str):
            self.plan_mode = mode == "plan"


def resumed_by(tool: str, given: Entry) -> set[str]:
    """
    What a call may make run again: everything short that it names.
    """
    if tool in _ASIDE:
        return set()
    return {value for value in given.values() if isinstance(value, str) and len(value) < 100}


def _compact(given: Entry) -> Entry:
    return {key: _short(value) for key, value in list(given.items())[:20] if key not in _BULKY}


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return value[:KEPT]
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, list) and value:
        first = cast("list[object]", value)[0]
        return as_text(as_dict(first).get("question") or first)[:KEPT]
    return None
