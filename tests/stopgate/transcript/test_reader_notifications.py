"""
Which tasks' notifications still wait to wake the agent, and what they tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ..transcripts import Session, notification
from .records import record_of


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
