"""
One event before a tool: a Bash command is checked for jobs, everything else goes on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..costing.outcomes import Outcome
from .events import Event
from .settings import Settings

TOOL_EVENT: Final = "PreToolUse"

LOGGED_CHARACTERS: Final = 200
"""Of a command, masked."""


class ToolReply(NamedTuple):
    """
    What the gate answers about a tool call.
    """

    outcome: Outcome
    detail: str = ""
    permission: str = ""
    """`deny` or `ask`; empty where the gate has no objection. Never `allow`: that would skip the person's own prompt."""
    reason: str = ""


def decide_tool_call(event: Event, settings: Settings) -> ToolReply:
    """
    Decide about a tool call by its command alone.
    """
    if "off" in (settings.jobs_mode, settings.gate_mode):
        return ToolReply("pass_off")
    if event.tool_name != "Bash":
        return ToolReply("jobs_pass", detail=event.tool_name)
    if event.command is None:
        return ToolReply("jobs_unparsed", detail="no command")
    # The parser costs 30 ms to import.
    from .jobs.check import checked

    found = checked(event.command, allowed=settings.jobs_allow, asks=settings.jobs_mode == "ask")
    if found.outcome != "jobs_deny":
        return ToolReply(found.outcome, detail="" if found.outcome == "jobs_pass" else _logged(event.command))
    if settings.gate_mode == "shadow":
        return ToolReply("jobs_deny", detail=f"shadow: {_logged(event.command)}")
    return ToolReply("jobs_deny", _logged(event.command), settings.jobs_mode, found.reason)


def _logged(command: str) -> str:
    from ..rubric.masking import clean, mask

    text = " ".join(mask(clean(command[: 10 * LOGGED_CHARACTERS])).split())
    return text if len(text) <= LOGGED_CHARACTERS else f"{text[: LOGGED_CHARACTERS - 1]}…"
