"""
The real `turngate-hook` process and its channels: whatever it is fed, it exits 0 with a valid answer or none.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turngate.costing.outcomes import OUTCOMES
from turngate.stopgate import hook as hook_module
from turngate.stopgate.answering import clock_since
from turngate.stopgate.in_process import answer_event

from .hook_runner import (
    HELD,
    IMPATIENT,
    ISOLATED,
    PYTHON,
    RUNNING_TASK,
    Hook,
    Ran,
    a_stop,
    assert_sound,
)


def as_bytes(**fields: object) -> bytes:
    """
    A stop as the client sends it.
    """
    return json.dumps(a_stop(**fields)).encode()


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        pytest.param(b"", "pass_not_a_turn", id="empty"),
        pytest.param(b"garbage", "pass_not_a_turn", id="garbage"),
        pytest.param(as_bytes()[:-20], "pass_not_a_turn", id="truncated"),
        pytest.param(as_bytes() * 2, "pass_not_a_turn", id="two-objects"),
        pytest.param(b"\xff\xfe\x00\x80", "pass_not_a_turn", id="not-utf-8"),
        pytest.param(b"\0" * 1000, "pass_not_a_turn", id="nuls"),
        pytest.param(b"[" * 100_000, "pass_not_a_turn", id="deep"),
        pytest.param(b'{"hook_event_name":' + b"1" * 6000 + b"}", "pass_not_a_turn", id="long-number"),
        pytest.param(b'["Stop"]', "pass_not_a_turn", id="a-list"),
        pytest.param(b"null", "pass_not_a_turn", id="null"),
        pytest.param(b'{"session_id": "s"}', "pass_not_a_turn", id="no-name"),
        pytest.param(b'{"hook_event_name": {}}', "pass_not_a_turn", id="name-of-another-type"),
        pytest.param(b'{"hook_event_name": "Stop"}', "pass_empty_reply", id="only-a-name"),
        pytest.param(b"\xef\xbb\xbf" + as_bytes(), "pass_no_judge", id="byte-order-mark"),
        pytest.param(as_bytes(last_assistant_message="\ud83d \udc00 done"), "pass_no_judge", id="lone-surrogates"),
        pytest.param(as_bytes().replace(b"Done", b"\xff\xfe"), "pass_no_judge", id="not-utf-8-in-a-text"),
        pytest.param(b"x" * 50_000_000, "pass_not_a_turn", id="50-mb-of-garbage"),
        pytest.param(as_bytes(last_assistant_message="x" * 50_000_000), "pass_not_a_turn", id="50-mb-in-a-reply"),
    ],
)
def test_any_standard_input_is_answered(hook: Hook, data: bytes, outcome: str) -> None:
    """
    What is no event passes, with one line that says so; what can be read is judged for what it says.
    """
    ran = hook.run(data)

    assert_sound(ran)
    assert not ran.holds
    assert hook.outcomes() == [outcome]
    assert bool(ran.err) == (outcome == "pass_not_a_turn")


@pytest.mark.parametrize(
    "odd", ["../../../etc/x", "/", "a\0b", "..", "x" * 10_000, "\ud800", "a\nb", "'; DROP TABLE turns; --"], ids=ascii
)
def test_odd_ids_are_only_names(hook: Hook, odd: str) -> None:
    """
    Ids name rows in the store and never files, so any id keeps its own count.
    """
    names = {"session_id": odd, "prompt_id": odd, "agent_id": odd}
    ran = hook.run(a_stop(**names, background_tasks=[RUNNING_TASK | {"id": odd}]))

    assert_sound(ran)
    assert ran.holds
    assert [(line["outcome"], line["spent"]) for line in hook.log()] == [("block_background", 1)]
    assert all(path.name.startswith("turngate.db") for path in hook.state.iterdir())


def test_an_input_that_never_ends_is_not_waited_for(hook: Hook) -> None:
    """
    A channel that stays open after the event, as one that is never silent, is left after a few seconds.
    """
    process = hook.start(IMPATIENT)
    assert process.stdin
    process.stdin.write(json.dumps(HELD).encode())
    process.stdin.flush()
    assert process.wait(60) == 0
    open_ended = Ran(0, *process.communicate())
    endless = hook.run(b"", ("sh", "-c", 'exec "$@" </dev/zero', "sh", *IMPATIENT))

    assert_sound(open_ended)
    assert_sound(endless)
    assert open_ended.holds
    assert hook.outcomes() == ["block_background", "pass_not_a_turn"]


def test_a_gate_that_hangs_gives_up_by_itself(hook: Hook) -> None:
    """
    Whatever hangs, the process ends before the client's own timeout, and in silence.
    """
    hanging = """
