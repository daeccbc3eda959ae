"""
The gate: the steps of one stop, in their order, each with its outcome.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from turngate.costing.database import StoreError, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import Decision
from turngate.judge.judgement import AskOutcome, Judgement
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn
from turngate.rubric.verdict import Finding, Verdict
from turngate.stopgate.events import BackgroundTask, Event
from turngate.stopgate.gate import Reply, Store, decide
from turngate.stopgate.settings import DEFAULT_ACTIONS, Settings
from turngate.stopgate.turn_count import TurnCounts

from .transcripts import Session, notification

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
REPLY = "Wrote retry.ts.\n\nDone. All tests pass."
CLAIM = Finding("claim", "All tests pass.", "No test ran in this turn. Run them, or say plainly that none ran.")
OPENER = Finding("opener", "Wrote retry.ts.", "The reply opens with praise. Begin with the result.")
TASK = BackgroundTask("b1", "shell", "running", "Run the slow build", "make")


class Gate:
    """
    A gate with a real store and transcript; the judge answers what the test says, and every turn it saw is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = open_database(folder / "state")
        self.store = Store(Ledger(self.database), TurnCounts(self.database))
        self.settings = Settings()
        self.session = Session()
        self.session.prompt("Write retry.ts", prompt_id="p1")
        self.session.runs("Write", "File created", file_path="/home/dev/demo/retry.ts")
        self.session.says(REPLY)
        self.answer: Judgement | Callable[[Turn], Judgement] = judged()
        self.asked: list[Turn] = []
        self.minute = 0

    def ask(self, turn: Turn) -> Judgement:
        self.asked.append(turn)
        return self.answer(turn) if callable(self.answer) else self.answer

    def event(self, **fields: object) -> Event:
        path = self.session.write(self.folder)
        event = Event(
            "Stop", session_id="s1", transcript_path=path, prompt_id="p1", reply=REPLY, project="/home/dev/demo"
        )
        return event._replace(**fields)  # pyright: ignore[reportArgumentType]

    def stop(self, event: Event | None = None, **fields: Any) -> Reply:
        """
        Stop a minute after the last stop.
        """
        self.minute += 1
        now = NOW + timedelta(minutes=self.minute)
        event = event or self.event(**fields)
        return decide(event, now=now, store=self.store, ask=self.ask, settings=self.settings)

    @property
    def decisions(self) -> list[Decision]:
        assert self.store.ledger is not None
        return self.store.ledger.decisions()


def judged(*findings: Finding, dropped: int = 0) -> Judgement:
    return Judgement("answered", Verdict(findings, dropped), rubric="turn_end@1", rubric_hash="abc")


@pytest.fixture(name="gate")
def make_gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path)
    yield gate
    gate.database.close()


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


# Steps 5 and 6: the judge


def test_the_judge_is_told_how_often_and_why_the_turn_was_held(gate: Gate) -> None:
    """
    The facts of a second judging name the first hold's reason.
    """
    gate.answer = judged(CLAIM)
    gate.stop()
    gate.stop()

    assert gate.asked[0].facts.holds == ()
    assert gate.asked[1].facts.holds == (CLAIM.reason,)


@pytest.mark.parametrize("outcome", [outcome for outcome in get_args(AskOutcome) if outcome != "answered"])
def test_whatever_is_no_verdict_passes_under_its_own_code(gate: Gate, outcome: AskOutcome) -> None:
    """
    Pitfall 31: three outcomes; "we don't know" never holds, and shows up by name.
    """
    gate.answer = Judgement(outcome, detail="why")
    reply = gate.stop()

    codes = {"breaker_open": "pass_breaker_open", "budget": "pass_budget", "no_judge": "pass_no_judge"}
    assert reply.outcome == codes.get(outcome, f"pass_judge_{outcome}")
    assert (reply.reason, reply.detail) == ("", "why")
    assert gate.decisions[-1].line.detail == "why"


