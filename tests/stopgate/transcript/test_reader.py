"""
A turn as its transcript tells it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from turngate.stopgate.transcript import Limits, Record, read

from ..transcripts import Session, notification


def record_of(session: Session, folder: Path, *, subagent: bool = False) -> Record:
    return read(session.write(folder), subagent=subagent)


def two_turns() -> Session:
    session = Session()
    session.prompt("first", prompt_id="p1")
    session.says("First reply.")
    session.prompt("second", prompt_id="p2", uuid="human-2")
    session.says("Let me look.", message="m1", stop="tool_use")
    session.runs("Read", "text", file_path="/home/dev/demo/a.py")
    session.says("Second reply.")
    return session


def test_a_plain_turn(tmp_path: Path):
    """
    The last human prompt, what followed it, and the reply before it.
    """
    record = record_of(two_turns(), tmp_path)

    assert record.problem == ""
    assert (record.human_id, record.prompt_ids) == ("human-2", ("p2",))
    assert record.request == "second"
    assert record.previous_reply == "First reply."
    assert record.last_message is not None
    assert (record.last_message.text, record.last_message.stop_reason) == ("Second reply.", "end_turn")
    assert record.final_reply == "Second reply."
    assert [call.name for call in record.calls] == ["Read"]
    assert record.client_version == "2.1.328"
    assert (record.damaged, record.skipped, record.out_of_reach) == (0, 0, False)


@pytest.mark.parametrize("path", ["", "/absent/file", "/dev/zero", "/", "/a\0b", "/" + "x" * 10_000, "~/absent"])
def test_a_path_without_a_transcript_gives_an_empty_record(path: str):
    """
    After /clear or a resume the path may name no file: the reason is kept, nothing is raised.
    """
    record = read(path)

    assert record.problem
    assert record._replace(problem="", path="") == Record()


def test_a_transcript_under_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """
    A leading tilde stands for the home.
    """
    two_turns().write(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert read("~/session.jsonl").request == "second"


def test_a_deleted_working_directory_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """
    Neither the working directory nor HOME is needed.
    """
    path = two_turns().write(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.delenv("HOME")

    assert read(path).request == "second"
    os.chdir(tmp_path)


def test_metadata_at_the_end_hides_nothing(tmp_path: Path):
    """
    Entries are read, not the last so many lines.
    """
    session = two_turns()
    session.metadata(500, size=2_000)

    assert record_of(session, tmp_path).request == "second"


def test_a_text_not_written_yet_is_not_taken_from_the_turn_before(tmp_path: Path):
    """
    The final message may be missing from the file; then there is no last message, and the previous reply stays what it was.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.prompt("second")

    record = record_of(session, tmp_path)

    assert record.last_message is None
    assert record.final_reply == ""
    assert record.previous_reply == "First reply."


def test_a_message_that_calls_a_tool_is_no_final_reply(tmp_path: Path):
    """
    Text before a tool call comes from the middle of the turn.
    """
    session = Session()
    session.prompt("go")
    session.says("Let me check.", message="m", stop=None)
    session.calls("Bash", message="m", command="ls")

    assert record_of(session, tmp_path).final_reply == ""


def test_the_last_message_is_put_together_from_its_entries(tmp_path: Path):
    """
    One message is several entries of one id, the last of them perhaps a lone thinking block; earlier stops' texts stay out.
    """
    session = Session()
    session.prompt("go")
    session.says("Done. All tests pass.")
    session.held("No test ran.")
    session.says("Part one.", message="m", stop=None)
    session.says("Part two.", message="m", stop="end_turn")
    session.block({"type": "thinking", "thinking": "secret thoughts"}, message="m")

    record = record_of(session, tmp_path)

    assert record.last_message is not None
    assert record.last_message.text == "Part one.\n\nPart two."
    assert record.last_message.stop_reason == "end_turn"


@pytest.mark.parametrize(
    "fields",
    [pytest.param({"isApiErrorMessage": True}, id="flag"), pytest.param({"model": "<synthetic>"}, id="model")],
)
def test_an_api_error_posing_as_a_reply_is_known(fields: dict[str, Any], tmp_path: Path):
    """
    Errors and limits arrive as replies.
    """
    session = Session()
    session.prompt("go")
    session.says("You've hit your limit", stop="stop_sequence", **fields)

    last = record_of(session, tmp_path).last_message

    assert last is not None
    assert last.is_api_error


