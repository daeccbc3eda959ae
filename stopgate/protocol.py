"""
The answer, in the words of the client's hook protocol: nothing at all for a pass, one JSON object otherwise.
"""

from __future__ import annotations

import json
from typing import Final, Literal

Style = Literal["decision", "context"]

CONTEXT_SINCE: Final = (2, 1, 163)
"""The first client that goes on with the turn for `additionalContext`."""

OUTPUT_LIMIT: Final = 10_000
"""The client moves a longer string to a file."""


def answer(*, event_name: str, reason: str, message: str, style: Style) -> bytes:
    """
    Give the bytes for standard output: zero bytes where there is neither a reason to hold nor a message to the person.
    """
    fields: dict[str, object] = {}
    if reason and style == "context":
        fields["hookSpecificOutput"] = {"hookEventName": event_name, "additionalContext": reason[:OUTPUT_LIMIT]}
    elif reason:
        fields |= {"decision": "block", "reason": reason[:OUTPUT_LIMIT]}
    if message:
        fields["systemMessage"] = message
    return json.dumps(fields).encode() if fields else b""


def tool_answer(*, event_name: str, permission: str, reason: str) -> bytes:
    """
    Give the bytes for standard output before a tool: zero bytes where there is no objection.
    """
    if not permission:
        return b""
    fields = {"hookEventName": event_name, "permissionDecision": permission, "permissionDecisionReason": reason}
    return json.dumps({"hookSpecificOutput": fields}).encode()


def style_for(wanted: str, client_version: str) -> Style:
    """
    Choose how a hold is said; `auto` takes the quieter form where the client's version is known to understand it.
    """
    if wanted == "auto":
        return "context" if _version(client_version) >= CONTEXT_SINCE else "decision"
    return "context" if wanted == "context" else "decision"


def _version(text: str) -> tuple[int, ...]:
    parts = text.split("-")[0].split(".")
    return tuple(int(part) for part in parts) if all(part.isascii() and part.isdigit() for part in parts) else ()
