"""
What became of a tool call, read from the structure of its result.

The client's own first words of a result count as structure: `Exit code 1`, a refusal, a launch in the background.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from .clipped import clip
from .entries import Entry, as_dict, as_list, as_text, content_of, texts_of

State = Literal["ok", "error", "refused by the user", "refused", "interrupted", "background", "unknown"]

COLLECTORS: Final = frozenset({"BashOutput", "TaskOutput", "AgentOutputTool"})
"""Tools that give what a task of the background has to say."""
TASK_ENDERS: Final = frozenset({"TaskStop", "KillShell", "KillBash"})
TASK_TOOLS: Final = COLLECTORS | TASK_ENDERS

HEAD: Final = 1_000
TAIL: Final = 1_000
"""Kept of the two ends of a result's text, in characters."""


class Outcome(NamedTuple):
    """
    The end of one tool call.
    """

    state: State
    exit_code: int | None = None
    """As far as the client tells; None says nothing."""
    text: str = ""
    """What came back, clipped."""
    task_id: str = ""
    """The task that this call started, or that it collected."""
    is_over: bool | None = None
    """Whether the task that it looked at is over."""
    note: str = ""
    """The client's own reading of an exit code that is no error."""
    claimed_task: str = ""
    """The task that its text says was started, which is true only of a tool that can start one; see `as_launch`."""
    turned_away: bool = False
    """The client marked it as an error of its own, not of the tool's: the call was not run, or not to its end."""


_EXIT: Final = re.compile(r"Exit code (-?\d+)\b[^\S\n]*\n?")
_SHELL_LAUNCH: Final = re.compile(r"Command (?:running in background|was [^\n]*?background[^\n]*?) with ID: ([^\s.]+)")
_AGENT_LAUNCH: Final = re.compile(r"Async agent launched successfully[\s\S]*?agentId: ([^\s.]+)")
_MOVED: Final = re.compile(r"Command was [^\n]*\s*")
"""What the client says of a command that it moved to the background later on, alone on its line."""
_SHELLS: Final = ("Bash", "PowerShell")
_LAUNCHERS: Final = {**dict.fromkeys(_SHELLS, _SHELL_LAUNCH), **dict.fromkeys(("Agent", "Task"), _AGENT_LAUNCH)}
_USER_REFUSAL: Final = re.compile(
    r"The user doesn't want to (?:proceed with this tool use|take this action)[^\n]*?(?:the user said:\n([\s\S]*)|$)",
    re.MULTILINE,
)
_RULE_REFUSAL: Final = re.compile(
    r"Permission (?:to use |for this )[^\n]*\bdenied|Claude requested permissions"
    r"|(?:Hook )?PreToolUse:\S+ (?:hook error|denied)|A PreToolUse hook \("
)
_TAG: Final = re.compile(r"</?tool_use_error>")
_STATUS: Final = re.compile(r"<status>\s*(\w+)\s*</status>")
_DONE: Final = frozenset({"completed", "failed", "killed", "stopped", "cancelled"})
_UNRUN: Final = {"user-rejected": "refused by the user", "interrupted": "interrupted", "cancelled": "interrupted"}


def as_launch(outcome: Outcome, tool: str, given: Entry) -> Outcome:
    """
    The outcome of a call of that tool: in the background, where its text says so and the tool can.

    A shell prints the client's words too where it prints a transcript or a log.
    """
    if not outcome.claimed_task:
        return outcome
    starts = _LAUNCHERS.get(tool)
    is_asked = tool not in _SHELLS or given.get("run_in_background") is True or _MOVED.fullmatch(outcome.text)
    if starts and starts.match(outcome.text) and is_asked:
        return Outcome("background", task_id=outcome.claimed_task)
    return outcome._replace(claimed_task="")


def outcome_of(entry: Entry, block: Entry) -> Outcome:
    """
    The outcome that a `user` entry carries in one `tool_result` block.

    A subagent's transcript has no `toolUseResult`: there the text alone tells of a launch (measured on client 2.1.328),
    and `as_launch` is to be asked with the tool.
    """
    text = "\n".join(texts_of(block.get("content")))
    # `toolUseResult` describes the one result of its entry; beside several, it is nobody's.
    alone = len([part for part in as_list(content_of(entry)) if as_dict(part).get("type") == "tool_result"]) == 1
    details: object = entry.get("toolUseResult") if alone else None

    if block.get("is_error"):
        return _error(text, details, as_text(entry.get("toolDenialKind")))
    launched = _launched(as_dict(details))
    if launched:
        return launched
    outcome = _finished(_report(as_dict(details)) or text, as_dict(details))
    return outcome if details is not None else outcome._replace(claimed_task=_claimed(text))


def _error(text: str, details: object, denial: str) -> Outcome:
    said = _USER_REFUSAL.match(text)
    if denial == "user-rejected" or said or details == "User rejected tool use":
        words = (said[1] or "") if said else ""
        return _ended("refused by the user", words)
    if denial in _UNRUN:
        return Outcome("interrupted")
    if denial or _RULE_REFUSAL.match(text):
        return _ended("refused", text)
    if text.startswith("[Request interrupted by user"):
        return Outcome("interrupted")

    found, turned_away = _EXIT.match(text), text.lstrip().startswith("<tool_use_error>")
    text = _TAG.sub("", text[found.end() :] if found else text)
    code = int(found[1]) if found else None
    return _ended("error", text)._replace(exit_code=code, turned_away=turned_away)


def _launched(details: Entry) -> Outcome | None:
    task = as_text(details.get("backgroundTaskId"))
    if not task and (details.get("isAsync") or details.get("status") == "async_launched"):
        task = as_text(details.get("agentId"))
    return Outcome("background", task_id=task) if task else None


def _claimed(text: str) -> str:
    found = _SHELL_LAUNCH.match(text) or _AGENT_LAUNCH.match(text)
    return found[1] if found else ""


def _report(details: Entry) -> str:
    """
    A subagent's bare report. The client wraps it in some 330 characters of its own for the parent (client 2.1.328).
    """
    return "\n".join(texts_of(details.get("content"))) if details.get("agentId") else ""


def _finished(text: str, details: Entry) -> Outcome:
    if details.get("interrupted") is True:
        return _ended("interrupted", text)
    task = as_dict(details.get("task")) or details
    status = as_text(task.get("status")) or (found[1] if (found := _STATUS.search(text[:HEAD])) else "")
    code = task.get("exitCode")
    return Outcome(
        "ok",
        code if isinstance(code, int) and not isinstance(code, bool) else None,
        clip(text, start=HEAD, end=TAIL),
        as_text(task.get("task_id")) or as_text(task.get("shellId")),
        status in _DONE if status else None,
        as_text(details.get("returnCodeInterpretation")),
    )


def _ended(state: State, text: str) -> Outcome:
    return Outcome(state, text=clip(text, start=HEAD, end=TAIL))