NOBODY = {
    "tool result": lambda s: s.runs("Bash", "ok", command="ls"),
    "notification": lambda s: s.prompt(notification("b1"), prompt_id="p3", origin={"kind": "task-notification"}),
    "hook feedback": lambda s: s.held("no"),
    "command output": lambda s: s.prompt("<local-command-stdout>x</local-command-stdout>"),
    "compact summary": lambda s: s.prompt("The conversation so far", isCompactSummary=True),
    "peer": lambda s: s.prompt("hello", origin={"kind": "peer"}),
    "interrupt": lambda s: s.prompt([{"type": "text", "text": "[Request interrupted by user]"}]),
    "image note": lambda s: s.prompt([{"type": "text", "text": "[Image: source: /a.png]"}], isMeta=True),
    "skill": lambda s: s.prompt([{"type": "text", "text": "Base directory for this skill"}], isMeta=True),
    "sidechain": lambda s: s.prompt("dispatch", isSidechain=True),
}


@pytest.mark.parametrize("kind", NOBODY)
def test_the_human_prompt_is_found_behind_what_nobody_typed(kind: str, tmp_path: Path):
    """
    User entries are written by many; one of them is the prompt.
    """
    session = Session()
    session.prompt("the request", uuid="human")
    session.says("Working.", stop="tool_use")
    NOBODY[kind](session)
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert (record.human_id, record.request) == ("human", "the request")


def test_a_notification_starts_a_prompt_id_and_no_human_turn(tmp_path: Path):
    """
    All prompt ids under the human prompt are known, the prompt's own first.
    """
    session = Session()
    session.prompt("build it", prompt_id="p1", uuid="human")
    session.says("Building.")
    session.prompt(notification("b1"), prompt_id="p2", origin={"kind": "task-notification"})
    session.says("Built.")

    record = record_of(session, tmp_path)

    assert (record.human_id, record.prompt_ids) == ("human", ("p1", "p2"))


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param("also the README", id="string"),
        pytest.param([{"type": "text", "text": "also the README"}], id="blocks"),
    ],
)
def test_what_is_typed_meanwhile_is_a_later_prompt(prompt: object, tmp_path: Path):
    """
    It belongs to the turn and does not start one.
    """
    session = Session()
    session.prompt("go", uuid="human")
    session.runs("Bash", "ok", command="ls")
    session.queued(prompt, origin={"kind": "human"})
    session.queued("and the tests")
    session.queued("from a peer", origin={"kind": "peer"})
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert (record.human_id, record.request) == ("human", "go")
    assert record.later_prompts == ("also the README", "and the tests")


def test_no_image_is_carried(tmp_path: Path):
    """
    An image of any size leaves its name only.
    """
    image = {"type": "image", "source": {"type": "base64", "data": "iVBORw0K" * 1_000}}
    session = Session()
    session.prompt([{"type": "text", "text": "like this"}, image])
    session.queued([{"type": "text", "text": "or this"}, image])
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert (record.request, record.later_prompts) == ("like this\n[image]", ("or this\n[image]",))


COMMAND = "<command-message>plan</command-message>\n<command-name>/plan</command-name>\n<command-args>it</command-args>"


def test_a_slash_command_is_a_prompt(tmp_path: Path):
    """
    Its expansion is the client's and no request.
    """
    session = Session()
    session.prompt("first")
    session.prompt(COMMAND)
    session.prompt([{"type": "text", "text": "# How to plan"}], isMeta=True)
    session.says("The plan.")

    assert record_of(session, tmp_path).request == "/plan it"