def test_where_nobody_can_be_asked_the_turn_is_not_put_together(gate: Gate) -> None:
    """
    The reason is known before, and costs nothing.
    """
    reply = decide(
        gate.event(),
        now=NOW,
        store=gate.store,
        ask=gate.ask,
        settings=gate.settings,
        held_back=lambda: Judgement("budget", detail="spent"),
    )

    assert (reply.outcome, reply.detail, gate.asked) == ("pass_budget", "spent", [])


def test_upstream_faults_are_not_told_to_the_person(gate: Gate) -> None:
    """
    Only a missing judge is, once per session, and not where the user switched the judge off.
    """
    gate.answer = Judgement("error", detail="503")
    assert gate.stop().message == ""

    gate.answer = Judgement("no_judge", detail="ANTHROPIC_API_KEY is not set")
    assert [bool(gate.stop().message) for _ in range(2)] == [True, False]
    assert gate.stop(session_id="s2").message == "turngate: ANTHROPIC_API_KEY is not set; only the free checks run"

    gate.settings = Settings(judge=JudgeSettings(backend="off"))
    assert gate.stop(session_id="s3").message == ""


# Step 7: the verdict


def test_a_finding_holds_with_the_reason_only(gate: Gate) -> None:
    """
    Pitfall 32: the agent gets the verdict's reason, and nothing else.
    """
    gate.answer = judged(CLAIM)
    reply = gate.stop()

    assert (reply.outcome, reply.reason) == ("block_verdict", CLAIM.reason)
    assert reply.message == "turngate held this reply: claim"


def test_a_clean_verdict_passes_in_silence(gate: Gate) -> None:
    """
    No reason, no message.
    """
    assert gate.stop() == Reply("pass_clean", client_version="2.1.328")


def test_a_quote_that_is_not_in_the_reply_holds_nobody(gate: Gate) -> None:
    """
    A gate that checks its judge.
    """
    gate.answer = judged(CLAIM._replace(quote="All checks are green."))
    reply = gate.stop()

    assert (reply.outcome, reply.dropped) == ("pass_ungrounded", 1)


def test_a_finding_that_is_noted_only_ends_the_turn(gate: Gate) -> None:
    """
    `note` is logged and counted; `off` is neither.
    """
    gate.answer = judged(CLAIM)
    gate.settings = Settings(rubric_action={**DEFAULT_ACTIONS, "claim": "note"})
    noted = gate.stop()
    gate.settings = Settings(rubric_action={**DEFAULT_ACTIONS, "claim": "off"})
    off = gate.stop()

    assert (noted.outcome, noted.reason) == ("pass_noted", "")
    assert [finding.held for finding in noted.findings] == [False]
    assert (off.outcome, off.findings) == ("pass_clean", ())


def test_an_opener_alone_holds_once_a_session(gate: Gate) -> None:
    """
    From then on it is noted, in later turns too; another session starts anew.
    """
    gate.answer = judged(OPENER)
    outcomes = [gate.stop(), gate.stop(), gate.stop(session_id="s2")]

    assert [reply.outcome for reply in outcomes] == ["block_verdict", "pass_noted", "block_verdict"]


def test_an_opener_beside_another_finding_is_always_named(gate: Gate) -> None:
    """
    The turn is held anyway, so both are said at once.
    """
    gate.answer = judged(OPENER)
    gate.stop()
    gate.answer = judged(OPENER, CLAIM)
    reply = gate.stop()

    assert OPENER.reason in reply.reason
    assert CLAIM.reason in reply.reason


def test_of_two_faults_that_hold_once_the_known_one_is_named_beside_the_new(gate: Gate) -> None:
    """
    Beside another finding that holds it is always named.
    """
    gate.settings = Settings(rubric_action={**DEFAULT_ACTIONS, "claim": "hold_once"})
    gate.answer = judged(OPENER)
    gate.stop()
    gate.answer = judged(OPENER, CLAIM)
    reply = gate.stop()

    assert (reply.outcome, [finding.held for finding in reply.findings]) == ("block_verdict", [True, True])
    assert OPENER.reason in reply.reason


