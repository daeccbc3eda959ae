"""
Which tool calls are the turn's, each with its outcome.
"""

from __future__ import annotations

from pathlib import Path

from ..transcripts import Session
from .records import record_of, two_turns


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