def test_a_slash_command_answered_locally_is_none(tmp_path: Path):
    """
    Output before any reply shows that the agent never saw it.
    """
    session = Session()
    session.prompt("the request")
    session.says("Done.")
    session.prompt("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
    session.prompt("<command-name>/context</command-name>")
    session.prompt("<local-command-stdout>70 %</local-command-stdout>")

    assert record_of(session, tmp_path).request == "the request"


def test_local_output_of_a_newer_client(tmp_path: Path):
    """
    It is a system entry.
    """
    session = Session()
    session.prompt("the request")
    session.says("Done.")
    session.prompt("<command-name>/reload-plugins</command-name>")
    session.add(
        {"type": "system", "subtype": "local_command", "content": "<local-command-stdout>x</local-command-stdout>"}
    )

    assert record_of(session, tmp_path).request == "the request"


def test_local_output_belongs_to_the_nearest_command(tmp_path: Path):
    """
    A command that was sent before it, and not answered yet, stays the prompt.
    """
    session = Session()
    session.prompt("first")
    session.says("Done.")
    session.prompt("<command-name>/fix</command-name><command-args>12</command-args>")
    session.prompt("<command-name>/model</command-name>")
    session.prompt("<local-command-stdout>Set model</local-command-stdout>")
    session.says("Fixed.")

    assert record_of(session, tmp_path).request == "/fix 12"


def test_output_behind_a_reply_is_not_the_commands(tmp_path: Path):
    """
    A command that the agent answered stays the prompt, whatever local command follows.
    """
    session = Session()
    session.prompt(COMMAND)
    session.says("The plan.")
    session.prompt("<command-name>/cost</command-name>")
    session.prompt("<local-command-stdout>$1</local-command-stdout>")

    assert record_of(session, tmp_path).request == "/plan it"


def test_the_request_lies_before_a_compaction(tmp_path: Path):
    """
    The summary is a user entry, and nobody's prompt.
    """
    session = Session()
    session.prompt("earlier")
    session.says("Earlier reply.")
    session.prompt("the request")
    session.runs("Edit", "ok", file_path="a.py")
    session.add(
        {"type": "system", "subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": session.leaf}
    )
    session.prompt("This session is being continued", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert record.request == "the request"
    assert record.previous_reply == "Earlier reply."
    assert [call.name for call in record.calls] == ["Edit"]


def test_sidechains_in_the_main_file_are_left_out(tmp_path: Path):
    """
    Older clients write subagents' entries between the session's own.
    """
    session = Session()
    session.prompt("the request")
    session.calls("Task", "t1", description="look")
    session.prompt("Look at it", isSidechain=True)
    session.runs("Bash", "ok", command="ls")
    session.lines[-1] = session.lines[-1].replace(b'"isSidechain":false', b'"isSidechain":true')
    session.lines[-2] = session.lines[-2].replace(b'"isSidechain":false', b'"isSidechain":true')
    session.says("The subagent's report.", isSidechain=True)
    session.result("t1", "The subagent's report.")
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert record.request == "the request"
    assert [call.name for call in record.calls] == ["Task"]


def test_in_a_subagents_own_file_the_dispatch_is_the_request(tmp_path: Path):
    """
    There every entry is a sidechain.
    """
    session = Session(sidechain=True)
    session.prompt("Run the tests and report.")
    session.runs("Bash", "2 passed", command="pytest")
    session.says("They pass.")

    record = record_of(session, tmp_path, subagent=True)

    assert record.request == "Run the tests and report."
    assert [call.name for call in record.calls] == ["Bash"]


def test_tool_results_are_matched_by_id_in_any_order(tmp_path: Path):
    """
    Parallel calls come back as they please; a call without a result has none.
    """
    session = Session()
    session.prompt("go")
    session.calls("Bash", "t1", message="m", command="a")
    session.calls("Bash", "t2", message="m", command="b")
    session.calls("Bash", "t3", message="m", command="c")
    session.result("t2", "second")
    session.result("t1", "Exit code 1\nfirst", error=True)

    calls = record_of(session, tmp_path).calls

    assert [(call.id, call.outcome and (call.outcome.state, call.outcome.text)) for call in calls] == [
        ("t1", ("error", "first")),
        ("t2", ("ok", "second")),
        ("t3", None),
    ]


def test_a_resumed_session_repeats_and_counts_once(tmp_path: Path):
    """
    The same entries twice in one file are one turn, and its own text is not the reply before it.
    """
    session = two_turns()
    session.lines = session.lines[2:] * 2

    record = record_of(session, tmp_path)

    assert [(call.name, call.outcome and call.outcome.text) for call in record.calls] == [("Read", "text")]
    assert record.previous_reply == ""
    assert record.last_message is not None
    assert record.last_message.text == "Second reply."


def test_calls_repeated_within_a_turn_count_once(tmp_path: Path):
    """
    With the outcome that the newest has.
    """
    session = two_turns()
    session.lines += session.lines[4:]

    record = record_of(session, tmp_path)

    assert [(call.name, call.outcome and call.outcome.text) for call in record.calls] == [("Read", "text")]


@pytest.mark.parametrize(
    ("end", "previous"),
    [
        pytest.param(lambda s: s.says("The end."), "The end.", id="text"),
        pytest.param(lambda s: None, "", id="interrupted in front of a call"),
        pytest.param(lambda s: s.calls("Bash", command="ls"), "", id="interrupted at a call"),
        pytest.param(lambda s: s.runs("Bash", "ok", command="ls"), "", id="interrupted behind a call"),
        pytest.param(lambda s: (s.says("The end."), s.held("no")), "The end.", id="held and interrupted"),
        pytest.param(
            lambda s: (s.says("The end."), s.says("No response requested.", model="<synthetic>")),
            "The end.",
            id="the client's filler",
        ),
        pytest.param(
            lambda s: (s.says("The end."), s.says("API Error: 529", isApiErrorMessage=True)), "The end.", id="API error"
        ),
    ],
)
def test_the_previous_reply_is_the_text_that_ended_the_turn_before(end: object, previous: str, tmp_path: Path):
    """
    Not one from the middle of it, and none that the client wrote.
    """
    session = Session()
    session.prompt("first")
    session.says("Let me look.", stop="tool_use")
    end(session)  # type: ignore[operator]
    session.prompt([{"type": "text", "text": "[Request interrupted by user]"}])
    session.prompt("second")
    session.says("Second reply.")

    assert record_of(session, tmp_path).previous_reply == previous


def test_a_turn_without_text_leaves_no_previous_reply(tmp_path: Path):
    """
    A reply from further back answered something else.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.prompt("second")
    session.calls("Bash", command="ls")
    session.prompt("third")

    assert record_of(session, tmp_path).previous_reply == ""


def test_a_prompt_that_nothing_followed_was_no_turn(tmp_path: Path):
    """
    A prompt sent twice, or stopped by a hook, does not hide the reply before it.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.prompt("second")
    session.prompt("Operation stopped by hook: wait")
    session.prompt("second")

    assert record_of(session, tmp_path).previous_reply == "First reply."


def test_a_branch_that_the_person_left_is_excluded(tmp_path: Path):
    """
    After a rewind the reply before the prompt is the one that it was rewound to.
    """
    session = Session()
    session.prompt("first")
    back = session.says("First reply.")
    session.prompt("second")
    left = session.says("A reply that the person discarded.")
    session.leaf = back
    session.prompt("third", uuid="human")
    session.says("Third reply.")
    session.calls("Bash", "late", command="rm -r x")
    session.lines[-1] = session.lines[-1].replace(b'"parentUuid":"u6"', f'"parentUuid":"{left}"'.encode())

    record = record_of(session, tmp_path)

    assert record.request == "third"
    assert record.previous_reply == "First reply."
    assert record.calls == ()
    assert record.last_message is not None
    assert record.last_message.text == "Third reply."


def test_an_entry_without_a_parent_is_on_the_branch(tmp_path: Path):
    """
    Where nothing is known, the order in the file decides.
    """
    session = two_turns()
    session.lines = [json.dumps({**json.loads(line), "parentUuid": None}).encode() for line in session.lines]

    record = record_of(session, tmp_path)

    assert (record.request, record.previous_reply, len(record.calls)) == ("second", "First reply.", 1)


def test_a_broken_chain_leaves_the_order_in_the_file(tmp_path: Path):
    """
    The prompt's parent stood on a damaged line.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.add({"type": "system", "subtype": "turn_duration"})
    session.prompt("second")
    session.says("Second reply.")
    session.lines[2] = session.lines[2][:30]

    record = record_of(session, tmp_path)

    assert (record.request, record.previous_reply) == ("second", "First reply.")


def test_parallel_calls_hang_beside_the_branch_and_count(tmp_path: Path):
    """
    Two results that are nobody's parent are no abandoned branch.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.prompt("go", uuid="human")
    session.calls("Bash", "t1", message="m", command="a")
    fork = session.leaf
    session.calls("Bash", "t2", message="m", command="b")
    session.result("t1", "a", parentUuid=fork)
    session.leaf = "u5"
    session.result("t2", "b")
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert [call.outcome is not None for call in record.calls] == [True, True]


def damaged_session() -> Session:
    session = two_turns()
    whole = session.lines
    session.lines = [
        *whole[:3],
        b"null",
        b"[]",
        b"123",
        b"\0" * 4_000,
        b'{"type":"user"}',
        b'{"type":"user","message":{"role":"user","content":null}}',
        b'{"type":"assistant","message":{"id":"x","content":["bare",null,{"type":"text"}]}}',
        whole[3][:100] + whole[3] + whole[4],
        *whole[5:],
        whole[0][:50],
    ]
    return session


def test_damage_costs_what_it_hit_and_is_counted(tmp_path: Path):
    """
    Truncated, spliced, NULs, no objects, no message, null content, a bare string in a list.
    """
    record, whole = record_of(damaged_session(), tmp_path), record_of(two_turns(), tmp_path)

    assert record._replace(damaged=0) == whole
    assert record.damaged == 6


def test_lone_surrogates_break_nothing(tmp_path: Path):
    """
    They are kept in the record and leave through the evidence alone.
    """
    session = Session()
    session.prompt("half an emoji: \ud83d")
    session.runs("Bash", "tail \ude00", command="echo \udcff")
    session.says("Done \ud83d")

    assert record_of(session, tmp_path).request == "half an emoji: \ud83d"


def beside_a_result(text: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": "t", "content": "x"}, {"type": "text", "text": text}]


OVER = "<status>completed</status>"


@pytest.mark.parametrize(
    ("write", "pending"),
    [
        pytest.param(lambda s: s.queue("enqueue", notification("b1")), ("b1",), id="enqueued"),
        pytest.param(lambda s: None, (), id="nothing"),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.queue("dequeue")), ("b1",), id="dequeue tells nothing"
        ),
        pytest.param(
            lambda s: (
                s.queue("enqueue", notification("b1")),
                s.queue("dequeue"),
                s.prompt(notification("b1"), origin={"kind": "task-notification"}),
            ),
            (),
            id="delivered as a user entry",
        ),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.queued(notification("b1"), "task-notification")),
            (),
            id="delivered as an attachment",
        ),
        pytest.param(
            lambda s: (
                s.queue("enqueue", notification("b1")),
                s.queue("enqueue", notification("b2")),
                s.queued(notification("b2"), "task-notification"),
            ),
            ("b1",),
            id="another one delivered",
        ),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.queue("popAll")), (), id="the queue was emptied"
        ),
        pytest.param(
            lambda s: (s.queue("popAll"), s.queue("enqueue", notification("b1"))), ("b1",), id="emptied before"
        ),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.queue("remove", notification("b1"))),
            (),
            id="taken out for a subagent",
        ),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.held("Still running: b1 (shell).")),
            ("b1",),
            id="named by a hook's feedback",
        ),
        pytest.param(lambda s: s.queue("enqueue", "also the README"), (), id="a queued prompt"),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.runs("TaskOutput", OVER, task_id="b1")),
            (),
            id="looked at afterwards",
        ),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.runs("BashOutput", "x", details={"shellId": "b1"})),
            (),
            id="looked at afterwards, named by the result",
        ),
        pytest.param(
            lambda s: (
                s.calls("TaskOutput", "t1", task_id="b1", block=True),
                s.queue("enqueue", notification("b1")),
                s.result("t1", OVER),
            ),
            (),
            id="waited for",
        ),
        pytest.param(
            lambda s: (s.runs("TaskOutput", OVER, task_id="b1"), s.queue("enqueue", notification("b1"))),
            ("b1",),
            id="looked at before",
        ),
        pytest.param(
            lambda s: (
                s.queue("enqueue", notification("b1")),
                s.runs("TaskOutput", "No such task", error=True, task_id="b1"),
            ),
            ("b1",),
            id="looked at in vain",
        ),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.runs("TaskStop", "stopped", task_id="b1")),
            (),
            id="stopped afterwards",
        ),
        pytest.param(
            lambda s: (
                s.queue("enqueue", notification("b1")),
                s.add({"type": "user", "message": {"content": beside_a_result(notification("b1"))}}),
            ),
            (),
            id="delivered beside a tool result",
        ),
        pytest.param(
            lambda s: (
                s.queue("enqueue", notification("b1")),
                s.prompt(f"<system-reminder>\n{notification('b1')}\n</system-reminder>", isMeta=True),
            ),
            (),
            id="delivered within a reminder",
        ),
        pytest.param(
            lambda s: (
                s.queue("enqueue", notification("b1")),
                s.prompt(notification("b1"), origin={"kind": "to come"}),
            ),
            (),
            id="delivered by another origin",
        ),
        pytest.param(
            lambda s: (
                s.queue("enqueue", notification("b1")),
                s.prompt(f"Base directory: docs/\n{notification('b1')}", isMeta=True),
                s.add({"type": "user", "message": {"content": beside_a_result(f"See {notification('b1')}")}}),
            ),
            ("b1",),
            id="only quoted",
        ),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.queue("remove")), (), id="something taken out"
        ),
        pytest.param(
            lambda s: s.queue("enqueue", "<task-notification><status>completed</status></task-notification>"),
            (),
            id="of no task",
        ),
        pytest.param(
            lambda s: (s.queue("enqueue", notification("b1")), s.runs("TaskOutput", OVER, task_id="b2")),
            ("b1",),
            id="another one looked at",
        ),
    ],
)
def test_a_wake_up_is_pending_until_it_is_delivered_or_looked_at(
    write: object, pending: tuple[str, ...], tmp_path: Path
):
    """
    The task is done, its notification waits in the queue, and the reply may well say that it waits.
    """
    session = Session()
    session.prompt("go")
    session.says("Waiting for the review.")
    write(session)  # type: ignore[operator]

    record = record_of(session, tmp_path)

    assert record.wakeups_pending == pending
    assert record.wakeup_pending is bool(pending)


