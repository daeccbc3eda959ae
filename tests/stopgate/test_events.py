"""
The hook's input: what is read from it, and what does no harm.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.events import BackgroundTask, BadEvent, Cron, Event, read_event

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


def as_input(**fields: Any) -> bytes:
    return json.dumps({"hook_event_name": "Stop", **fields}).encode() + b"\n"


def test_reads_what_the_client_sends() -> None:
    """
    Each field that the gate needs is taken from the client's names.
    """
    event = read_event(
        as_input(
            hook_event_name="SubagentStop",
            session_id="s1",
            transcript_path="/t.jsonl",
            agent_transcript_path="/a.jsonl",
            cwd="/project/src",
            prompt_id="p1",
            agent_id="a1",
            agent_type="general-purpose",
            last_assistant_message="Done.",
            permission_mode="plan",
            background_tasks=[
                {"id": "b1", "type": "shell", "status": "running", "description": "Build", "command": "make"}
            ],
            session_crons=[{"id": "c1", "schedule": "*/5 * * * *", "recurring": True, "prompt": "look again"}],
            something_new={"x": 1},
        ),
        {"CLAUDE_PROJECT_DIR": "/project", "CLAUDE_CODE_SESSION_ATTENDED": "0"},
    )

    assert event == Event(
        name="SubagentStop",
        session_id="s1",
        transcript_path="/t.jsonl",
        agent_transcript_path="/a.jsonl",
        cwd="/project/src",
        prompt_id="p1",
        agent_id="a1",
        agent_type="general-purpose",
        reply="Done.",
        tasks=(BackgroundTask("b1", "shell", "running", "Build", "make"),),
        crons=(Cron("*/5 * * * *", "look again"),),
        permission_mode="plan",
        project="/project",
        attended=False,
    )
    assert event.own_transcript == "/a.jsonl"


def test_every_field_but_the_name_is_optional() -> None:
    """
    Where the client says nothing, nothing is known: no reply is not an empty reply.
    """
    event = read_event(as_input(), {})

    assert event == Event("Stop")
    assert event.reply is None


@pytest.mark.parametrize(
    "tasks",
    [
        pytest.param(None, id="null"),
        pytest.param({"id": "b1"}, id="an object"),
        pytest.param(["b1", 3, None], id="a list of texts"),
        pytest.param("b1", id="a text"),
    ],
)
def test_background_tasks_of_another_shape_are_unknown(tasks: object) -> None:
    """
    Pitfall 5: the list can be absent, null, an object or a list of strings; then nothing is known, and nothing breaks.
    """
    assert read_event(as_input(background_tasks=tasks), {}).tasks == ()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\n", id="blank"),
        pytest.param(b"{", id="cut off"),
        pytest.param(b"\xff\xfe\x00", id="not text"),
        pytest.param(b"null", id="null"),
        pytest.param(b'["Stop"]', id="a list"),
        pytest.param(b"{}", id="without a name"),
        pytest.param(b'{"hook_event_name": 3}', id="a name that is a number"),
        pytest.param(b"[" * 100_000, id="nested too deeply"),
        pytest.param(b"\0" * 1000, id="NULs"),
    ],
)
def test_what_is_no_event_is_refused_in_one_line(data: bytes) -> None:
    """
    Garbage is named, not crashed on.
    """
    with pytest.raises(BadEvent) as caught:
        read_event(data, {})

    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_part_of_the_event() -> None:
    """
    Some shells put one in front.
    """
    assert read_event(b"\xef\xbb\xbf" + as_input(session_id="s"), {}).session_id == "s"


def test_lone_surrogates_and_nuls_are_replaced() -> None:
    """
    Neither a file, a database nor a socket takes them (pitfall 23).
    """
    event = read_event(
        b'{"hook_event_name": "Stop", "session_id": "a\\u0000\\ud800b", "last_assistant_message": "\\udfff!"}', {}
    )

    assert event.session_id.encode() == "a\ufffd?b".encode()
    assert event.reply is not None
    assert event.reply.encode()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(" " * 1_985 + "ghp_" + "a1B2" * 9, id="by us"),
        pytest.param("curl -H x ghp_a1B2a1… [+25 chars]", id="by the client"),
    ],
)
def test_a_secret_that_a_cut_has_halved_is_left_out(text: str) -> None:
    """
    Pitfall 39: half a secret has no shape any more, so the word at the cut goes with it.
    """
    event = read_event(
        as_input(
            background_tasks=[{"id": "b1", "status": "running", "description": text, "command": text}],
            session_crons=[{"prompt": text}],
        ),
        {},
    )

    assert "ghp_" not in repr(event)


def test_long_ids_stay_apart() -> None:
    """
    Two ids of 10 kB that differ only at their end are two ids, of bounded length.
    """
    first, second = (read_event(as_input(session_id="x" * 10_000 + end), {}).session_id for end in "ab")

    assert first != second
    assert max(len(first), len(second)) <= 200


@pytest.mark.parametrize(
    ("environ", "attended"),
    [
        pytest.param({"CLAUDE_CODE_SESSION_ATTENDED": "1"}, True, id="attended"),
        pytest.param({"CLAUDE_CODE_SESSION_ATTENDED": "0"}, False, id="headless"),
        pytest.param({"CLAUDE_CODE_ENTRYPOINT": "cli"}, True, id="older client in a terminal"),
        pytest.param({"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, False, id="older client without one"),
        pytest.param({"CLAUDE_CODE_ENTRYPOINT": "claude-vscode"}, None, id="older client in an editor"),
        pytest.param({}, None, id="not said"),
    ],
)
def test_says_whether_a_person_is_there(environ: dict[str, str], attended: bool | None) -> None:
    """
    The client's own word decides, its entry point where it has none.
    """
    assert read_event(as_input(), environ).attended is attended


@given(st.binary(max_size=300))
def test_any_bytes_are_an_event_or_are_refused(data: bytes) -> None:
    """
    Nothing but `BadEvent` comes out of arbitrary bytes.
    """
    try:
        read_event(data, {})
    except BadEvent:
        return


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "session_id",
                "cwd",
                "prompt_id",
                "agent_id",
                "agent_type",
                "background_tasks",
                "session_crons",
                "last_assistant_message",
            ]
        ),
        JSON_VALUES,
    )
)
def test_any_values_can_be_encoded(fields: dict[str, Any]) -> None:
    """
    Whatever the fields hold, the event's texts can be written anywhere.
    """
    event = read_event(as_input(**fields), {})

    for text in (event.session_id, event.cwd, event.reply or "", event.agent_type or ""):
        assert "\0" not in text
        assert text.encode().decode() == text
