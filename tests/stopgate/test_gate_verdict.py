"""
The gate and its judge: what is asked, what is made of the answer, and what a fault of our own comes to.
"""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from pathlib import Path
from typing import get_args

import pytest

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.store import StoreError
from turngate.judge.judgement import AskOutcome, Judgement
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn
from turngate.stopgate.gate import Reply, Store, decide
from turngate.stopgate.settings import DEFAULT_ACTIONS, Settings
from turngate.stopgate.turn_count import TurnCounts

from .gate_stage import CLAIM, NOW, OPENER, REPLY, TASK, Gate, judged

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
    Pitfall 32: the agent gets the verdict's reason, and nothing else. The person gets the fault, and what to say if it is not there.
    """
    gate.answer = judged(CLAIM)
    reply = gate.stop()

    assert (reply.outcome, reply.reason) == ("block_verdict", CLAIM.reason)
    assert reply.message == f"turngate held this reply: claim (turngate wrong {gate.decisions[0].line.id[:9]})"


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
    assert reply.message.startswith("turngate held this reply: claim (")
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


def test_holds_that_the_client_writes_late_are_counted_before_anybody_is_asked(gate: Gate) -> None:
    """
    The store is new, and the transcript has the second hold and the reply only when it is read again.
    """
    hold = {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "No test ran."}}

    def held() -> None:
        answer = json.dumps(hold)
        gate.session.attachment("hook_success", hookEvent="Stop", stdout=answer, command="/x/turngate-hook")

    def written_late() -> None:
        held()
        gate.session.says(REPLY)
        gate.session.write(gate.folder)

    held()
    gate.session.says("I looked.")
    event = gate.event()

    reply = decide(
        event,
        now=NOW,
        store=gate.store,
        ask=gate.ask,
        settings=gate.settings,
        held_back=written_late,
        elapsed=lambda: 0.0,
    )

    assert (reply.outcome, gate.asked) == ("pass_cap_spent", [])


def test_a_gate_that_comes_late_to_a_held_stop_asks_nobody(gate: Gate) -> None:
    """
    The other install has held already when this one reads the count: no second call, no second hold.
    """
    gate.answer = judged(CLAIM)
    decide(gate.event(), now=NOW, store=gate.store, ask=gate.ask, settings=gate.settings, elapsed=lambda: 2.0)
    started = NOW + timedelta(seconds=1)
    late = decide(gate.event(tasks=(TASK,)), now=started, store=gate.store, ask=gate.ask, settings=gate.settings)

    assert (late.outcome, late.reason, len(gate.asked)) == ("pass_state_error", "", 1)


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


def test_a_verdict_that_comes_when_nobody_waits_any_more_spends_nothing(gate: Gate) -> None:
    """
    A service whose hook gave up or was killed meanwhile holds nobody: the continuation is left for a stop that hears of it.
    """
    gate.answer = judged(CLAIM)

    late, next_one = gate.stop(is_heard=lambda: not gate.asked), gate.stop()

    assert (late.outcome, late.reason) == ("pass_service_error", "")
    assert [finding.held for finding in late.findings] == [False]
    assert next_one.outcome == "block_verdict"
    assert [decision.line.spent for decision in gate.decisions] == [0, 1]


def test_nobody_is_asked_for_whom_nobody_waits(gate: Gate) -> None:
    """
    A service that slept until its hook gave up pays for no answer.
    """
    assert gate.stop(is_heard=lambda: False).outcome == "pass_service_error"
    assert gate.asked == []


def test_a_reply_that_is_not_in_the_transcript_yet_is_waited_for(gate: Gate) -> None:
    """
    The client writes the end of a turn while the hook starts: the judge sees the tool results that come just before the reply.
    """
    event = gate.event(reply="All done: ran the tests too.")

    def write_the_rest() -> None:
        gate.session.runs("Bash", "3 passed", command="pytest -q")
        gate.session.says("All done: ran the tests too.")
        gate.session.write(gate.folder)

    writing = threading.Timer(0.05, write_the_rest)
    writing.start()
    gate.stop(event)
    writing.join()

    [turn] = gate.asked
    assert "3 passed" in turn.tool_calls[-1].line


def test_a_reply_that_never_comes_is_judged_without(gate: Gate) -> None:
    """
    Where the client keeps no transcript of the reply, the payload is judged, a quarter of a second later.
    """
    assert gate.stop(reply="Nobody ever wrote this.").outcome == "pass_clean"
    assert [turn.reply for turn in gate.asked] == ["Nobody ever wrote this."]