def test_a_notification_enqueued_before_the_prompt_is_not_pending(tmp_path: Path):
    """
    Only what came in after the last human prompt wakes this turn.
    """
    session = Session()
    session.prompt("first")
    session.queue("enqueue", notification("b1"))
    session.prompt("second")
    session.says("Done.")

    assert not record_of(session, tmp_path).wakeup_pending


@pytest.mark.parametrize(
    ("write", "plan"),
    [
        pytest.param(lambda s: None, False, id="never"),
        pytest.param(lambda s: s.attachment("plan_mode"), True, id="entered"),
        pytest.param(lambda s: (s.attachment("plan_mode"), s.attachment("plan_mode_exit")), False, id="left"),
        pytest.param(
            lambda s: s.add({"type": "permission-mode", "permissionMode": "plan"}, chained=False), True, id="by mode"
        ),
        pytest.param(
            lambda s: (s.attachment("plan_mode"), s.runs("ExitPlanMode", "approved", plan="x")), False, id="approved"
        ),
        pytest.param(
            lambda s: (s.attachment("plan_mode"), s.runs("ExitPlanMode", "rejected", error=True, plan="x")),
            True,
            id="rejected",
        ),
    ],
)
def test_plan_mode_is_the_last_known_mode(write: object, plan: bool, tmp_path: Path):
    """
    The newest sign decides.
    """
    session = Session()
    session.prompt("go")
    write(session)  # type: ignore[operator]
    session.says("Here is the plan.")

    assert record_of(session, tmp_path).plan_mode is plan


