"""
What a transcript tells of one turn. The texts are raw: they leave this folder through `evidence` alone, masked.
"""

from __future__ import annotations

from typing import NamedTuple

from .entries import Entry
from .tool_outcomes import Outcome


class Message(NamedTuple):
    """
    One message of the agent, put together from its entries.
    """

    id: str
    text: str
    stop_reason: str = ""
    is_api_error: bool = False
    """An error of the API, posing as a reply."""
    calls_tool: bool = False


class ToolUse(NamedTuple):
    """
    One tool call with its outcome; None while there is no result.
    """

    id: str
    name: str
    input: Entry
    """Without what is only bulk, and long texts clipped."""
    outcome: Outcome | None = None


class Notice(NamedTuple):
    """
    What a task notification says of a task's end.
    """

    status: str = ""
    summary: str = ""
    report: str = ""
    """A subagent's report, clipped."""
    exit_code: int | None = None


class Record(NamedTuple):
    """
    One turn as its transcript tells it.
    """

    problem: str = ""
    """Why the file could not be read; empty where it was."""
    path: str = ""
    human_id: str = ""
    """The id of the entry with the last human prompt; one that stays where the prompt is too long to be read."""
    prompt_ids: tuple[str, ...] = ()
    """All `promptId`s seen under the human prompt; a task notification starts a new one."""
    request: str = ""
    later_prompts: tuple[str, ...] = ()
    previous_reply: str = ""
    """The end of the last text of the turn before; empty where that turn ended without any."""
    last_message: Message | None = None
    calls: tuple[ToolUse, ...] = ()
    """In the order in which they were made, each once. Of very many the first few and the newest."""
    calls_left_out: dict[str, int] = {}  # noqa: RUF012 - never written to
    """How many calls between those are not kept, by tool."""
    launches: dict[str, str] = {}  # noqa: RUF012 - never written to
    """What each task launched in this turn does, by task id."""
    notices: dict[str, Notice] = {}  # noqa: RUF012 - never written to
    """The newest notification of each task in this turn, by task id."""
    ended_tasks: frozenset[str] = frozenset()
    """Tasks whose notification stands in this turn, and that were not resumed after it."""
    resumed_tasks: frozenset[str] = frozenset()
    wakeups_pending: tuple[str, ...] = ()
    """Tasks whose notification is enqueued and not delivered yet."""
    own_holds: int = 0
    """Stops of this turn that this hook held, as the client wrote down."""
    plan_mode: bool = False
    client_version: str = ""
    cwd: str = ""
    damaged: int = 0
    """Lines of which something was lost, or had to be pieced together."""
    skipped: int = 0
    """Lines too long to be held."""
    out_of_reach: bool = False
    """The beginning of the turn lies further back than is read."""

    @property
    def wakeup_pending(self) -> bool:
        """
        Whether the client will wake the agent with a notification that it did not see yet.
        """
        return bool(self.wakeups_pending)

    @property
    def final_reply(self) -> str:
        """
        The text of the last message where the turn can end with it, else nothing.
        """
        last = self.last_message
        return last.text if last and not last.calls_tool and last.stop_reason != "tool_use" else ""
