"""
One line of a transcript as entries: what can be read of it, however damaged it is.

Nothing in a line is trusted: the format is no documented contract, and damaged lines occur in the field.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, cast

Entry = dict[str, Any]

_NEEDED = re.compile(
    rb'"type"\s*:\s*"(?:user|assistant|queue-operation|permission-mode|queued_command|task_status|hook_blocking_error'
    rb'|hook_success|plan_mode|plan_mode_exit)"|<(?:task-id>|local-command-std)'
)
_COMPACT = re.compile(
    rb'"type":"(?:user|assistant|queue-operation|permission-mode|queued_command|task_status|hook_blocking_error'
    rb'|hook_success|plan_mode|plan_mode_exit)"'
)
_SPACED = re.compile(rb'"type"(?=\s|:\s)')
_IMAGE = re.compile(rb'"data"\s*:\s*"[A-Za-z0-9+/=_-]{1000,}"')
_ENTRY_TYPES = frozenset(
    {"user", "assistant", "attachment", "queue-operation", "permission-mode", "system", "progress"}
)
_START = re.compile(
    r'\{\s*"(?:type|parentUuid|uuid|isSidechain|sessionId|message|timestamp|promptId|agentId|userType|cwd|operation)"'
)
_TRIES = 200
"""Each costs a walk over the whole line, by which the decoder counts its lines; together with the effort this bounds the time."""
_MOST_PIECES = 1_000
"""Objects that are taken from one damaged line; in the field two or three are glued together."""
_DECODER = json.JSONDecoder()


class Reading(NamedTuple):
    """
    What one line holds.
    """

    entries: tuple[Entry, ...] = ()
    damaged: bool = False
    """Something of the line was lost, or had to be pieced together."""


def is_needed(line: bytes) -> bool:
    """
    Whether a line can matter for a turn; metadata, close to half of all lines, is not worth parsing.
    """
    # As the client writes, which a pattern that begins with fixed bytes finds several times as fast; else as anybody may write.
    if _COMPACT.search(line) or b"<task-id>" in line or b"<local-command-std" in line:
        return True
    return _SPACED.search(line) is not None and _NEEDED.search(line) is not None


def is_broken(line: bytes) -> bool:
    """
    Whether a line is surely no whole object, at a glance.
    """
    line = line.strip()
    return not (line.startswith(b"{") and line.endswith(b"}"))


def read_line(line: bytes) -> Reading:
    """
    The entries of one line, in their order; damage costs what it hit and no more.
    """
    damaged = b"\0" in line
    kept = _IMAGE.sub(b'"data":""', line) if b'"data"' in line else line
    text = (kept.replace(b"\0", b"") if damaged else kept).decode("utf-8", "replace")

    try:
        value: object = _DECODER.decode(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return Reading(_pieced_together(text), damaged=True)

    if not isinstance(value, dict):
        return Reading(damaged=True)
    return Reading((cast("Entry", value),), damaged)


def _pieced_together(text: str) -> tuple[Entry, ...]:
    """
    Whole objects glued on one line, and whole ones behind the rest of a truncated one.
    """
    found: list[Entry] = []
    tries, effort = _TRIES, 4 * len(text)
    start, whole_so_far = text.find("{"), True
    while start >= 0 and tries and effort > 0 and len(found) < _MOST_PIECES:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            tries -= 1
            effort -= getattr(error, "pos", len(text)) - start
            whole_so_far = False
            start = _next_start(text, start + 1)
            continue

        # Behind damage, an object that ends within the line may be a part of what was truncated.
        rest = text[end : end + 100].lstrip()
        if whole_so_far or (value.get("type") in _ENTRY_TYPES and (not rest or rest.startswith("{"))):
            found.append(value)
        start = text.find("{", end) if whole_so_far else _next_start(text, end)
    return tuple(found)


def _next_start(text: str, position: int) -> int:
    found = _START.search(text, position)
    return found.start() if found else -1


def texts_of(content: object) -> list[str]:
    """
    The texts of a message's content, a string or blocks; images and whatever else is there have none.
    """
    if isinstance(content, str):
        return [content]
    texts = [block if isinstance(block, str) else _text_of_block(as_dict(block)) for block in as_list(content)]
    return [text for text in texts if text is not None]


def _text_of_block(block: Entry) -> str | None:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else None


def blocks_of(content: object, kind: str) -> list[Entry]:
    """
    The content blocks of one kind.
    """
    return [as_dict(block) for block in as_list(content) if as_dict(block).get("type") == kind]


def as_dict(value: object) -> Entry:
    """
    The value where it is an object, else an empty one.
    """
    return cast("Entry", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """
    The value where it is a list, else an empty one.
    """
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """
    The value where it is a string, else an empty one.
    """
    return value if isinstance(value, str) else ""


def is_synthetic(entry: Entry) -> bool:
    """
    Whether the client wrote an `assistant` entry itself: an error of the API, a limit, a filler.
    """
    return bool(entry.get("isApiErrorMessage")) or as_dict(entry.get("message")).get("model") == "<synthetic>"


def content_of(entry: Entry) -> object:
    """
    The content of an entry's message.
    """
    return as_dict(entry.get("message")).get("content")