def test_a_prompt_that_is_out_of_reach_is_said_to_be(tmp_path: Path):
    """
    Reading ends at its reach; what was read of the turn is kept.
    """
    session = Session()
    session.prompt("far away")
    session.metadata(100, size=1_000)
    session.runs("Bash", "ok", command="ls")
    session.says("Done.")

    record = read(session.write(tmp_path), limits=Limits(reach=20_000))

    assert record.out_of_reach
    assert (record.request, record.human_id, len(record.calls)) == ("", "", 1)


def test_a_line_over_the_limit_is_skipped_and_counted(tmp_path: Path):
    """
    A huge result is known to be there and no more; the rest is whole.
    """
    session = Session()
    session.prompt("the request")
    session.runs("Bash", "x" * 100_000, command="cat big")
    session.says("Done.")

    record = read(session.write(tmp_path), limits=Limits(longest_line=50_000))

    assert (record.request, record.skipped) == ("the request", 1)
    assert record.calls[0].outcome is not None
    assert record.calls[0].outcome.state == "unknown"


def test_a_prompt_over_the_limit_is_out_of_reach(tmp_path: Path):
    """
    The prompt before it would be the wrong request.
    """
    session = Session()
    session.prompt("an earlier request")
    session.says("Done.")
    session.prompt("x" * 100_000)
    session.says("Done.")

    record = read(session.write(tmp_path), limits=Limits(longest_line=50_000))

    assert (record.request, record.out_of_reach) == ("", True)


