"""
One line per tool call: what was asked of the tool, and what became of it.

`Bash: pytest -q -> exit 1: 2 failed, 3 passed`, `Edit: src/a.py -> ok`, `Read: a.py -> ok, read-only`. Masked before
anything is cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

from ...rubric.masking import cut
from ...rubric.turn import ToolCall
from ..transcript.clipped import Clipped, clip
from ..transcript.entries import as_text
from ..transcript.record import Notice, ToolUse
from ..transcript.tool_outcomes import COLLECTORS, Outcome
from .masked import masked, masked_end
from .shell import without_here_documents
from .steps import SHELLS, Kind

NAME: Final = 60
ASKED: Final = 200
"""Characters of what was asked."""
CAME_BACK: Final = 200
"""Characters of a result's end."""
SHOWN: Final = (3_000, 1_000)
"""Characters of the two ends of a command that are looked at for its line."""
PRINTED: Final = 500
"""Characters of both ends of what a shell printed, where a check's summary may stand before other output."""
REPORT: Final = 500
"""Characters of a subagent's report: it is evidence in its own right."""

_Printed = Callable[[str], str]
_AGENTS: Final = frozenset({"Task", "Agent"})
_TO_DO_LISTS: Final = frozenset(["TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList"])
_TELLING: Final = COLLECTORS | {"AskUserQuestion", "SendMessage"}
_WHAT_WAS_ASKED: Final = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "path",
    "url",
    "query",
    "description",
    "questions",
    "skill",
    "subject",
    "to",
    "taskId",
    "task_id",
    "bash_id",
    "shell_id",
)
_PATHS: Final = frozenset({"file_path", "notebook_path", "path"})
_CLIENT_NOTES: Final = ("Shell cwd was reset to", "<system-reminder>", "</system-reminder>")


_RULER: Final = re.compile(r"^[=━─*~-]{4,} ?| ?[=━─*~-]{4,}$")
_LINES_LEFT_OUT: Final = "[… lines left out …]"


def tool_call(
    use: ToolUse, kind: Kind, *, cwd: str = "", notice: Notice | None = None, needs_more: bool = False
) -> ToolCall:
    """
    The call as the judge sees it. *notice* is what was told of the end of a task that it started.

    *needs_more* keeps both ends of what a shell printed, not the last lines alone.
    """
    printed = both_ends if needs_more else last_lines
    name, asked, became = one_line(use.name, NAME), _asked(use, cwd), _became(use, kind, printed)
    line = f"{name}: {asked} -> {became}" if asked else f"{name} -> {became}"
    if notice is None:
        return ToolCall(name, line, kind, has_failed(use))
    return ToolCall(name, f"{line}; {_told(notice)}", kind, has_failed(use) or bool(notice.exit_code))


def has_failed(use: ToolUse) -> bool:
    """
    Whether a call surely came to nothing: an error, a refusal, an interruption.
    """
    return use.outcome is not None and use.outcome.state not in ("ok", "background", "unknown")


def told_call(task: str, notice: Notice) -> ToolCall:
    """
    A line for the end of a task that an earlier turn started.
    """
    asked = _without_arrows(one_line(f"{task} {notice.summary}", ASKED))
    return ToolCall("Notification", f"Notification: {asked} -> {_told(notice)}", "other", bool(notice.exit_code))


def _told(notice: Notice) -> str:
    state = one_line(notice.status, 30) or "ended"
    if notice.exit_code is not None:
        state = f"{state}, exit {notice.exit_code}"
    report = one_line(notice.report, REPORT, keep="both")
    return f'{state}, reported: "{report}"' if report else state


def one_line(text: str, characters: int, *, keep: Literal["start", "end", "both"] = "start") -> str:
    """
    The text clean, masked, on one line, and then cut.
    """
    return cut(" ".join(masked(text).split()), characters, keep=keep)


def relative(path: str, cwd: str) -> str:
    """
    A path as seen from the working directory, where it lies under it.
    """
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd.rstrip("/") else path


def _asked(use: ToolUse, cwd: str) -> str:
    for key in _WHAT_WAS_ASKED:
        value = as_text(use.input.get(key))
        if value:
            value = shown_command(value) if key == "command" else relative(value, cwd) if key in _PATHS else value
            return _without_arrows(one_line(value, ASKED, keep="both"))
    first = next((value for value in use.input.values() if isinstance(value, str) and value), "")
    return _without_arrows(one_line(first, ASKED, keep="both"))


