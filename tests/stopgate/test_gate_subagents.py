"""
The gate at the stop of a subagent.
"""

from __future__ import annotations

import pytest

from turngate.stopgate.events import BackgroundTask, Event

from .gate_stage import CLAIM, TASK, Gate, judged
from .transcripts import Session


def subagent(gate: Gate) -> tuple[Session, Event]:
    own = Session(sidechain=True)
    own.prompt("Run the tests and report.", prompt_id="p1", agentId="a1")
    path = own.write(gate.folder, "agent-a1.jsonl")
    event = gate.event(name="SubagentStop", agent_id="a1", agent_type="general-purpose", agent_transcript_path=path)
    return own, event


def test_a_subagent_is_judged_against_its_own_dispatch_prompt(gate: Gate) -> None:
    """
    The request is what the parent asked of it, never the parent's own.
    """
    _, event = subagent(gate)
    gate.stop(event)

    assert gate.asked[0].request == "Run the tests and report."
    assert gate.asked[0].subagent


def test_only_what_a_subagent_started_itself_holds_it(gate: Gate) -> None:
    """
    Pitfall 6: the list is the parent session's, with the subagent itself, its siblings and the parent's tasks.
    """
    own, event = subagent(gate)
    itself = BackgroundTask("a1", "subagent", "running", "Check the tests")
    sibling = BackgroundTask("a2", "subagent", "running", "Check the docs")
    assert gate.stop(event._replace(tasks=(itself, sibling, TASK))).outcome == "pass_clean"

    own.runs(
        "Bash",
        "Command running in background with ID: b9.",
        command="sleep 60",
        run_in_background=True,
        details={"backgroundTaskId": "b9"},
    )
    own.write(gate.folder, "agent-a1.jsonl")
    held = gate.stop(event._replace(tasks=(itself, sibling, TASK, TASK._replace(id="b9"))))

    assert held.outcome == "block_background"
    assert [line.split()[1] for line in held.reason.splitlines() if line.startswith("- ")] == ["b9"]


def test_a_subagent_without_a_transcript_is_not_held_for_tasks(gate: Gate) -> None:
    """
    Where nothing shows that it started the task, it is not its own.
    """
    _, event = subagent(gate)

    assert gate.stop(event._replace(agent_transcript_path="/nowhere", tasks=(TASK,))).outcome == "pass_clean"


@pytest.mark.parametrize("fault", ["opener", "cave"])
def test_faults_between_agent_and_person_are_noted_for_a_subagent(gate: Gate, fault: str) -> None:
    """
    A subagent speaks to an agent.
    """
    _, event = subagent(gate)
    gate.answer = judged(CLAIM._replace(fault=fault))

    assert gate.stop(event).outcome == "pass_noted"


def test_a_subagents_holds_are_its_own(gate: Gate) -> None:
    """
    Two holds of a subagent leave its parent's turn untouched.
    """
    _, event = subagent(gate)
    gate.answer = judged(CLAIM)
    outcomes = [gate.stop(event).outcome for _ in range(3)]

    assert outcomes == ["block_verdict", "block_verdict", "pass_cap_spent"]
    assert gate.stop().outcome == "block_verdict"