IMAGE = {"type": "image", "source": {"type": "base64", "data": "x" * 200_000}}
SHORT_LINES = Limits(longest_line=50_000)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("fix it" + "x" * 200_000, id="text"),
        pytest.param([{"type": "text", "text": "like this"}, IMAGE], id="an image behind a text"),
        pytest.param([IMAGE], id="an image"),
    ],
)
def test_a_prompt_over_the_limit_has_its_identity(content: object, tmp_path: Path):
    """
    The turn stays the same one, whatever notification starts a further prompt id.
    """
    session = Session()
    session.prompt("an earlier request", prompt_id="p0")
    session.says("Done.")
    session.prompt(content, prompt_id="p1", uuid="human")
    session.says("Waiting.")
    session.prompt(notification("b1"), prompt_id="p2", origin={"kind": "task-notification"})

    record = read(session.write(tmp_path), limits=SHORT_LINES)

    assert (record.human_id, record.prompt_ids, record.out_of_reach) == ("human", ("p1", "p2"), True)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param({"promptId": "p1"}, "p1", id="by its prompt id"),
        pytest.param({}, "head:", id="by its beginning"),
    ],
)
def test_a_prompt_over_the_limit_without_a_uuid_has_an_id_that_stays(
    ends: dict[str, str], expected: str, tmp_path: Path
):
    """
    Two stops of one turn agree on it.
    """
    session = Session()
    entry = {**ends, "type": "user", "message": {"role": "user", "content": "x" * 200_000}}
    session.add(entry, chained=False)
    first = read(session.write(tmp_path), limits=SHORT_LINES)
    session.says("Done.")

    record = read(session.write(tmp_path), limits=SHORT_LINES)

    assert record.human_id == first.human_id
    assert record.human_id.startswith(expected)


