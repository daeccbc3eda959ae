"""
The gate before a judge is asked: what is no turn, background tasks, nothing to judge, the cap.
"""

from __future__ import annotations

from typing import Any

import pytest

from turngate.stopgate.settings import Settings

from .gate_stage import CLAIM, REPLY, TASK, Gate, judged
from .transcripts import notification

# Step 1: not a turn


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        pytest.param({"name": "StopFailure"}, "pass_not_a_turn", id="the API failed"),
        pytest.param({"name": "PreToolUse"}, "pass_not_a_turn", id="another event"),
        pytest.param({"name": "SomethingNew"}, "pass_not_a_turn", id="an event nobody knows"),
        pytest.param({"agent_type": ""}, "pass_not_a_turn", id="an internal fork"),
    ],
)
def test_what_is_no_turn_passes(gate: Gate, fields: dict[str, Any], outcome: str) -> None:
    """
    The agent is not judged for what is not its turn, and running tasks do not matter then.
    """
    reply = gate.stop(**fields, tasks=(TASK,))

    assert (reply.outcome, reply.reason, gate.asked) == (outcome, "", [])


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(Settings(gate_mode="off"), id="switched off"),
        pytest.param(Settings(gate_events=("SubagentStop",)), id="this event is not gated"),
    ],
)
def test_a_gate_that_is_off_passes(gate: Gate, settings: Settings) -> None:
    """
    Off is an outcome of its own.
    """
    gate.settings = settings

    assert gate.stop(tasks=(TASK,)).outcome == "pass_off"
    assert gate.asked == []


# Step 2: background tasks


def test_a_running_task_holds_once_for_free_and_then_the_judge_is_asked(gate: Gate) -> None:
    """
    Pitfalls 1 and 3: one hold per task, without a model call; a second stop with only such tasks goes on.
    """
    first = gate.stop(tasks=(TASK,))
    asked_at_first = len(gate.asked)
    second = gate.stop(tasks=(TASK,))

    assert (first.outcome, second.outcome) == ("block_background", "pass_clean")
    assert "b1 (shell): Run the slow build" in first.reason
    assert (asked_at_first, len(gate.asked)) == (0, 1)
    assert [decision.line.spent for decision in gate.decisions] == [1, 1]


def test_a_new_task_is_named_and_a_named_one_is_not_named_again(gate: Gate) -> None:
    """
    Only what the agent was not told of yet stands in the second hold.
    """
    gate.stop(tasks=(TASK,))
    second = gate.stop(tasks=(TASK, TASK._replace(id="b2")))

    assert second.outcome == "block_background"
    assert "b2" in second.reason
    assert "b1 " not in second.reason


def test_background_holds_end_with_the_continuations(gate: Gate) -> None:
    """
    However many new tasks there are, a turn is held twice.
    """
    outcomes = [gate.stop(tasks=(TASK._replace(id=f"b{number}"),)).outcome for number in range(4)]

    assert outcomes == ["block_background", "block_background", "pass_cap_spent", "pass_cap_spent"]


@pytest.mark.parametrize(
    ("settings", "attended", "held"),
    [
        pytest.param(Settings(background_mode="off"), False, False, id="off"),
        pytest.param(Settings(background_mode="headless"), False, True, id="headless and nobody there"),
        pytest.param(Settings(background_mode="headless"), True, False, id="headless and somebody there"),
        pytest.param(Settings(background_mode="headless"), None, False, id="headless and not known"),
        pytest.param(Settings(background_exempt_commands=("make*",)), False, False, id="an exempt command"),
        pytest.param(Settings(background_exempt_types=("shell",)), False, False, id="an exempt type"),
        pytest.param(Settings(background_holds_per_task=0), False, False, id="no holds per task"),
        pytest.param(Settings(gate_continuations=0), False, False, id="no continuations"),
    ],
)
def test_background_settings(gate: Gate, settings: Settings, attended: bool | None, held: bool) -> None:
    """
    Mode, exemptions and counts are the user's to set.
    """
    gate.settings = settings

    assert (gate.stop(tasks=(TASK,), attended=attended).outcome == "block_background") is held


def test_holds_per_task_can_be_raised(gate: Gate) -> None:
    """
    With two holds per task the same task is named twice.
    """
    gate.settings = Settings(background_holds_per_task=2)

    assert [gate.stop(tasks=(TASK,)).outcome for _ in range(2)] == ["block_background"] * 2