def test_a_finding_beyond_three_is_not_held_for(gate: Gate) -> None:
    """
    What the agent is not told did not hold it, and an opener among it is not used up.
    """
    three = [CLAIM._replace(reason=f"Reason {number}.") for number in range(3)]
    gate.answer = judged(*three, OPENER)
    reply = gate.stop()
    gate.answer = judged(OPENER)

    assert [finding.held for finding in reply.findings] == [True, True, True, False]
    assert reply.message == "turngate held this reply: claim"
    assert gate.stop().outcome == "block_verdict"


def test_a_reply_that_was_held_for_opener_and_claim_used_up_the_opener(gate: Gate) -> None:
    """
    It was named once; alone it is noted from then on.
    """
    gate.answer = judged(OPENER, CLAIM)
    gate.stop()
    gate.answer = judged(OPENER)

    assert gate.stop().outcome == "pass_noted"


def test_shadow_mode_judges_and_logs_and_holds_nobody(gate: Gate) -> None:
    """
    What would have been held is written down; no continuation is spent.
    """
    gate.settings = Settings(gate_mode="shadow")
    gate.answer = judged(CLAIM)
    replies = [gate.stop(tasks=(TASK,)) for _ in range(4)]

    assert [reply.outcome for reply in replies] == ["shadow_background", *["shadow_verdict"] * 3]
    assert {reply.reason + reply.message for reply in replies} == {""}
    assert {decision.line.spent for decision in gate.decisions} == {0}
    assert [finding.held for reply in replies for finding in reply.findings] == [None] * 3


def test_shadow_mode_holds_an_opener_once_too(gate: Gate) -> None:
    """
    Its counts are those that blocking would have had.
    """
    gate.settings = Settings(gate_mode="shadow")
    gate.answer = judged(OPENER)

    assert [gate.stop().outcome for _ in range(3)] == ["shadow_verdict", "pass_noted", "pass_noted"]


def test_the_message_to_the_person_can_be_switched_off(gate: Gate) -> None:
    """
    The agent gets its reason all the same.
    """
    gate.settings = Settings(gate_message=False)
    gate.answer = judged(CLAIM)

    assert (gate.stop().message, gate.decisions[-1].line.outcome) == ("", "block_verdict")


def test_a_second_gate_at_the_same_stop_does_not_hold_too(gate: Gate) -> None:
    """
    Two installs: the other one reserved while this one was asking. This one passes, and one continuation is spent.
    """

    def while_another_holds(_: Turn) -> Judgement:
        event = gate.event()
        other = decide(
            event, now=NOW, store=gate.store, ask=lambda _: judged(CLAIM), settings=gate.settings, elapsed=lambda: 2.0
        )
        assert other.outcome == "block_verdict"
        return judged(CLAIM)

    gate.answer = while_another_holds
    reply = decide(gate.event(), now=NOW, store=gate.store, ask=gate.ask, settings=gate.settings, elapsed=lambda: 3.0)

    assert (reply.outcome, reply.reason) == ("pass_state_error", "")
    assert {decision.line.outcome: decision.line.spent for decision in gate.decisions} == {
        "block_verdict": 1,
        "pass_state_error": 1,
    }


def test_a_gate_that_comes_late_to_a_held_stop_asks_nobody(gate: Gate) -> None:
    """
    The other install has held already when this one reads the count: no second call, no second hold.
    """
    gate.answer = judged(CLAIM)
    decide(gate.event(), now=NOW, store=gate.store, ask=gate.ask, settings=gate.settings, elapsed=lambda: 2.0)
    started = NOW + timedelta(seconds=1)
    late = decide(gate.event(tasks=(TASK,)), now=started, store=gate.store, ask=gate.ask, settings=gate.settings)

    assert (late.outcome, late.reason, len(gate.asked)) == ("pass_state_error", "", 1)


# Subagents


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


# Faults of our own