LONG = "x" * 200_000


def long_call(session: Session) -> None:
    session.runs("mcp__llm__ask", "ok", messages=[{"role": "user", "content": LONG}])


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda s: s.prompt([{"type": "document", "source": {"data": LONG}}], isMeta=True), id="a PDF"),
        pytest.param(
            lambda s: s.prompt(notification("b1", result=LONG), origin={"kind": "task-notification"}), id="notification"
        ),
        pytest.param(lambda s: s.prompt(notification("b1", result=LONG)), id="notification of an old client"),
        pytest.param(lambda s: s.prompt("The talk so far" + LONG, isCompactSummary=True), id="summary"),
        pytest.param(lambda s: s.prompt("dispatch" + LONG, isSidechain=True), id="sidechain"),
        pytest.param(
            lambda s: s.add(
                {"type": "api-request-blob", "body": {"message": {"role": "user", "content": LONG}}}, chained=False
            ),
            id="blob",
        ),
        pytest.param(
            lambda s: s.attachment("x", message={"role": "user", "content": LONG}, note='"type":"user"'),
            id="attachment",
        ),
        pytest.param(long_call, id="call"),
        pytest.param(lambda s: s.runs("Bash", "x", details={"stdout": LONG}, command="cat x"), id="result's details"),
    ],
)
def test_a_line_over_the_limit_that_nobody_typed_is_no_prompt(write: object, tmp_path: Path):
    """
    Its two ends tell who wrote it; what the turn did before stays known.
    """
    session = Session()
    session.prompt("the request", uuid="human")
    session.runs("Edit", "ok", file_path="a.py")
    write(session)  # type: ignore[operator]
    session.says("Done.")

    record = read(session.write(tmp_path), limits=SHORT_LINES)

    assert (record.human_id, record.request, record.skipped) == ("human", "the request", 1)
    assert record.calls[0].name == "Edit"


