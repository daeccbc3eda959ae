"""
Real sessions and captures: every turn is found, as a plain forward reading finds it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from turngate.rubric.library import load
from turngate.rubric.render import render
from turngate.stopgate.evidence.builder import build_turn
from turngate.stopgate.transcript import read

from ...shared import SHARED, needs_shared

FILES = (
    sorted(SHARED.glob("captures/*transcript.jsonl")) + sorted(SHARED.glob("data/transcripts/*/*.jsonl"))
    if SHARED
    else []
)

# The forward reading below knows these sessions, not every client: it stays as plain as it can be.
NOT_TYPED = (
    "<task-notification>",
    "<local-command-",
    "[Request interrupted by user",
    "Operation stopped by hook",
    "Caveat: The messages below",
)


class ExpectedTurn(NamedTuple):
    """
    A turn as the plain reading finds it.
    """

    end: int
    """The offset of the first byte behind the turn."""
    request: str
    previous_reply: str
    calls: list[str]


def text_of(entry: dict[str, Any]) -> str:
    content = entry["message"]["content"] if "message" in entry else entry.get("content", "")
    if isinstance(content, str):
        return content
    return "\n\n".join(block["text"] for block in content if block["type"] == "text")


def is_typed(entries: list[dict[str, Any]], index: int) -> bool:
    entry = entries[index]
    if entry["type"] != "user" or entry.get("isMeta") or "tool_use_id" in json.dumps(entry["message"]["content"]):
        return False
    text = text_of(entry)
    if not text.startswith(("<command-name>", "<command-message>")):
        return not text.startswith(NOT_TYPED)
    for later in entries[index + 1 :]:
        if later["type"] == "assistant" or text_of(later).startswith(("<command-name>", "<command-message>")):
            return True
        if text_of(later).startswith("<local-command-stdout>"):
            return False
    return True


def is_agents(entry: dict[str, Any]) -> bool:
    return entry["type"] == "assistant" and entry["message"].get("model") != "<synthetic>"


def expected_turns(data: bytes, *, subagent: bool) -> list[ExpectedTurn]:
    offsets, entries, offset = list[int](), list[dict[str, Any]](), 0
    for line in data.splitlines(keepends=True):
        entry = json.loads(line)
        if entry["type"] in ("user", "assistant", "system") and (subagent or not entry.get("isSidechain")):
            entries.append(entry)
            offsets.append(offset)
        offset += len(line)

    starts = [index for index in range(len(entries)) if is_typed(entries, index)]
    turns = list[ExpectedTurn]()
    # A file may begin in the middle of a turn.
    previous = last_text([entry for entry in entries[: starts[0]] if is_agents(entry)])
    for start, end in zip(starts, [*starts[1:], len(entries)], strict=True):
        agent = [entry for entry in entries[start:end] if is_agents(entry)]
        calls = [call for entry in agent for call in calls_in(entry)]
        stop = offsets[end] if end < len(entries) else len(data)
        turns.append(ExpectedTurn(stop, text_of(entries[start]), previous, list(dict.fromkeys(calls))))
        previous = last_text(agent) if agent else previous
    return turns


def last_text(agent: list[dict[str, Any]]) -> str:
    spoken = [entry for entry in agent if text_of(entry) or calls_in(entry)]
    last = [entry for entry in spoken if entry["message"]["id"] == spoken[-1]["message"]["id"]]
    if any(calls_in(entry) or entry["message"].get("stop_reason") == "tool_use" for entry in last):
        return ""
    return "\n\n".join(text_of(entry) for entry in last)


def calls_in(entry: dict[str, Any]) -> list[str]:
    return [block["id"] for block in entry["message"]["content"] if block["type"] == "tool_use"]


def as_typed(request: str) -> str:
    name = re.search("<command-name>/?(.*?)</command-name>", request)
    if not name or not request.startswith("<command-"):
        return request
    args = re.search("<command-args>(.*?)</command-args>", request, re.DOTALL)
    return f"/{name[1]} {args[1].strip() if args else ''}".strip()


@needs_shared
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem[:8]}")
def test_every_turn_is_found(file: Path, tmp_path: Path):
    """
    Read up to the end of each turn: the same request, previous reply and calls as by reading forwards from the start, and a
    judge's request that stays under its ceiling.
    """
    data, subagent = file.read_bytes(), ".agent." in file.name
    turns = expected_turns(data, subagent=subagent)
    part = tmp_path / "part.jsonl"

    assert turns
    for turn in turns:
        part.write_bytes(data[: turn.end])
        record = read(str(part), subagent=subagent)
        assert record.request == as_typed(turn.request).strip()
        assert record.previous_reply == turn.previous_reply[-8_000:]
        assert [call.id for call in record.calls] == turn.calls
        assert record.damaged == 0
        request = render(load(), build_turn(record, reply=record.final_reply))
        assert request.estimated_tokens <= 2_500
        # By another measure too: English text and code have three bytes a token and more.
        assert len(f"{request.system}{request.user}".encode()) <= 3 * 2_500


@needs_shared
def test_there_are_many_turns():
    """
    The test above is not empty.
    """
    turns = [turn for file in FILES for turn in expected_turns(file.read_bytes(), subagent=".agent." in file.name)]

    assert len(FILES) >= 50
    assert len(turns) >= 130


@needs_shared
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem[:8]}")
def test_a_truncated_line_in_a_real_session_costs_itself(file: Path, tmp_path: Path):
    """
    A line cut off in front of the last one and spliced with it: the turn is the same, and one line is counted.
    """
    lines = file.read_bytes().rstrip(b"\n").split(b"\n")
    whole, damaged = tmp_path / "whole", tmp_path / "damaged"
    whole.write_bytes(b"\n".join(lines))
    damaged.write_bytes(b"\n".join([*lines[:-1], lines[0][: len(lines[0]) // 2] + lines[-1]]))
    subagent = ".agent." in file.name

    expected, record = read(str(whole), subagent=subagent), read(str(damaged), subagent=subagent)

    assert record._replace(damaged=0, path="") == expected._replace(path="")
    assert record.damaged <= 1
