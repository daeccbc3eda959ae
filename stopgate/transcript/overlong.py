"""
What is known of a line that is too long to be held: the fields at its two ends, and how its content begins.
"""

from __future__ import annotations

import json
import re
from typing import Final

from .entries import Entry, as_dict, as_text
from .lines import Overlong

_MESSAGE: Final = re.compile(rb'"message"\s*:\s*\{')
_RESULT: Final = re.compile(rb'"type"\s*:\s*"tool_result"|"tool_use_id"\s*:\s*"')
_CALL_ID: Final = re.compile(rb'"tool_use_id"\s*:\s*"([^"\\]+)"')
_TEXT: Final = re.compile(rb'"(?:text|content)"\s*:\s*"((?:[^"\\]|\\.){0,4000})', re.DOTALL)
_CUT_ESCAPE: Final = re.compile(r"\\u[0-9a-fA-F]{0,3}$")
_LOOKED_AT: Final = 4_096
"""Bytes of a message in which its first block begins."""


def user_entry(line: Overlong) -> Entry:
    """
    The `user` entry that a line holds, its content only begun; empty where it holds another kind, or does not tell.

    An id that stays stands in for a `uuid` that is not to be seen.
    """
    message = _MESSAGE.search(line)
    first = _object(line[: message.start()] + b'"message":0}') if message else {}
    if not message or not first:
        return {}
    entry = {**first, **_last_fields(line.tail)}
    if entry.get("type") != "user":
        return {}

    entry["uuid"] = as_text(entry.get("uuid")) or as_text(entry.get("promptId")) or _hash(line)
    entry["message"] = {"role": "user", "content": _content(line[message.end() :])}
    return entry


def _content(body: bytes) -> object:
    if _RESULT.search(body, 0, _LOOKED_AT):
        call = _CALL_ID.search(body, 0, _LOOKED_AT)
        return [{"type": "tool_result", "tool_use_id": call[1].decode("utf-8", "replace") if call else ""}]
    text = _TEXT.search(body)
    # What takes that much room in front of a text is an image.
    return _unescaped(text[1]) if text and text.start() < _LOOKED_AT else [{"type": "image"}]


def _unescaped(raw: bytes) -> str:
    text = raw.decode("utf-8", "ignore")
    for whole in (text, _CUT_ESCAPE.sub("", text)):
        try:
            return as_text(json.loads(f'"{whole}"', strict=False))
        except ValueError:
            continue
    return ""


def _last_fields(tail: bytes) -> Entry:
    """
    The fields behind the message. A quote within a text is escaped, so only what stands outside can be read as fields.
    """
    found: Entry = {}
    start = tail.rfind(b',"')
    while start >= 0:
        found = _object(b"{" + tail[start + 1 :]) or found
        start = tail.rfind(b',"', 0, start)
    return found


def _object(text: bytes) -> Entry:
    try:
        return as_dict(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _hash(line: bytes) -> str:
    import hashlib

    return f"head:{hashlib.sha256(line).hexdigest()[:32]}"