def test_a_notification_over_the_limit_is_delivered(tmp_path: Path):
    """
    Its first words name the task, and its entry the prompt id.
    """
    session = Session()
    session.prompt("go", prompt_id="p1")
    session.queue("enqueue", notification("b1"))
    session.prompt(notification("b1", result=LONG), origin={"kind": "task-notification"}, prompt_id="p2")

    record = read(session.write(tmp_path), limits=SHORT_LINES)

    assert (record.wakeups_pending, record.ended_tasks, record.prompt_ids) == ((), {"b1"}, ("p1", "p2"))


def test_a_turn_of_very_many_calls_keeps_its_first_and_newest(tmp_path: Path):
    """
    Those between are counted by tool, and the turn is said to be cut.
    """
    session = Session()
    session.prompt("go")
    session.block({"type": "tool_use", "id": "first", "name": "Edit", "input": {"file_path": "a"}})
    for number in range(0, 10_100, 100):
        calls = [
            {"type": "tool_use", "id": f"t{n}", "name": "Read", "input": {"file_path": "a"}}
            for n in range(number, number + 100)
        ]
        session.add({"type": "assistant", "message": {"id": f"m{number}", "content": calls}})

    record = record_of(session, tmp_path)

    assert [call.id for call in record.calls[:11]] == ["first", *(f"t{n}" for n in range(9)), "t100"]
    assert (record.calls[-1].id, len(record.calls)) == ("t10099", 10_010)
    assert record.calls_left_out == {"Read": 91}
    assert record.out_of_reach


HOOK = "/home/dev/.local/bin/turngate-hook"


def hold(session: Session, command: str = HOOK, event: str = "Stop") -> None:
    session.prompt("Stop hook feedback:\nno", isMeta=True)
    session.attachment(
        "hook_blocking_error", hookEvent=event, blockingError={"blockingError": "no", "command": command}
    )


@pytest.mark.parametrize(
    ("stops", "holds"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([[HOOK]], 1, id="once"),
        pytest.param([[HOOK], [HOOK]], 2, id="twice"),
        pytest.param([[HOOK, f"TURNGATE_X=1 {HOOK}"]], 1, id="two installs at one stop"),
        pytest.param([["other-hook", HOOK, "other-hook"], ["other-hook"]], 1, id="beside others"),
        pytest.param([["other-hook"]], 0, id="others alone"),
    ],
)
def test_the_transcript_counts_our_own_holds(stops: list[list[str]], holds: int, tmp_path: Path):
    """
    Once per stop, of this human turn, by the hook's command and not by words.
    """
    session = Session()
    session.prompt("before")
    session.says("Done.")
    hold(session)
    session.prompt("go")
    for commands in stops:
        session.says("Done: turngate-hook.")
        for command in commands:
            hold(session, command)

    assert record_of(session, tmp_path).own_holds == holds


def test_what_our_hook_refuses_before_a_tool_is_no_hold(tmp_path: Path):
    """
    The jobs check is the same command on another event.
    """
    session = Session()
    session.prompt("go")
    hold(session, event="PreToolUse")

    assert record_of(session, tmp_path).own_holds == 0


@pytest.mark.parametrize(
    ("summary", "code"),
    [
        pytest.param('Background command "expect (exit code 0)" failed (exit code 1)', 1, id="behind the description"),
        pytest.param('Background command "t" failed with exit code 2', 2, id="without brackets"),
        pytest.param('Background command "expect (exit code 0)" was stopped', None, id="in the description alone"),
        pytest.param("Background command completed (exit code 0)", 0, id="no description"),
    ],
)
def test_a_notifications_exit_code_is_the_clients(summary: str, code: int | None, tmp_path: Path):
    """
    What the agent wrote of its command tells nothing of its end.
    """
    session = Session()
    session.prompt("go")
    session.prompt(notification("b1", summary=summary), origin={"kind": "task-notification"})

    assert record_of(session, tmp_path).notices["b1"].exit_code == code


def test_a_line_over_the_limit_behind_the_prompt_is_not_the_turns(tmp_path: Path):
    """
    What lies before the turn is neither skipped nor out of its reach.
    """
    session = Session()
    session.prompt("first")
    session.runs("Bash", "x" * 100_000, command="cat big")
    session.prompt("second")
    session.says("Done.")

    record = read(session.write(tmp_path), limits=Limits(longest_line=50_000, reach=60_000))

    assert (record.request, record.skipped, record.out_of_reach) == ("second", 0, False)