def test_a_store_lost_between_two_stops_does_not_hold_without_end(gate: Gate, tmp_path: Path) -> None:
    """
    The transcript shows that our own hook has held the turn twice already.
    """
    gate.answer = judged(CLAIM)
    outcomes: list[str] = []
    for number in range(4):
        gate.database.close()
        gate.database = open_database(tmp_path / f"state{number}")
        gate.store = Store(Ledger(gate.database), TurnCounts(gate.database))
        outcomes.append(gate.stop().outcome)
        gate.session.held(CLAIM.reason, command="/home/dev/.turngate/bin/turngate-hook")
        gate.session.says(REPLY)

    assert outcomes == ["block_verdict", "block_verdict", "pass_cap_spent", "pass_cap_spent"]


def test_without_a_store_the_judge_is_not_even_asked(gate: Gate) -> None:
    """
    Pitfall 11: what cannot be counted cannot be held, so no money is spent on it.
    """
    gate.store = Store(None, None, "turngate.db: file is not a database")
    reply = gate.stop(tasks=(TASK,))

    assert (reply.outcome, reply.reason, gate.asked) == ("pass_state_error", "", [])
    assert reply.detail == "turngate.db: file is not a database"


def test_a_count_of_names_that_cannot_be_read_holds_nobody(gate: Gate) -> None:
    """
    Nothing is held because something failed: neither a task that may have been named, nor an opener that may have been.
    """

    class Forgetful(TurnCounts):
        def times_named(self, session_id: str, kinds: object) -> dict[str, int]:
            raise StoreError("turngate.db: disk I/O error")

    gate.store = gate.store._replace(counts=Forgetful(gate.database))
    gate.answer = judged(OPENER)

    assert gate.stop(tasks=(TASK,)).outcome == "pass_noted"


def test_a_store_that_breaks_while_the_judge_thinks_passes(gate: Gate) -> None:
    """
    Not durably stored: pass, whatever the verdict.
    """

    def break_the_store(_: Turn) -> Judgement:
        gate.database.close()
        return judged(CLAIM)

    gate.answer = break_the_store
    reply = gate.stop()

    assert (reply.outcome, reply.reason) == ("pass_state_error", "")


@pytest.mark.parametrize("path", ["", "/nowhere/x.jsonl", "/", "~/x.jsonl", "a\0b", "x" * 10_000])
def test_a_transcript_that_cannot_be_read_leaves_the_payload_to_judge(gate: Gate, path: str) -> None:
    """
    Pitfall 25: after a clear or a resume the path may name no file.
    """
    gate.answer = judged(CLAIM)

    assert gate.stop(transcript_path=path).outcome == "block_verdict"
    assert gate.asked[0].reply == REPLY


def test_a_decision_is_written_with_what_the_event_told(gate: Gate) -> None:
    """
    The ledger's line has the ids, the human turn, the findings and what they did.
    """
    gate.answer = judged(CLAIM, dropped=1)
    gate.stop()
    line = gate.decisions[-1].line

    assert (line.event, line.session_id, line.prompt_id, line.project) == ("Stop", "s1", "p1", "/home/dev/demo")
    assert (line.human_turn, line.spent, line.dropped, line.reply_chars) == ("u1", 1, 1, len(REPLY))
    assert [tuple(finding) for finding in line.findings] == [(*CLAIM, True)]
    assert line.client_version == "2.1.328"


def test_turns_are_recorded_only_where_that_is_set_and_they_were_judged(gate: Gate) -> None:
    """
    Recorded turns are what the judge saw: redacted.
    """
    assert gate.store.ledger is not None
    gate.stop()
    gate.settings = Settings(record_turns=True)
    gate.answer = Judgement("timeout")
    gate.stop()
    gate.answer = judged()
    secret = "ghp_" + "aB3d" * 9
    gate.stop(reply=f"The token is {secret}.")
    plain, unjudged, recorded = (gate.store.ledger.recorded_turn(decision.line.id) for decision in gate.decisions)

    assert (plain, unjudged) == (None, None)
    assert recorded is not None
    assert secret not in recorded
    assert json.loads(recorded)["request"] == "Write retry.ts"