def shown_command(command: str) -> str:
    """
    The command without its here-documents, and with no more of it than is masked in little time.
    """
    if isinstance(command, Clipped):
        return command
    return clip(without_here_documents(command), start=SHOWN[0], end=SHOWN[1])


def _without_arrows(asked: str) -> str:
    # What stands behind the first arrow of a line is the outcome, and no command may write its own.
    return asked.replace(" -> ", " → ")


def _became(use: ToolUse, kind: Kind, printed: _Printed) -> str:
    outcome = use.outcome
    if outcome is None:
        return "no result yet"
    match outcome.state:
        case "background":
            return f"started in background {one_line(outcome.task_id, NAME)}"
        case "refused by the user" | "refused" | "interrupted" | "unknown":
            return _with(_STATES[outcome.state], one_line(outcome.text, CAME_BACK))
        case "error":
            return _failed(use, outcome, printed)
        case "ok":
            return _succeeded(use, outcome, kind, printed)


_STATES: Final = {
    "refused by the user": "refused by the user",
    "refused": "refused",
    "interrupted": "interrupted",
    "unknown": "result too long to be read",
}


def _failed(use: ToolUse, outcome: Outcome, printed: _Printed) -> str:
    state = "error" if outcome.exit_code is None else f"exit {outcome.exit_code}"
    return _with(state, printed(outcome.text) if use.name in SHELLS else one_line(outcome.text, CAME_BACK))


def _succeeded(use: ToolUse, outcome: Outcome, kind: Kind, printed: _Printed) -> str:
    if use.name in SHELLS:
        # An exit status that the client takes for no error is still not 0.
        state = f"ok, {one_line(outcome.note, NAME)}" if outcome.note else "exit 0"
        return _with(state, printed(outcome.text))
    if use.name in _AGENTS:
        return f'reported: "{_report(outcome)}"'
    if kind == "read":
        return "ok, read-only"
    if kind == "edit" or use.name in _TO_DO_LISTS:
        return "ok"
    telling = use.name in _TELLING or use.name.startswith("mcp__")
    return _with(_state_of_task(use, outcome), last_lines(outcome.text) if telling else "")


def _state_of_task(use: ToolUse, outcome: Outcome) -> str:
    if use.name not in COLLECTORS or outcome.is_over is None:
        return "ok"
    state = "ended" if outcome.is_over else "still running"
    return state if outcome.exit_code is None else f"{state}, exit {outcome.exit_code}"


def _report(outcome: Outcome) -> str:
    """
    The subagent's own words, without what the client puts around them.
    """
    text = masked(outcome.text)
    if text.startswith("[Subagent hand-back]"):
        text = text.partition("\n")[2]
    text = text.partition("\nagentId: ")[0].partition("<usage>")[0]
    return cut(" ".join(text.split()), REPORT, keep="both")


def last_lines(text: str) -> str:
    """
    The last lines that say something, up to `CAME_BACK` characters, on one line, with a mark where lines before them are left out.
    """
    lines = [line for line in masked_end(text).splitlines() if _says_something(line)]
    kept = ""
    for line in reversed(lines):
        line = _RULER.sub("", " ".join(line.split()))
        longer = f"{line} | {kept}" if kept else line
        if kept and len(longer) > CAME_BACK:
            return f"{_LINES_LEFT_OUT} | {kept}"
        kept = longer
    kept = cut(kept, CAME_BACK, keep="end")
    return f"{_LINES_LEFT_OUT} | {kept}" if isinstance(text, Clipped) and kept else kept


def both_ends(text: str) -> str:
    """
    The first and the last lines that say something, up to `PRINTED` characters, on one line.
    """
    lines = (_RULER.sub("", " ".join(line.split())) for line in masked(text).splitlines() if _says_something(line))
    return cut(" | ".join(lines), PRINTED, keep="both")


def _says_something(line: str) -> bool:
    return any(character.isalnum() for character in line) and not line.lstrip().startswith(_CLIENT_NOTES)


def _with(state: str, said: str) -> str:
    return f"{state}: {said}" if said else state
