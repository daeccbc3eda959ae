"""
Background tasks in a whole transcript.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turngate.stopgate.transcript import launched_by, notified, read

from ..transcripts import Session, notification

SHELL_LAUNCH = "Command running in background with ID: b1. Output is being written to: /tmp/b1.output."
MOVED = "Command was manually backgrounded by user with ID: b1. Output is being written to: /tmp/b1.output."
AGENT_LAUNCH = [
    {
        "type": "text",
        "text": "Async agent launched successfully. (internal)\nagentId: a1 (internal ID - do not mention)",
    }
]


@pytest.mark.parametrize(
    ("tool", "content", "details", "task"),
    [
        pytest.param("Bash", SHELL_LAUNCH, {"backgroundTaskId": "b1"}, "b1", id="shell"),
        pytest.param("Bash", SHELL_LAUNCH, None, "b1", id="shell, as a subagent's file has it"),
        pytest.param("Agent", AGENT_LAUNCH, {"isAsync": True, "agentId": "a1"}, "a1", id="agent"),
        pytest.param("Agent", AGENT_LAUNCH, None, "a1", id="agent, as a subagent's file has it"),
    ],
)
def test_launches_are_known_by_structure_or_the_clients_words(
    tool: str, content: object, details: object, task: str, tmp_path: Path
):
    """
    A subagent's transcript has no `toolUseResult`; there the result's first words tell.
    """
    session = Session(sidechain=True)
    session.prompt("go")
    session.runs(tool, content, details=details, description="The build", run_in_background=True)
    session.says("Waiting.")
    path = session.write(tmp_path)

    assert launched_by(path) == {task}
    assert read(path, subagent=True).launches == {task: "The build"}


def test_a_launch_stands_anywhere_in_the_file(tmp_path: Path):
    """
    Not in the last turn only; and what a result merely mentions is none.
    """
    session = Session(sidechain=True)
    session.prompt("go")
    session.runs("Bash", SHELL_LAUNCH, command="make", run_in_background=True)
    session.runs("Bash", f"I saw: {SHELL_LAUNCH.replace('b1', 'b9')}", command="cat log")
    session.prompt("go on", origin={"kind": "coordinator"})
    session.says("Waiting.")

    assert launched_by(session.write(tmp_path)) == {"b1"}


@pytest.mark.parametrize(
    ("tool", "content", "given", "launched"),
    [
        pytest.param("Bash", SHELL_LAUNCH, {"command": "cat log"}, False, id="a log printed"),
        pytest.param("Bash", AGENT_LAUNCH, {"run_in_background": True}, False, id="an agent's launch printed"),
        pytest.param("Grep", SHELL_LAUNCH, {"pattern": "ID"}, False, id="found"),
        pytest.param("Read", SHELL_LAUNCH, {"file_path": "log"}, False, id="read"),
        pytest.param("WebFetch", AGENT_LAUNCH, {"url": "http://h"}, False, id="fetched"),
        pytest.param("TaskOutput", SHELL_LAUNCH, {"task_id": "b7"}, False, id="collected"),
        pytest.param("mcp__notes__get", AGENT_LAUNCH, {"run_in_background": True}, False, id="told by a server"),
        pytest.param("Agent", SHELL_LAUNCH, {"prompt": "x"}, False, id="reported"),
        pytest.param("Task", AGENT_LAUNCH, {"prompt": "x"}, True, id="an old client's agent"),
        pytest.param("Bash", MOVED, {"command": "make"}, True, id="moved there by a person"),
        pytest.param("Bash", f"{MOVED}\nmore", {"command": "cat log"}, False, id="a line of a log"),
    ],
)
def test_the_clients_words_count_from_a_tool_that_can_launch(
    tool: str, content: object, given: dict[str, Any], launched: bool, tmp_path: Path
):
    """
    What another one prints, finds or reads was launched by somebody else; the call keeps its outcome.
    """
    session = Session(sidechain=True)
    session.prompt("go")
    session.runs(tool, content, **given)
    session.says("Done.")
    path = session.write(tmp_path)

    (call,) = read(path, subagent=True).calls

    assert bool(launched_by(path)) is launched
    assert call.outcome is not None
    assert call.outcome.state == ("background" if launched else "ok")
    assert bool(call.outcome.text) is not launched


def test_words_count_only_where_there_is_no_structure(tmp_path: Path):
    """
    A result that the client describes, and not as a launch, is none.
    """
    session = Session()
    session.prompt("go")
    session.runs("Bash", SHELL_LAUNCH, details={"stdout": SHELL_LAUNCH}, command="x", run_in_background=True)
    path = session.write(tmp_path)

    assert launched_by(path) == frozenset()
    assert read(path).launches == {}


@pytest.mark.parametrize("path", ["", "/absent", "/dev/null"])
def test_no_file_launched_nothing(path: str):
    """
    What cannot be read shows no launch.
    """
    assert launched_by(path) == frozenset()
    assert notified(read(path), {"b1"}) == frozenset()


def launch(session: Session) -> None:
    session.runs("Bash", SHELL_LAUNCH, details={"backgroundTaskId": "b1"}, command="make")


def deliver(session: Session) -> None:
    session.prompt(notification("b1"), origin={"kind": "task-notification"})


def attach(session: Session) -> None:
    session.queued(notification("b1"), "task-notification")


def enqueue(session: Session) -> None:
    session.queue("enqueue", notification("b1"))


def resume(session: Session) -> None:
    session.runs("SendMessage", "sent", to="b1", message="go on")


def refused_resume(session: Session) -> None:
    session.runs("SendMessage", "No such agent", error=True, to="b1", message="go on")


def look(session: Session) -> None:
    session.runs("TaskOutput", "<status>completed</status>", task_id="b1")


def mention(session: Session) -> None:
    session.runs("Bash", notification("b1"), command="cat notes")


def ask(session: Session) -> None:
    session.says("Done.")
    session.prompt("next")


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        pytest.param([launch], False, id="launched"),
        pytest.param([launch, deliver], True, id="delivered"),
        pytest.param([launch, attach], True, id="delivered meanwhile"),
        pytest.param([launch, enqueue], True, id="enqueued"),
        pytest.param([launch, deliver, resume], False, id="resumed"),
        pytest.param([launch, deliver, refused_resume], True, id="not resumed after all"),
        pytest.param([launch, deliver, resume, deliver], True, id="ended again"),
        pytest.param([launch, deliver, look], True, id="looked at afterwards"),
        pytest.param([launch, mention], False, id="only quoted by a command"),
        pytest.param([deliver, launch], False, id="launched again"),
        pytest.param([launch, deliver, ask], True, id="in an earlier turn"),
        pytest.param([launch, ask, deliver], True, id="launched in an earlier turn"),
        pytest.param([launch, deliver, ask, resume], False, id="resumed in a later turn"),
        pytest.param([launch, deliver, resume, ask], False, id="resumed in an earlier turn"),
        pytest.param([ask], False, id="never heard of"),
    ],
)
def test_a_task_is_over_by_its_last_word(story: list[object], expected: bool, tmp_path: Path):
    """
    A notification ends a task; a call that names it afterwards makes it run again.
    """
    session = Session()
    session.prompt("go")
    for step in story:
        step(session)  # type: ignore[operator]
    session.says("Waiting.")

    assert notified(read(session.write(tmp_path)), {"b1"}) == ({"b1"} if expected else set())


def test_another_tasks_notification_ends_nothing(tmp_path: Path):
    """
    Ids are compared whole.
    """
    session = Session()
    session.prompt("go")
    session.prompt(notification("b12"), origin={"kind": "task-notification"})

    assert notified(read(session.write(tmp_path)), ["b1", ""]) == frozenset()


def test_many_tasks_are_looked_for_at_once(tmp_path: Path):
    """
    Each by its own last word, in this turn or in an earlier one.
    """
    session = Session()
    session.prompt("first")
    session.prompt(notification("over"), origin={"kind": "task-notification"})
    session.prompt(notification("resumed"), origin={"kind": "task-notification"})
    session.runs("SendMessage", "sent", to="resumed", message="go on")
    session.prompt("second")
    session.prompt(notification("now"), origin={"kind": "task-notification"})

    assert notified(read(session.write(tmp_path)), ["over", "resumed", "now", "unheard"]) == {"over", "now"}


@pytest.mark.parametrize(("tasks", "behind", "found"), [(1, 31, True), (1, 33, False), (80, 7, True), (80, 9, False)])
def test_how_far_back_is_looked_depends_on_the_number_of_tasks(tasks: int, behind: int, found: bool, tmp_path: Path):
    """
    32 MB, and less for more than 20 tasks, so that the time is bounded.
    """
    session = Session()
    session.prompt("first")
    session.prompt(notification("b1"), origin={"kind": "task-notification"})
    session.metadata(behind, size=1024 * 1024)
    session.prompt("second")
    ids = {"b1", *(f"unheard-{number}" for number in range(tasks - 1))}

    assert ("b1" in notified(read(session.write(tmp_path)), ids)) is found


def test_a_notification_tells_how_it_ended(tmp_path: Path):
    """
    Status, exit code and a subagent's report are kept; tags inside the report are the report's.
    """
    session = Session()
    session.prompt("go")
    deliver(session)
    session.queued(
        notification("a1", summary='Agent "x" finished', result="All <result>good</result> here"), "task-notification"
    )

    notices = read(session.write(tmp_path)).notices

    assert [*notices] == ["b1", "a1"]
    assert (notices["b1"].status, notices["b1"].exit_code) == ("completed", 0)
    assert notices["a1"].report == "All <result>good</result> here"
