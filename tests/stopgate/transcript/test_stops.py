"""
Past stops: where the client asked its hooks, found in one pass, each with the turn that stood there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngate.stopgate.transcript import read
from turngate.stopgate.transcript.lines import LONGEST_LINE, Unopened
from turngate.stopgate.transcript.stops import PastStop, stops_in

from ...shared import SHARED, needs_shared
from ..transcripts import Session, line_of, notification
from .test_reader_properties import ENTRY

FILES = (
    sorted(SHARED.glob("captures/*transcript.jsonl")) + sorted(SHARED.glob("data/transcripts/*/*.jsonl"))
    if SHARED
    else []
)


def stops_of(session: Session, folder: Path, **how: Any) -> list[PastStop]:
    return list(stops_in(session.write(folder), **how))


def replies_of(session: Session, folder: Path) -> list[str]:
    found = stops_of(session, folder)
    for stop in found:
        assert read(stop.path, subagent=stop.is_subagent, end=stop.end).final_reply == stop.reply
    return [stop.reply for stop in found]


def started(*, prompt: str = "do it") -> Session:
    session = Session()
    session.prompt(prompt, prompt_id="p1")
    return session


@needs_shared
@pytest.mark.parametrize("name", ["false-claim", "background-subagent"])
def test_the_stops_are_those_at_which_the_client_asked_its_hooks(name: str):
    """
    The same replies, prompts, agents and running tasks, in the same order, as the hook's own inputs have.
    """
    assert SHARED is not None
    inputs = [
        json.loads(line) for line in (SHARED / f"captures/{name}.hook-inputs.jsonl").read_text().splitlines() if line
    ]
    files = sorted(SHARED.glob(f"captures/{name}.transcript.jsonl")) + sorted(
        SHARED.glob(f"captures/{name}.agent.transcript.jsonl")
    )
    found = [stop for file in files for stop in stops_in(str(file))]

    for event in ("Stop", "SubagentStop"):
        asked = [fields for fields in inputs if fields["hook_event_name"] == event]
        told = [stop for stop in found if stop.is_subagent == (event == "SubagentStop")]
        assert [
            (stop.reply, stop.prompt_id, stop.session_id, stop.agent_id) for stop in sorted(told, key=lambda s: s.at)
        ] == [
            (fields["last_assistant_message"], fields["prompt_id"], fields["session_id"], fields.get("agent_id", ""))
            for fields in asked
        ]
        if event == "Stop":
            assert [[(task.id, task.type, task.status, task.description) for task in stop.tasks] for stop in told] == [
                [(task["id"], task["type"], task["status"], task["description"]) for task in fields["background_tasks"]]
                for fields in asked
            ]


@needs_shared
@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param("eight-blocks", 9, id="held-until-the-client-gives-up"),
        pytest.param("additional-context", 2, id="goes-on-by-additional-context"),
        pytest.param("background-shell", 3, id="woken-by-a-notification"),
        pytest.param("http-refused", 1, id="a-hook-that-fails"),
        pytest.param("subagent.agent", 2, id="a-subagent-held-once"),
        pytest.param("subagent", 1, id="its-parent"),
    ],
)
def test_each_capture_has_as_many_stops_as_the_client_made(name: str, count: int):
    """
    Counted by hand in the captures.
    """
    assert SHARED is not None
    assert len(list(stops_in(str(SHARED / f"captures/{name}.transcript.jsonl")))) == count


@needs_shared
@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem[:8]}")
def test_read_up_to_a_stop_the_file_has_its_turn(file: Path):
    """
    In real sessions: the reply of each stop is that of the record up to its end, and stops lie in order.
    """
    found = list(stops_in(str(file)))

    assert [stop.end for stop in found] == sorted({stop.end for stop in found})
    for stop in found:
        assert read(str(file), subagent=stop.is_subagent, end=stop.end).final_reply == stop.reply


@needs_shared
def test_the_real_sessions_have_as_many_stops_as_a_plain_count():
    """
    134 in the 44 sessions: last texts in front of a prompt (87), the end (33), a hook's feedback (6) or a local command (8).
    """
    assert SHARED is not None
    files = SHARED.glob("data/transcripts/*/*.jsonl")
    assert sum(1 for file in files for _ in stops_in(str(file))) == 134


def test_what_comes_next_makes_a_stop(tmp_path: Path):
    """
    A prompt, a hook's feedback, a delivered notification and the end of the file.
    """
    session = started()
    session.runs("Read", "text", file_path="a.py")
    session.says("One.")
    session.held("not so")
    session.says("Two.")
    session.prompt("next", prompt_id="p2")
    session.says("Three.")
    session.prompt(notification("b1"), origin={"kind": "task-notification"}, prompt_id="p3")
    session.says("Four.")

    found = stops_of(session, tmp_path)

    assert [(stop.reply, stop.prompt_id) for stop in found] == [
        ("One.", "p1"),
        ("Two.", "p1"),
        ("Three.", "p2"),
        ("Four.", "p3"),
    ]
    assert replies_of(session, tmp_path) == ["One.", "Two.", "Three.", "Four."]


def test_a_message_that_calls_a_tool_ends_no_turn(tmp_path: Path):
    """
    Neither by its stop reason, nor by a call in a later entry of the same message, nor where the agent goes on.
    """
    session = started()
    session.says("Let me look.", message="m1", stop=None)
    session.calls("Read", "t1", message="m1", file_path="a.py")
    session.result("t1", "text")
    session.says("I go on.", message="m2", stop=None)
    session.runs("Read", "text", file_path="b.py")
    session.says("And on.", stop="tool_use")

    assert replies_of(session, tmp_path) == []


def test_a_message_of_several_entries_is_one_reply(tmp_path: Path):
    """
    Its texts together, up to the end of its last entry.
    """
    session = started()
    session.says("First.", message="m1", stop=None)
    session.says("Second.", message="m1")
    session.block({"type": "thinking", "thinking": "hm"}, message="m1", stop="end_turn")
    session.metadata(2)

    assert replies_of(session, tmp_path) == ["First.\n\nSecond."]


@pytest.mark.parametrize(
    "text", ["[Request interrupted by user]", "[Request interrupted by user for tool use]"], ids=["reply", "tool"]
)
def test_an_interrupted_turn_has_no_stop(text: str, tmp_path: Path):
    """
    The client asks no hook where the person broke the turn off.
    """
    session = started()
    session.says("I begin", stop=None)
    session.prompt([{"type": "text", "text": text}])
    session.prompt("do that instead")
    session.says("Done.")

    assert replies_of(session, tmp_path) == ["Done."]


def test_an_error_of_the_api_is_no_stop(tmp_path: Path):
    """
    The client tells of it by another event.
    """
    session = started()
    session.says("API Error: overloaded", isApiErrorMessage=True, model="<synthetic>")
    session.prompt("again")
    session.says("Done.")

    assert replies_of(session, tmp_path) == ["Done."]


def test_a_reply_that_was_cut_off_and_goes_on_is_no_stop(tmp_path: Path):
    """
    Behind `max_tokens` the client bids the agent to go on; the person's next prompt means that it did not.
    """
    session = started()
    session.says("A long", stop="max_tokens")
    session.prompt("Output token limit hit. Resume directly.", isMeta=True)
    session.says("story.", stop="max_tokens")
    session.prompt("thanks")

    assert replies_of(session, tmp_path) == ["story."]


def test_an_ended_turn_without_any_text_is_a_stop(tmp_path: Path):
    """
    The hook is asked there too, with an empty message.
    """
    session = started()
    session.block({"type": "thinking", "thinking": "nothing to say"}, stop="end_turn")
    session.prompt("and?")

    assert replies_of(session, tmp_path) == [""]


def test_a_subagents_entries_in_the_sessions_file_are_no_stop(tmp_path: Path):
    """
    Older clients write them there.
    """
    session = started()
    session.calls("Task", "t1", prompt="look")
    session.prompt("look", isSidechain=True)
    session.says("The report.", isSidechain=True)
    session.result("t1", "The report.")
    session.says("Done.")

    assert replies_of(session, tmp_path) == ["Done."]


def test_a_subagents_own_file_tells_itself(tmp_path: Path):
    """
    Its stops are the subagent's, under the parent's session.
    """
    session = Session(sidechain=True)
    session.prompt("look", agentId="a1", sessionId="s1")
    session.says("The report.", agentId="a1", sessionId="s1")

    (stop,) = stops_of(session, tmp_path)

    assert (stop.is_subagent, stop.agent_id, stop.session_id) == (True, "a1", "s1")
    assert stops_of(session, tmp_path, subagent=False) == []


def test_a_reply_that_the_person_went_back_behind_was_a_stop(tmp_path: Path):
    """
    The hook was asked at the time; up to there, the file holds its turn.
    """
    session = started()
    session.says("One.")
    fork = session.leaf
    session.prompt("left")
    session.says("On a branch that is left.")
    session.leaf = fork
    session.prompt("instead")
    session.says("Two.")

    assert replies_of(session, tmp_path) == ["One.", "On a branch that is left.", "Two."]


def test_what_a_resumed_session_repeats_is_no_other_stop(tmp_path: Path):
    """
    The same entries a second time, and then what is new.
    """
    session = started()
    session.says("One.")
    session.lines *= 2
    session.prompt("next")
    session.says("Two.")

    assert [stop.reply for stop in stops_of(session, tmp_path)] == ["One.", "Two."]


def test_tasks_run_from_their_launch_to_their_end(tmp_path: Path):
    """
    A shell until its notification, a subagent until it is stopped; a collected one is over.
    """
    session = started()
    session.runs("Bash", "", details={"backgroundTaskId": "b1"}, command="make", run_in_background=True)
    session.runs("Agent", "", details={"isAsync": True, "agentId": "a1"}, description="Review", prompt="x")
    session.runs("Bash", "", details={"backgroundTaskId": "b2"}, command="slow", run_in_background=True)
    session.says("All run.")
    session.prompt("go on")
    session.runs("TaskOutput", "", details={"task": {"task_id": "b2", "status": "completed"}}, task_id="b2")
    session.queue("enqueue", notification("b1"))
    session.prompt(notification("b1"), origin={"kind": "task-notification"})
    session.says("One is left.")
    session.prompt("stop it")
    session.runs("TaskStop", "stopped", task_id="a1")
    session.says("None is left.")

    first, second, third = stops_of(session, tmp_path)

    assert [(task.id, task.type, task.status, task.description, task.command) for task in first.tasks] == [
        ("b1", "shell", "running", "", "make"),
        ("a1", "subagent", "running", "Review", ""),
        ("b2", "shell", "running", "", "slow"),
    ]
    assert [task.id for task in second.tasks] == ["a1"]
    assert third.tasks == ()


def test_a_subagent_that_is_written_to_runs_again(tmp_path: Path):
    """
    After its end, until its next one.
    """
    session = started()
    session.runs("Agent", "", details={"isAsync": True, "agentId": "a1"}, description="Review", prompt="x")
    session.prompt(notification("a1"), origin={"kind": "task-notification"})
    session.says("It is done.")
    session.prompt("ask it again")
    session.runs("SendMessage", "sent", to="a1", message="again")
    session.says("It runs again.")

    assert [len(stop.tasks) for stop in stops_of(session, tmp_path)] == [0, 1]


def test_a_transcript_that_prints_a_launch_launches_nothing(tmp_path: Path):
    """
    The client's words in a command's output are no launch.
    """
    session = Session(sidechain=True)
    session.prompt("look", agentId="a1")
    session.runs("Bash", "Command running in background with ID: b1. x", command="cat old.log")
    session.says("Done.", agentId="a1")

    assert [stop.tasks for stop in stops_of(session, tmp_path)] == [()]


def test_lines_with_spaces_are_read_too(tmp_path: Path):
    """
    As another writer may leave them.
    """
    session = started()
    session.runs("Read", "text", file_path="a.py")
    session.says("One.")
    session.prompt("next")
    session.lines = [json.dumps(json.loads(line)).encode() for line in session.lines]

    assert replies_of(session, tmp_path) == ["One."]


def test_a_result_too_long_to_be_held_is_passed_over(tmp_path: Path):
    """
    And a prompt of that length ends the turn before it.
    """
    session = started()
    session.runs("Bash", "x" * (LONGEST_LINE + 10), command="yes")
    session.says("One.")
    session.prompt("y" * (2 * LONGEST_LINE))
    session.says("Two.")

    assert replies_of(session, tmp_path) == ["One.", "Two."]


@pytest.mark.parametrize(
    ("block", "stop", "expected"),
    [
        pytest.param({"type": "text", "text": "x" * LONGEST_LINE}, "end_turn", [True], id="reply"),
        pytest.param({"type": "text", "text": '"stop_reason": "x"\n' * 300_000}, None, [True], id="reason-unknown"),
        pytest.param({"type": "text", "text": "x" * LONGEST_LINE}, "tool_use", [], id="goes-on"),
        pytest.param({"type": "tool_use", "input": {"x": "x" * LONGEST_LINE}}, None, [], id="call"),
    ],
)
def test_a_line_that_is_too_long_may_end_a_turn(
    block: dict[str, object], stop: str | None, expected: list[bool], tmp_path: Path
):
    """
    By its two ends: a stop that is cut.
    """
    session = Session()
    session.prompt("Go on")
    session.block(block, stop=stop)

    found = stops_of(session, tmp_path)

    assert [one.is_cut for one in found] == expected


@pytest.mark.parametrize("path", ["missing.jsonl", ""], ids=["missing", "folder"])
def test_what_is_no_file_says_so(path: str, tmp_path: Path):
    """
    With the same error as the reader's own.
    """
    with pytest.raises(Unopened):
        list(stops_in(str(tmp_path / path)))


@pytest.fixture(scope="module", name="place")
def _place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("transcripts") / "session.jsonl"


@given(data=st.binary(max_size=400))
def test_any_bytes_are_passed_through(data: bytes, place: Path):
    """
    No file raises.
    """
    place.write_bytes(data)
    list(stops_in(str(place)))


@settings(max_examples=20)
@given(entries=st.lists(ENTRY, max_size=6))
def test_any_entries_are_passed_through(entries: list[dict[str, Any]], place: Path):
    """
    No field is trusted.
    """
    place.write_bytes(b"\n".join(line_of(entry) for entry in entries))
    for stop in stops_in(str(place)):
        assert stop.end <= place.stat().st_size


STEP = st.sampled_from(["prompt", "says", "more", "tool", "held", "notified", "interrupted", "error", "metadata"])


def take(session: Session, step: str, number: int, *, is_more: bool) -> None:
    match step:
        case "prompt":
            session.prompt(f"prompt {number}", prompt_id=f"p{number}")
        case "says":
            session.says(f"Reply {number}.", message=f"m{number}")
        case "more" if is_more:
            session.says(f"More {number}.", message=f"m{number - 1}", stop=None)
        case "tool":
            session.says("I look.", message=f"m{number}", stop=None)
            session.runs("Bash", "text", command="ls")
        case "held":
            session.held("no")
        case "notified":
            session.prompt(notification("b1"), origin={"kind": "task-notification"})
        case "interrupted":
            session.prompt("[Request interrupted by user]")
        case "error":
            session.says("API Error", isApiErrorMessage=True)
        case _:
            session.metadata(1)


@given(steps=st.lists(STEP, max_size=14))
def test_each_stop_of_a_session_is_found_again_by_the_reader(steps: list[str], place: Path):
    """
    Whatever happened in whatever order: up to a stop's end, the reader finds its reply, and no end comes twice.
    """
    session = started()
    for number, step in enumerate(steps):
        take(session, step, number, is_more=number > 0 and steps[number - 1] == "says")
    place.write_bytes(session.data())

    found = list(stops_in(str(place)))

    assert len({stop.end for stop in found}) == len(found)
    for stop in found:
        assert read(str(place), end=stop.end).final_reply == stop.reply