import threading
from turngate.stopgate import hook, in_process
in_process.GRACE_S = 0.2
in_process.answer_question = lambda *_, **__: threading.Event().wait()
hook.main()
"""
    ran = hook.run(HELD, (PYTHON, "-I", "-c", hanging), environ={"TURNGATE_JUDGE_DEADLINE_S": "0.1"})

    assert ran == (0, b"", b"")
    assert hook.outcomes() == ["pass_judge_timeout"]


@pytest.mark.parametrize(
    ("redirections", "outcome"),
    [
        ("<&-", "pass_not_a_turn"),
        (">&-", "block_background"),
        ("2>&-", "block_background"),
        (">&- 2>&-", "block_background"),
        ("<&- >&- 2>&-", "pass_not_a_turn"),
        (">/dev/full", "pass_internal_error"),
    ],
)
def test_a_closed_channel_harms_nothing(hook: Hook, redirections: str, outcome: str) -> None:
    """
    The number of a closed channel is given to no other file: the store stays whole, and nothing is printed into it.
    """
    ran = hook.shell(HELD, f'"$@" {redirections}')

    assert_sound(ran)
    assert ran.holds == (redirections == "2>&-")
    assert outcome in hook.outcomes()
    with closing(sqlite3.connect(hook.state / "turngate.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_an_answer_does_not_depend_on_the_debug_log(hook: Hook, redirection: str) -> None:
    """
    A line for stderr that cannot be written takes no answer away.
    """
    (hook.work / ".turngate.toml").write_text("judge.model = 'mine'\n")

    assert hook.run(HELD | {"cwd": str(hook.work)}).err.count(b"\n") == 1
    ran = hook.shell(HELD | {"cwd": str(hook.work), "session_id": "other"}, f'"$@" {redirection}')

    assert_sound(ran)
    assert ran.holds
    assert hook.outcomes() == ["block_background", "block_background"]


@pytest.mark.parametrize("descriptors", range(4, 12))
def test_too_few_descriptors_end_without_a_traceback(hook: Hook, descriptors: int) -> None:
    """
    Where not even the channels can be taken, the turn ends in silence. Below that the interpreter itself does not start.
    """
    ran = hook.run(HELD, ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *ISOLATED))
    if b"Fatal Python error" in ran.err:
        pytest.skip("the interpreter needs more descriptors")

    assert_sound(ran)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
TASKS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "id": ANYTHING | st.sampled_from(["b1", "b2"]),
            "type": ANYTHING | st.sampled_from(["shell", "monitor"]),
            "status": ANYTHING | st.just("running"),
            "description": ANYTHING,
            "command": ANYTHING,
        },
    ),
    max_size=3,
)
EVENTS = st.fixed_dictionaries(
    {"hook_event_name": st.sampled_from(["Stop", "SubagentStop", "StopFailure"]) | ANYTHING},
    optional={
        **dict.fromkeys(
            ("session_id", "prompt_id", "agent_id", "agent_type", "last_assistant_message", "permission_mode"), ANYTHING
        ),
        **dict.fromkeys(
            ("transcript_path", "agent_transcript_path", "cwd"),
            ANYTHING | st.sampled_from(["/", "/dev/null", "~", "/nonexistent"]),
        ),
        "background_tasks": TASKS | ANYTHING,
        "session_crons": st.lists(st.dictionaries(st.sampled_from(["schedule", "prompt"]), ANYTHING)) | ANYTHING,
        "stop_hook_active": ANYTHING,
    },
)
INPUTS = (
    st.binary(max_size=50)
    | EVENTS.map(lambda event: json.dumps(event).encode())
    | ANYTHING.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
ENVIRONMENTS = st.dictionaries(
    st.sampled_from(
        [
            *("TURNGATE_GATE_MODE", "TURNGATE_GATE_CONTINUATIONS", "TURNGATE_GATE_EVENTS", "TURNGATE_BACKGROUND_MODE"),
            *("TURNGATE_JUDGE_BACKEND", "TURNGATE_JUDGE_API_KEY_ENV", "TURNGATE_CONFIG", "CLAUDE_PROJECT_DIR"),
            *("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED", "ANTHROPIC_BASE_URL", "XDG_CONFIG_HOME"),
        ]
    ),
    st.sampled_from(["block", "shadow", "off", "0", "1", "Stop", "scripted", "anthropic", "/dev/zero", "/"]) | WORDS,
    max_size=4,
)
PLACES = st.sampled_from(["state", "other", "file", "file/state"])


@given(data=INPUTS, environ=ENVIRONMENTS, place=PLACES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_input_in_any_environment_is_answered(
    tmp_path: Path, data: bytes, environ: dict[str, str], place: str
) -> None:
    """
    In this process, for speed: nothing is raised, the answer is valid, and a state that cannot be kept holds nothing.
    """
    (tmp_path / "file").touch()
    surroundings: Mapping[str, str] = {
        "HOME": str(tmp_path),
        **environ,
        "TURNGATE_STATE_DIR": str(tmp_path / place),
    }
    answer = answer_event(data, surroundings, clock_since(time.monotonic()))
    ran = Ran(0, answer.stdout, answer.stderr)

    assert_sound(ran)
    assert not (ran.holds and place.startswith("file"))


@given(data=INPUTS)
@settings(max_examples=24, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_input_is_answered_by_the_process(hook: Hook, data: bytes) -> None:
    """
    The same through the real process: each input leaves one more decision, with an outcome of the closed set.
    """
    before = len(hook.log())
    ran = hook.run(data)
    log = hook.log()

    assert_sound(ran)
    assert len(log) == before + 1
    assert log[-1]["outcome"] in OUTCOMES
    assert log[-1]["outcome"] != "pass_internal_error"


def test_the_guard_is_the_variable_that_our_own_clients_get() -> None:
    """
    The name is a contract with whatever starts a client.
    """
    assert hook_module.GUARD == "TURNGATE_GUARD"
