"""
The gate at a stop of the past: the transcript is taken as it stood then.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from turngate.stopgate.events import Event

from .gate_stage import REPLY, TASK, Gate
from .transcripts import notification


def past_stop(gate: Gate) -> Event:
    """
    Give the stop at the present end of the session, which may go on.
    """
    event = gate.event()
    return event._replace(transcript_end=Path(event.transcript_path).stat().st_size)


def test_the_turn_of_a_past_stop_is_judged_and_not_the_last_one(gate: Gate) -> None:
    """
    What was written after the stop is not seen.
    """
    stop = past_stop(gate)
    gate.session.prompt("Now delete it", prompt_id="p2")
    gate.session.says("Deleted.")
    gate.session.write(gate.folder)

    assert gate.stop(stop).outcome == "pass_clean"
    assert [(turn.request, turn.reply) for turn in gate.asked] == [("Write retry.ts", REPLY)]
    assert [call.line for call in gate.asked[0].tool_calls] == ["Write: retry.ts -> ok"]


def test_a_task_that_ended_only_later_holds_a_past_stop(gate: Gate) -> None:
    """
    A notification that stands behind the stop was not known at it; of a task of an earlier turn the whole file is searched.
    """
    gate.session.prompt("And now?", prompt_id="p1")
    gate.session.says(REPLY)
    stop = past_stop(gate)._replace(tasks=(TASK,))
    gate.session.prompt(notification(TASK.id), origin={"kind": "task-notification"})
    gate.session.write(gate.folder)

    assert gate.stop(stop._replace(transcript_end=None)).outcome == "pass_clean"
    assert gate.stop(stop).outcome == "block_background"


def test_nothing_is_waited_for_at_a_past_stop(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Nobody is writing that transcript any more, whether or not the reply is found in it.
    """
    stop = past_stop(gate)._replace(reply="A reply that was lost.")

    def sleep(seconds: float) -> None:
        raise AssertionError(f"slept {seconds} s")

    monkeypatch.setattr(time, "sleep", sleep)

    assert gate.stop(stop).outcome == "pass_clean"