def test_a_task_whose_end_stands_in_the_transcript_does_not_hold(gate: Gate) -> None:
    """
    The client's list can be behind its own notification.
    """
    gate.session.prompt(notification("b1"), origin={"kind": "task-notification"})
    gate.session.says("The build is done.")

    assert gate.stop(tasks=(TASK,), reply="The build is done.").outcome == "pass_clean"


# Step 3: nothing to judge


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_an_empty_reply_passes(gate: Gate, text: str) -> None:
    """
    Where the last message had no text there is nothing to judge.
    """
    assert gate.stop(reply=text).outcome == "pass_empty_reply"
    assert gate.asked == []


def test_an_older_clients_reply_is_read_from_the_transcript(gate: Gate) -> None:
    """
    A client that gives no `last_assistant_message` is judged by the last message of the file.
    """
    gate.stop(reply=None)

    assert gate.asked[0].reply == REPLY


def test_an_api_error_posing_as_a_reply_passes(gate: Gate) -> None:
    """
    Pitfall 26: known by the entry's structure, not by its words.
    """
    gate.session.says("You've hit your limit", isApiErrorMessage=True, model="<synthetic>")

    assert gate.stop(reply="You've hit your limit").outcome == "pass_api_error"
    assert gate.asked == []


def test_a_reply_before_a_queued_notification_passes(gate: Gate) -> None:
    """
    Pitfall 7: the task is done, its notification is queued, the reply waits for it: it will be woken.
    """
    gate.session.queue("enqueue", notification("b1"))

    assert gate.stop(reply="Waiting for the review.").outcome == "pass_wakeup_pending"


def test_a_delivered_notification_is_no_wakeup(gate: Gate) -> None:
    """
    Once the agent was told, its reply is judged as any other.
    """
    gate.session.queue("enqueue", notification("b1"))
    gate.session.queue("dequeue")
    gate.session.prompt(notification("b1"), origin={"kind": "task-notification"})
    gate.session.says(REPLY)

    assert gate.stop().outcome == "pass_clean"


def test_a_delivery_that_is_not_yet_written_is_waited_for(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The client writes some milliseconds behind: the notification still looks queued, the reply before has the same words.
    """
    gate.session.queue("enqueue", notification("b1"))
    event = gate.event(prompt_id="p2")

    def the_client_writes(_: float) -> None:
        gate.session.queue("dequeue")
        gate.session.prompt(notification("b1"), origin={"kind": "task-notification"}, prompt_id="p2")
        gate.session.says(REPLY)
        gate.session.write(gate.folder)

    monkeypatch.setattr("turngate.stopgate.gate.time.sleep", the_client_writes)

    assert gate.stop(event).outcome == "pass_clean"


# Step 4: the cap


def test_the_cap_ends_the_turn_without_a_call_and_says_so_once(gate: Gate) -> None:
    """
    Pitfall 15: two holds, then the turn ends; the person is told at the first reply that was not judged.
    """
    gate.answer = judged(CLAIM)
    replies = [gate.stop() for _ in range(4)]

    assert [reply.outcome for reply in replies] == [
        "block_verdict",
        "block_verdict",
        "pass_cap_spent",
        "pass_cap_spent",
    ]
    assert [reply.message for reply in replies[2:]] == ["turngate: held twice; this reply was not judged", ""]
    assert len(gate.asked) == 2
    assert [decision.line.spent for decision in gate.decisions] == [1, 2, 2, 2]


def test_stop_hook_active_and_a_new_prompt_id_change_nothing(gate: Gate) -> None:
    """
    Pitfalls 10 and 14: neither the client's bit nor a notification's prompt id starts the count anew.
    """
    gate.answer = judged(CLAIM)
    for prompt_id in ("p1", "n1"):
        assert gate.stop(prompt_id=prompt_id).outcome == "block_verdict"

    assert gate.stop(prompt_id="n2").outcome == "pass_cap_spent"


def test_the_next_human_prompt_is_held_again(gate: Gate) -> None:
    """
    Pitfall 13: a new human prompt starts at 0.
    """
    gate.answer = judged(CLAIM)
    gate.stop()
    gate.stop()
    gate.session.prompt("Now write the test", prompt_id="p2")
    gate.session.says(REPLY)

    assert gate.stop(prompt_id="p2").outcome == "block_verdict"


def test_continuations_can_be_one(gate: Gate) -> None:
    """
    The message tells the truth about the bound.
    """
    gate.settings = Settings(gate_continuations=1)
    gate.answer = judged(CLAIM)
    gate.stop()

    assert gate.stop().message == "turngate: held once; this reply was not judged"
