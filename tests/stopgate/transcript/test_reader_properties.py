"""
What holds for every transcript, whole, damaged or made up.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.evidence.builder import build_turn
from turngate.stopgate.transcript import Limits, Record, launched_by, notified, read

from ..transcripts import Session, line_of, notification

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
TEXT = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [notification("b1"), "Exit code 1\nx", "<command-name>/x</command-name>", "Stop hook feedback:\nx"]
    ),
)


def field(*likely: object) -> st.SearchStrategy[Any]:
    return st.one_of(st.sampled_from(likely), ANY)


BLOCK = st.fixed_dictionaries(
    {"type": field("text", "tool_use", "tool_result", "image", "thinking")},
    optional={
        "text": TEXT | ANY,
        "id": field("t1", "t2"),
        "tool_use_id": field("t1", "t2"),
        "name": field("Bash", "Edit", "Agent", "TaskOutput", "ExitPlanMode"),
        "input": st.dictionaries(st.sampled_from(["command", "file_path", "task_id", "to"]), TEXT | ANY) | ANY,
        "content": TEXT | ANY,
        "is_error": field(True, False),
    },
)
CONTENT = TEXT | st.lists(BLOCK | TEXT, max_size=3) | ANY
ENTRY = st.fixed_dictionaries(
    {"type": field("user", "assistant", "attachment", "queue-operation", "permission-mode", "system")},
    optional={
        "uuid": field("a", "b", "c"),
        "parentUuid": field("a", "b", "c", None),
        "message": st.fixed_dictionaries({"content": CONTENT}, optional={"id": field("m"), "stop_reason": ANY}) | ANY,
        "attachment": st.fixed_dictionaries(
            {"type": field("queued_command", "hook_blocking_error", "plan_mode", "task_status")},
            optional={"prompt": CONTENT, "commandMode": field("prompt"), "hookEvent": field("Stop"), "origin": ANY},
        )
        | ANY,
        "toolUseResult": st.dictionaries(
            st.sampled_from(["backgroundTaskId", "isAsync", "agentId", "task", "status", "interrupted"]), ANY
        )
        | ANY,
        "origin": st.fixed_dictionaries({"kind": field("human", "peer")}) | ANY,
        "operation": field("enqueue", "popAll", "remove"),
        "content": TEXT | ANY,
        "isMeta": ANY,
        "isSidechain": ANY,
        "permissionMode": field("plan"),
        "promptId": field("p"),
        "version": ANY,
        "cwd": ANY,
        "toolDenialKind": field("user-rejected", "interrupted"),
    },
)


@pytest.fixture(scope="module", name="place")
def _place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("transcripts") / "session.jsonl"


def everything_of(place: Path, data: bytes) -> None:
    place.write_bytes(data)
    for subagent in (False, True):
        record = read(str(place), subagent=subagent)
        assert record.problem == ""
        turn = build_turn(record, reply=record.final_reply, subagent=subagent)
        json.dumps(turn).encode()
        notified(record, {"b1"})
        read(str(place), subagent=subagent, limits=Limits(longest_line=40))
    launched_by(str(place))


@given(data=st.binary(max_size=400))
def test_any_bytes_are_read(data: bytes, place: Path):
    """
    No file raises.
    """
    everything_of(place, data)


@given(entries=st.lists(ENTRY, max_size=8))
def test_any_entries_are_read(entries: list[dict[str, Any]], place: Path):
    """
    No field is trusted: whatever its value, a turn comes out that can be sent.
    """
    everything_of(place, b"\n".join(line_of(entry) for entry in entries))


@cache
def rich_session() -> Session:
    session = Session()
    session.prompt("first", prompt_id="p1")
    session.says("First reply, with \u2028 and 😀.")
    session.prompt("second", prompt_id="p2", uuid="human")
    session.metadata(3, size=700)
    session.calls("Bash", "t1", message="m", command="pytest")
    session.calls("Agent", "t2", message="m", description="Review")
    session.result("t2", "", details={"isAsync": True, "agentId": "a1"})
    session.result("t1", "Exit code 1\n" + "noise\n" * 400 + "1 failed", error=True)
    session.queued("also this")
    session.says("Done.")
    session.held("One test failed.")
    session.queue("enqueue", notification("a1"))
    session.queued(notification("a1", result="Fine."), "task-notification")
    session.says("One test fails.")
    session.metadata(2)
    return session


def told(record: Record) -> Record:
    return record._replace(damaged=0, path="")


@given(block=st.integers(1, 5_000))
def test_no_block_size_changes_the_record(block: int, place: Path):
    """
    Where blocks begin and end is nobody's business.
    """
    place.write_bytes(rich_session().data())

    assert read(str(place), limits=Limits(block=block)) == read(str(place))


@given(content=CONTENT, ends=st.dictionaries(st.text(max_size=8), ANY, max_size=4), block=st.integers(1, 500))
def test_a_line_over_the_limit_has_the_fields_of_its_ends(
    content: object, ends: dict[str, Any], block: int, place: Path
):
    """
    Whatever stands in front of its message, in it and behind it.
    """
    entry = {"type": "user", "isSidechain": False, "message": {"role": "user", "content": content}, "isMeta": True}
    prompt = {"type": "user", "uuid": "human", "message": {"role": "user", "content": "go"}}
    fields = {f"x{key}": value for key, value in ends.items()}
    place.write_bytes(b"\n".join([line_of(prompt), line_of({**fields, **entry, **fields, "uuid": "u", **fields})]))

    record = read(str(place), limits=Limits(block=block, longest_line=len(line_of(prompt))))

    assert record.human_id == "human"


JUNK = st.sampled_from(
    [b"", b"null", b"[]", b"123", b'"x"', b"\0" * 50, b"{", b"}", b"\xff\xfe", b"{}", b'{"type":"user"}']
)


@given(data=st.data())
def test_damage_never_costs_what_stands_around_it(data: st.DataObject, place: Path):
    """
    Junk between entries, truncated entries spliced with whole ones, and entries glued together: the turn is the same.
    """
    whole = rich_session().lines
    pieces: list[bytes] = []
    for line in whole:
        damage = data.draw(st.sampled_from(["none", "none", "junk", "spliced", "glued"]))
        if damage == "junk":
            pieces += [data.draw(JUNK), b"\n"]
        elif damage == "spliced":
            other = data.draw(st.sampled_from(whole))
            pieces.append(other[: data.draw(st.integers(1, len(other) - 2))])
        elif damage == "glued" and pieces:
            pieces.pop()
        pieces += [line, b"\n"]
    place.write_bytes(rich_session().data())
    expected = read(str(place))

    place.write_bytes(b"".join(pieces))

    assert told(read(str(place))) == told(expected)


@given(cut=st.integers(0, 4_000))
def test_a_file_that_still_grows_is_read_up_to_its_last_whole_line(cut: int, place: Path):
    """
    A half-written line at the end costs itself alone.
    """
    whole = rich_session().data()
    cut = min(cut, len(whole))
    place.write_bytes(whole[:cut].rpartition(b"\n")[0])
    expected = read(str(place))

    place.write_bytes(whole[:cut])

    recovered = whole[:cut].rpartition(b"\n")[2].endswith(b"}")
    assert told(read(str(place))) == told(expected) or recovered
