"""
The turn: all that a rubric may show to a judge.

Every text in here is already free of secrets (see `masking`); nothing in here knows how a client stores a session.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple


class ToolCall(NamedTuple):
    """
    One tool call of the turn, as the one line that the judge sees.
    """

    tool: str
    """The tool's name, by which calls left out are counted."""
    line: str
    """For example `Bash: pytest -q -> exit 1: 2 failed`: one line, masked, some hundred characters at most."""
    kind: Literal["check", "edit", "read", "other"] = "other"
    failed: bool = False


class Check(NamedTuple):
    """
    A command of the turn that is recognised as a check (tests, linters, type checkers, builds).
    """

    command: str
    passed: bool | None
    """None where the outcome cannot be known, for example behind a pipe or while it still runs."""
    edited_after: bool = False
    """Files were edited after it."""


class Facts(NamedTuple):
    """
    What the record of the turn shows without any model.
    """

    edited_files: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    edited_after_last_check: bool | None = None
    """None where nothing was edited, or where no command was recognised as a check."""
    uncollected_background: tuple[str, ...] = ()
    """Background work launched in this turn whose end was not seen."""
    wakeups: tuple[str, ...] = ()
    """Scheduled wake-ups of the session."""
    plan_mode: bool = False
    holds: tuple[str, ...] = ()
    """The reasons for which this turn was held already, oldest first."""
    calls_out_of_reach: bool = False
    """The record of the turn is cut: its beginning could not be read."""


class Turn(NamedTuple):
    """
    One turn of a coding agent, from the last human prompt to the reply that would end it.
    """

    request: str
    """The last human prompt; for a subagent, its dispatch prompt. Empty where it is out of reach."""
    reply: str
    """The whole last reply."""
    previous_reply: str = ""
    """The end of the final reply of the turn before."""
    later_prompts: tuple[str, ...] = ()
    """Prompts typed while the agent was at work."""
    tool_calls: tuple[ToolCall, ...] = ()
    facts: Facts = Facts()
    subagent: bool = False


def as_json(turn: Turn) -> str:
    """
    Write a turn as a JSON object with the names of its fields.
    """
    facts = {**turn.facts._asdict(), "checks": [check._asdict() for check in turn.facts.checks]}
    calls = [call._asdict() for call in turn.tool_calls]
    return json.dumps({**turn._asdict(), "tool_calls": calls, "facts": facts}, ensure_ascii=False)
