"""
What happened in a turn, taken in entry by entry, the newest first.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Final, cast

from .authors import delivered_in, prompt_text, queued_author
from .clipped import clip
from .entries import Entry, as_dict, as_text, blocks_of, content_of, is_synthetic, texts_of
from .notices import notices_in
from .record import Message, Notice, ToolUse
from .tool_outcomes import TASK_TOOLS, Outcome, as_launch, outcome_of

KEPT: Final = (3_000, 1_000)
"""Characters kept of the start and the end of a text in a call's input."""
KEPT_OF_COMMANDS: Final = (50_000, 50_000)
"""Of a command, however old: what it runs may stand behind a long here-document."""
RICH: Final = 1_000
"""Calls, the newest, of which both ends of a long text are kept; of older ones only what a line needs."""
FAILURES: Final = 200
"""Failed calls, the newest, of which the result is kept, however old."""
POOR: Final = 200
MOST: Final = 10_000
"""Calls, the newest, that are kept at all, and with them every launch; others are counted."""
FIRST: Final = 10
"""Calls kept of the others: the first of the turn."""
OWN_COMMANDS: Final = ("turngate-hook", "turngate/stopgate/__main__.py")
_BULKY: Final = frozenset({"content", "old_string", "new_string", "new_source", "edits", "todos"})
_ASIDE: Final = frozenset(
    [
        *TASK_TOOLS,
        "Bash",
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
        self.first_calls: deque[ToolUse] = deque(maxlen=FIRST)
        """The first of the turn where not all are kept, newest first."""
        self.calls_left_out: dict[str, int] = {}
        self.own_holds = 0
        self.replies: set[str] = set()
        """The ids of the agent's entries."""
        self.later_prompts: list[str] = []
        """Newest first."""
        self.prompt_ids: dict[str, None] = {}
        self.notices: dict[str, Notice] = {}
        """Newest first."""
        self.ended: set[str] = set()
        self.resumed: set[str] = set()
        self.pending: dict[str, int] = {}
        """Tasks whose notification was enqueued and not delivered, and when that was taken in."""
        self.plan_mode: bool | None = None
        self.version = ""
        self.cwd = ""
        self._last: Message | None = None
        self._taken_in = 0
        self._outcomes: dict[str, Outcome] = {}
        self._came_back: dict[str, int] = {}
        self._failures = 0
        self._fetched: set[str] = set()
        self._queue_emptied = False
        self._stop_was_held = False

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
        self._taken_in += 1
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
        self._stop_was_held = False
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
            last.is_api_error or is_synthetic(entry),
            last.calls_tool or bool(blocks_of(content, "tool_use")),
        )

    def _call(self, use: Entry) -> None:
        call_id, name = as_text(use.get("id")), as_text(use.get("name"))
        # A resumed session repeats calls; the newest was seen first.
        if not call_id or not name or call_id in self.calls:
            return
        given, outcome = as_dict(use.get("input")), self._outcomes.pop(call_id, None)
        outcome = outcome and as_launch(outcome, name, given)
        if name in TASK_TOOLS and outcome and outcome.state == "ok":
            self._looked_at(given, self._came_back[call_id])
        self._keep(self._kept(ToolUse(call_id, name, _compact(given), outcome)))
        if outcome is None or outcome.state in ("ok", "background"):
            again = resumed_by(name, given)
            if outcome and outcome.state == "background":
                again = again | {outcome.task_id}
            self.resumed.update(again - self.ended)
        if name == "ExitPlanMode" and outcome and outcome.state == "ok":
            self._mode("default")

    def _keep(self, use: ToolUse) -> None:
        if len(self.calls) < MOST or (use.outcome and use.outcome.state == "background"):
            self.calls[use.id] = use
            return
        if len(self.first_calls) == FIRST:
            left_out = self.first_calls[0].name
            self.calls_left_out[left_out] = self.calls_left_out.get(left_out, 0) + 1
        self.first_calls.append(use)

    def _kept(self, use: ToolUse) -> ToolUse:
        failed = use.outcome is not None and use.outcome.state not in ("ok", "background", "unknown")
        self._failures += failed
        if len(self.calls) < RICH:
            return use
        given = {
            key: clip(value, start=POOR, end=0) if isinstance(value, str) and key != "command" else value
            for key, value in use.input.items()
        }
        outcome = use.outcome
        if outcome is not None and not (failed and self._failures <= FAILURES):
            outcome = outcome._replace(text="")
        return ToolUse(use.id, use.name, given, outcome)

    def _looked_at(self, given: Entry, came_back: int) -> None:
        """
        Take in that the agent looked after the tasks that a call names: what was enqueued before the result is no news any more.
        """
        for task in given.values():
            if not isinstance(task, str):
                continue
            self._fetched.add(task)
            if self.pending.get(task, 0) > came_back:
                del self.pending[task]

    def _user(self, entry: Entry, *, subagent: bool) -> None:
        self._prompt_id(entry)
        self._mode(entry.get("permissionMode"))
        content = content_of(entry)
        for block in blocks_of(content, "tool_result"):
            call_id = as_text(block.get("tool_use_id"))
            if call_id and call_id not in self._outcomes and call_id not in self.calls:
                self._came_back[call_id] = self._taken_in
                outcome = self._outcomes[call_id] = outcome_of(entry, block)
                if outcome.state == "ok" and outcome.task_id:
                    self._fetched.add(outcome.task_id)

        self._delivered(delivered_in(entry, subagent=subagent))

    def _attachment(self, attachment: Entry) -> None:
        kind = attachment.get("type")
        if kind in ("plan_mode", "plan_mode_exit"):
            self._mode("plan" if kind == "plan_mode" else "default")
        elif kind == "queued_command":
            self._queued(attachment)
        elif kind == "hook_blocking_error":
            self._held(attachment, as_text(as_dict(attachment.get("blockingError")).get("command")))
        elif kind == "hook_success" and _goes_on(attachment):
            self._held(attachment, as_text(attachment.get("command")))
        elif kind == "task_status":
            self._fetched.add(as_text(attachment.get("taskId")))

    def _held(self, attachment: Entry, command: str) -> None:
        """
        Take in that a hook held. However many installs of this one did at one stop, that is one hold.
        """
        is_own = any(own in command for own in OWN_COMMANDS)
        if is_own and attachment.get("hookEvent") in ("Stop", "SubagentStop"):
            self.own_holds += not self._stop_was_held
            self._stop_was_held = True

    def _queued(self, attachment: Entry) -> None:
        prompt, author = attachment.get("prompt"), queued_author(attachment)
        if author == "notification":
            self._delivered(prompt)
        elif author == "person":
            self.later_prompts.append(prompt_text(prompt))

    def _queue(self, entry: Entry) -> None:
        content, operation = as_text(entry.get("content")), entry.get("operation")
        if operation == "popAll" or (operation == "remove" and not content):
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
                self.pending.update((task, self._taken_in) for task in told if task not in self._fetched)

    def _delivered(self, content: object) -> None:
        told = notices_in(content)
        self._fetched.update(told)
        self._ended(told)

    def _ended(self, told: dict[str, Notice]) -> None:
        for task, notice in told.items():
            self.notices.setdefault(task, notice)
        self.ended.update(task for task in told if task not in self.resumed)

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


def _goes_on(attachment: Entry) -> bool:
    """
    Whether a hook's answer makes the agent go on: a hold in the style of `context`, which the client takes for a success.
    """
    try:
        said: object = json.loads(as_text(attachment.get("stdout")))
    except (ValueError, RecursionError):
        return False
    return bool(as_dict(as_dict(said).get("hookSpecificOutput")).get("additionalContext"))


def _compact(given: Entry) -> Entry:
    return {
        key: _short(value, KEPT_OF_COMMANDS if key == "command" else KEPT)
        for key, value in list(given.items())[:20]
        if key not in _BULKY
    }


def _short(value: Any, kept: tuple[int, int] = KEPT) -> Any:
    if isinstance(value, str):
        return clip(value, start=kept[0], end=kept[1])
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, list) and value:
        first = cast("list[object]", value)[0]
        return _short(as_text(as_dict(first).get("question") or first))
    return None
