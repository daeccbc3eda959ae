"""
What a ledger is asked for, and what it finds.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.outcomes import HOLDS, OUTCOMES, Outcome
from turngate.costing.records import Call, CallEnd, Decision, DecisionLine, LabelLine, Spent

from .ledger_lines import MINUTE, NOW, a_call, a_start


def test_decisions_come_newest_last_with_their_calls(ledger: Ledger) -> None:
    """
    The limit takes the latest; each decision has its own calls in the order of the tries.
    """
    ids = [
        ledger.record_decision(DecisionLine(NOW + number * MINUTE, "Stop", "pass_clean", session_id="s"))
        for number in (2, 0, 1)
    ]
    first, second = (a_call(ledger, "0.1", decision_id=ids[0], try_number=number) for number in (1, 2))
    ledger.record_decision(DecisionLine(NOW + 9 * MINUTE, "Stop", "pass_clean", session_id="other"))

    found = ledger.decisions(2, session_id="s")

    assert [decision.line.id for decision in found] == [ids[2], ids[0]]
    assert [[call.id for call in decision.calls] for decision in found] == [[], [first, second]]


def test_decisions_are_found_by_project_and_outcome(ledger: Ledger) -> None:
    """
    Each alone, and both together; the limit counts what fits.
    """
    known: list[tuple[str, Outcome]] = [
        ("/a", "block_verdict"),
        ("/a", "pass_clean"),
        ("/b", "shadow_verdict"),
        ("/b", "pass_clean"),
    ]
    for number, (project, outcome) in enumerate(known):
        line = DecisionLine(NOW + number * MINUTE, "Stop", outcome, id=f"d{number}", project=project)
        ledger.record_decision(line)

    def ids(found: list[Decision]) -> list[str]:
        return [decision.line.id for decision in found]

    assert ids(ledger.decisions(outcomes=HOLDS)) == ["d0", "d2"]
    assert ids(ledger.decisions(1, outcomes=HOLDS, project="/a")) == ["d0"]
    assert ids(ledger.decisions(project="/b")) == ["d2", "d3"]


def test_what_was_said_of_a_decision_can_be_forgotten(ledger: Ledger) -> None:
    """
    That of others stays; what was never said is forgotten already.
    """
    for decision in ("a", "b"):
        ledger.label(decision, "none", NOW)

    ledger.unlabel("a")
    ledger.unlabel("never")

    assert ledger.labels() == [LabelLine("b", "none", NOW)]


def test_lines_of_one_millisecond_keep_the_order_of_writing(ledger: Ledger) -> None:
    """
    Decisions and calls of the same time are read back as they were written: their ids are random.
    """
    decisions = [ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean")) for _ in range(9)]
    calls = [a_call(ledger, "1", decision_id=decisions[0]) for _ in range(9)]
    ledger.settle_call(last := ledger.open_call(a_start()), a_start(), CallEnd("timeout"))

    assert [decision.line.id for decision in ledger.decisions()] == decisions
    assert [decision.line.id for decision in ledger.decisions(2)] == decisions[-2:]
    assert ledger.ids_starting(decisions[0][:9]) == decisions
    assert [call.id for call in ledger.decisions()[0].calls] == calls
    assert [call.id for call in ledger.calls()] == [*calls, last]
    assert [call.outcome for call in ledger.recent_outcomes("api.anthropic.com", 2)] == ["timeout", "answered"]


def test_more_decisions_than_a_query_takes_values(ledger: Ledger) -> None:
    """
    A thousand decisions come back with all of their calls.
    """
    ids = [ledger.record_decision(DecisionLine(NOW + number * MINUTE, "Stop", "pass_clean")) for number in range(1001)]
    for decision_id in ids:
        ledger.open_call(a_start(decision_id=decision_id))

    assert [len(decision.calls) for decision in ledger.decisions()] == [1] * 1001


def test_a_decision_is_found_by_the_beginning_of_its_id(ledger: Ledger) -> None:
    """
    Ids are matched from their start, letter by letter: `%` and `_` stand for themselves.
    """
    for decision_id in ("abc1", "abc2", "xyz"):
        ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean", id=decision_id))

    assert ledger.ids_starting("abc") == ["abc1", "abc2"]
    assert ledger.ids_starting("x") == ["xyz"]
    assert ledger.ids_starting("%") == ledger.ids_starting("a_c") == []
    assert ledger.decision("abc1") == Decision(DecisionLine(NOW, "Stop", "pass_clean", id="abc1"))
    assert ledger.decision("abc") is None


def test_an_outcome_outside_the_set_is_a_programming_error(ledger: Ledger) -> None:
    """
    Outcomes are a closed set: another word is refused and not written.
    """
    call_id = ledger.open_call(a_start())

    with pytest.raises(ValueError, match="'fine'"):
        ledger.record_decision(DecisionLine(NOW, "Stop", "fine"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="'pass_clean'"):
        ledger.settle_call(call_id, a_start(), CallEnd("pass_clean"))  # pyright: ignore[reportArgumentType]
    assert ledger.decisions() == []
    assert ledger.calls()[0].end is None


def test_the_outcomes_are_a_closed_set() -> None:
    """
    The set of decision outcomes is the documented one, each once.
    """
    assert " ".join(OUTCOMES) == (
        "pass_clean pass_noted pass_empty_reply pass_api_error pass_not_a_turn pass_off pass_cap_spent"
        " pass_wakeup_pending pass_ungrounded pass_budget pass_judge_timeout pass_judge_error pass_judge_unreadable"
        " pass_judge_refused pass_breaker_open pass_no_judge pass_state_error pass_service_error pass_internal_error"
        " block_background block_verdict jobs_pass jobs_deny jobs_unparsed shadow_background shadow_verdict"
    )


def test_a_call_whose_line_was_lost_is_written_whole_at_its_end(ledger: Ledger) -> None:
    """
    For example with the whole file: a billed try is not lost with it.
    """
    assert ledger.settle_call("gone", a_start(), CallEnd("answered")) == "gone"
    assert ledger.calls() == [Call("gone", a_start(), CallEnd("answered"))]


def test_spending_counts_from_a_time_and_for_a_session(ledger: Ledger) -> None:
    """
    The start itself counts, what was before does not; a session has only its own.
    """
    a_call(ledger, "1", NOW - MINUTE, session_id="s")
    a_call(ledger, "0.0000001", NOW, session_id="s")
    a_call(ledger, "0.2", NOW + MINUTE, session_id="t")
    a_call(ledger, None, NOW + MINUTE, session_id="s")

    assert ledger.spent_usd(NOW) == Spent(Decimal("0.2000001"), 1)
    assert ledger.spent_usd(NOW, "s") == Spent(Decimal("0.0000001"), 1)
    assert ledger.spent_usd(NOW + 2 * MINUTE) == Spent(Decimal(0), 0)


def test_calls_are_given_within_a_time(ledger: Ledger) -> None:
    """
    `since` is part of the time, `until` is not.
    """
    ids = [a_call(ledger, "1", NOW + number * MINUTE) for number in range(4)]

    assert [call.id for call in ledger.calls(since=NOW + MINUTE, until=NOW + 3 * MINUTE)] == ids[1:3]


def test_recent_outcomes_are_of_one_endpoint_newest_first(ledger: Ledger) -> None:
    """
    A breaker sees how the latest calls to its endpoint ended; one under way has no outcome.
    """
    for number, outcome in enumerate(("error", "answered", "timeout")):
        start = a_start(NOW + number * MINUTE)
        ledger.settle_call(ledger.open_call(start), start, CallEnd(outcome, latency_ms=5))  # pyright: ignore[reportArgumentType]
    ledger.open_call(a_start(NOW + 3 * MINUTE))
    ledger.open_call(a_start(NOW + 4 * MINUTE, endpoint="gateway"))

    found = ledger.recent_outcomes("api.anthropic.com", 3)

    assert found == [
        (NOW + 3 * MINUTE, None, None),
        (NOW + 2 * MINUTE, "timeout", 5),
        (NOW + MINUTE, "answered", 5),
    ]


def test_the_last_call_is_that_of_the_same_rubric_model_and_endpoint(ledger: Ledger) -> None:
    """
    Caching looks at calls that could have left the same words in the same cache.
    """
    ledger.open_call(a_start(NOW))
    for other in ({"rubric_hash": "x"}, {"model": "x"}, {"endpoint": "x"}):
        ledger.open_call(a_start(NOW + MINUTE, **other))

    assert ledger.last_call_at("abc", "claude-sonnet-5-5", "api.anthropic.com") == NOW
    assert ledger.last_call_at("abc", "claude-sonnet-5-5", "elsewhere") is None


def test_refused_fields_are_remembered_beside_those_already_known(ledger: Ledger) -> None:
    """
    What an endpoint refuses for a model adds up, and does not concern other models or endpoints.
    """
    ledger.remember_refused_fields("gateway", "m", ["thinking"], at=NOW)
    ledger.remember_refused_fields("gateway", "m", ["effort", "thinking"], at=NOW)

    assert ledger.refused_fields("gateway", "m", now=NOW) == ("effort", "thinking")
    assert ledger.refused_fields("gateway", "other", now=NOW) == ledger.refused_fields("other", "m", now=NOW) == ()
    assert ledger.refused_fields("gateway", "m", now=NOW + timedelta(days=8)) == ()


def test_the_end_of_a_call_brings_its_beginning_where_that_is_missing(ledger: Ledger) -> None:
    """
    Settled with or without an opened line, and as often as one likes, it is one line.
    """
    opened = ledger.open_call(a_start())
    assert ledger.settle_call(opened, a_start(), CallEnd("answered")) == opened
    missing = ledger.settle_call("", a_start(NOW + MINUTE), CallEnd("timeout"))
    ledger.settle_call(missing, a_start(NOW + MINUTE), CallEnd("timeout"))

    assert [(call.id, call.end) for call in ledger.calls()] == [
        (opened, CallEnd("answered")),
        (missing, CallEnd("timeout")),
    ]


def test_the_hook_has_the_last_word_on_what_became_of_a_stop(ledger: Ledger) -> None:
    """
    A service that wrote its hold down and died held nobody; a late line of a service changes nothing.
    """
    held = DecisionLine(NOW, "Stop", "block_verdict", id="one", spent=1)
    unheard = DecisionLine(NOW, "Stop", "pass_service_error", id="one", detail="the service hung up")

    for line in (held, unheard, held):
        ledger.record_decision(line)

    [decision] = ledger.decisions()
    assert (decision.line.outcome, decision.line.detail) == ("pass_service_error", "the service hung up")
    assert decision.line.spent == 1


def test_the_newest_label_of_a_decision_counts(ledger: Ledger) -> None:
    """
    What was said of it before is forgotten; labels come oldest first, and those of one decision can be asked for.
    """
    ledger.label("d1", "claim", NOW, "of old")
    ledger.label("d2", "none", NOW + MINUTE)
    ledger.label("d1", "claim,opener", NOW + 2 * MINUTE, "anew \udc80")

    anew = LabelLine("d1", "claim,opener", NOW + 2 * MINUTE, "anew \ufffd")
    assert ledger.labels() == [LabelLine("d2", "none", NOW + MINUTE), anew]
    assert ledger.labels("d1") == [anew]
    assert ledger.labels("d3") == []
