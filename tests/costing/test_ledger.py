from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.amounts import plain, sum_costs
from turngate.costing.database import StoreError, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.outcomes import CALL_OUTCOMES, OUTCOMES
from turngate.costing.records import Call, CallEnd, CallStart, Decision, DecisionLine, FindingLine, Spent
from turngate.costing.rows import CALL_COLUMNS, DECISION_COLUMNS, read_call, read_decision
from turngate.costing.stamps import new_id
from turngate.costing.usage import Usage

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_database(tmp_path / "state") as database:
        yield Ledger(database)


@pytest.fixture(scope="module")
def shared_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with open_database(tmp_path_factory.mktemp("state")) as database:
        yield Ledger(database)


def a_start(at: datetime = NOW, **fields: object) -> CallStart:
    return CallStart(at, "anthropic", "claude-sonnet-5-5", "api.anthropic.com", "turn_end@1", "abc")._replace(**fields)  # pyright: ignore[reportArgumentType]


def a_call(ledger: Ledger, cost: str | None, at: datetime = NOW, **fields: object) -> str:
    call_id = ledger.open_call(a_start(at, **fields))
    ledger.close_call(call_id, CallEnd("answered", cost_usd=None if cost is None else Decimal(cost)))
    return call_id


TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=20)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)
COUNTS = st.integers(0, 10**12)
COSTS = st.decimals(min_value=0, max_value=10**6, allow_nan=False, allow_infinity=False, places=15)
ENDS = st.builds(
    CallEnd,
    outcome=st.sampled_from(CALL_OUTCOMES),
    latency_ms=st.none() | COUNTS,
    model_answered=TEXT,
    usage=st.none() | st.builds(Usage, *[COUNTS] * 6),
    raw_usage=st.none() | st.dictionaries(TEXT, st.integers() | TEXT | st.none(), max_size=3),
    cost_usd=st.none() | COSTS,
    price_source=TEXT,
    request_id=TEXT,
    detail=TEXT,
)
STARTS = st.builds(CallStart, TIMES, *[TEXT] * 5, st.integers(1, 99), *[TEXT] * 6)
LINES = st.builds(
    DecisionLine,
    at=TIMES,
    event=TEXT,
    outcome=st.sampled_from(OUTCOMES),
    id=st.just(""),
    session_id=TEXT,
    agent_id=TEXT,
    project=TEXT,
    prompt_id=TEXT,
    human_turn=TEXT,
    detail=TEXT,
    findings=st.lists(st.builds(FindingLine, TEXT, TEXT, TEXT, st.none() | st.booleans()), max_size=3).map(tuple),
    dropped=COUNTS,
    spent=st.none() | COUNTS,
    hook_ms=st.none() | COUNTS,
    transcript_path=TEXT,
    reply_chars=st.none() | COUNTS,
    client_version=TEXT,
)


@given(start=STARTS, end=st.none() | ENDS)
def test_a_call_comes_back_as_it_was_written(shared_ledger: Ledger, start: CallStart, end: CallEnd | None) -> None:
    """
    Every field of a try, ended or not, is read back the same.
    """
    start = start._replace(decision_id=new_id(NOW))
    call_id = shared_ledger.open_call(start)
    if end is not None:
        shared_ledger.close_call(call_id, end)

    (found,) = shared_ledger.calls(decision_id=start.decision_id)

    assert found.id == call_id
    assert found.start == start
    assert found.end == end


@given(line=LINES)
def test_a_decision_comes_back_as_it_was_written(shared_ledger: Ledger, line: DecisionLine) -> None:
    """
    Every field of a decision is read back the same.
    """
    decision_id = shared_ledger.record_decision(line)

    found = shared_ledger.decision(decision_id)

    assert found == Decision(line._replace(id=decision_id))


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        pytest.param("a\ud83d", "a\ufffd", id="first-half-alone"),
        pytest.param("\udc00b", "\ufffdb", id="second-half-alone"),
        pytest.param("\ud83d\ude00", "\U0001f600", id="both-halves"),
    ],
)
def test_half_an_emoji_is_stored_as_a_mark(ledger: Ledger, text: str, stored: str) -> None:
    """
    A lone surrogate, which no database takes, is replaced wherever it stands; two that belong together are one character.
    """
    line = DecisionLine(NOW, "Stop", "pass_clean", "d1", text, text, detail=text)
    ledger.record_decision(line._replace(findings=(FindingLine(text, text, text),)))
    call_id = ledger.open_call(CallStart(NOW, text, text, decision_id="d1"))
    ledger.close_call(call_id, CallEnd("error", detail=text))

    kept = line._replace(session_id=stored, agent_id=stored, detail=stored)
    call = Call(call_id, CallStart(NOW, stored, stored, decision_id="d1"), CallEnd("error", detail=stored))
    assert ledger.decision("d1") == Decision(kept._replace(findings=(FindingLine(stored, stored, stored),)), (call,))


@given(COSTS)
def test_money_is_stored_as_a_plain_decimal(cost: Decimal) -> None:
    """
    An amount is written without exponent and reads back equal, however small.
    """
    assert set(plain(cost)) <= set("0123456789.")
    assert Decimal(plain(cost)) == cost


@given(st.lists(st.tuples(st.none() | COSTS.map(plain), st.integers(1, 10**6))))
def test_costs_add_up_exactly(costs: list[tuple[str | None, int]]) -> None:
    """
    A sum is exact to the last digit, in whole units of 10^-15 dollars, and counts what it leaves out.
    """
    units = sum(int(Decimal(cost).scaleb(15)) * times for cost, times in costs if cost is not None)

    spent = sum_costs(costs)

    assert int(spent.usd.scaleb(15)) == units
    assert spent.unknown == sum(times for cost, times in costs if cost is None)


def test_a_try_has_its_line_before_it_is_sent(ledger: Ledger, tmp_path: Path) -> None:
    """
    An opened call is seen by other processes at once, without outcome, tokens or cost.
    """
    call_id = ledger.open_call(a_start())

    with open_database(tmp_path / "state") as beside:
        assert Ledger(beside).calls() == [Call(call_id, a_start(), None)]
        assert Ledger(beside).spent_usd(NOW) == Spent(Decimal(0), 1)


OPEN_AND_HANG = """
import sys, datetime, time
from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallStart
ledger = Ledger(open_database(sys.argv[1]))
print(ledger.open_call(CallStart(datetime.datetime.now(datetime.timezone.utc), "anthropic", "m")), flush=True)
time.sleep(60)
"""


def test_a_killed_call_stays_in_the_ledger_as_unknown(ledger: Ledger, tmp_path: Path) -> None:
    """
    After `kill -9` in the middle of a call its line is there, its cost counts as unknown, and the ledger works.
    """
    caller = subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_HANG, str(tmp_path / "state")], stdout=subprocess.PIPE, text=True
    )
    assert caller.stdout is not None
    call_id = caller.stdout.readline().strip()
    caller.send_signal(signal.SIGKILL)
    caller.communicate()

    assert [(call.id, call.end) for call in ledger.calls()] == [(call_id, None)]
    assert ledger.spent_usd(datetime(2026, 1, 1, tzinfo=UTC)).unknown == 1
    ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean"))


RECORD_FIFTY = """
import sys, datetime
from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart, DecisionLine
from turngate.costing.stamps import new_id
ledger = Ledger(open_database(sys.argv[1], busy_timeout_s=30))
for number in range(50):
    now = datetime.datetime.now(datetime.timezone.utc)
    decision = new_id(now)
    ledger.close_call(ledger.open_call(CallStart(now, "anthropic", "m", decision_id=decision)), CallEnd("answered"))
    ledger.record_decision(DecisionLine(now, "Stop", "pass_clean", id=decision, session_id=sys.argv[2]))
"""


def test_many_processes_write_one_ledger(ledger: Ledger, tmp_path: Path) -> None:
    """
    Eight processes write 50 decisions with a call each at the same time, and every line is there.
    """
    workers = [
        subprocess.Popen([sys.executable, "-c", RECORD_FIFTY, str(tmp_path / "state"), str(name)]) for name in range(8)
    ]

    assert [worker.wait() for worker in workers] == [0] * 8
    assert [len(ledger.decisions(session_id=str(name))) for name in range(8)] == [50] * 8
    assert all(len(decision.calls) == 1 for decision in ledger.decisions())


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


def test_lines_of_one_millisecond_keep_the_order_of_writing(ledger: Ledger) -> None:
    """
    Decisions and calls of the same time are read back as they were written: their ids are random.
    """
    decisions = [ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean")) for _ in range(9)]
    calls = [a_call(ledger, "1", decision_id=decisions[0]) for _ in range(9)]
    ledger.close_call(last := ledger.open_call(a_start()), CallEnd("timeout"))

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
        ledger.close_call(call_id, CallEnd("pass_clean"))  # pyright: ignore[reportArgumentType]
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


def test_closing_a_call_that_is_not_there_is_a_store_error(ledger: Ledger) -> None:
    """
    Where the line was lost, for example with the whole file, the caller is told.
    """
    with pytest.raises(StoreError, match="no call"):
        ledger.close_call("gone", CallEnd("answered"))


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
        call_id = ledger.open_call(a_start(NOW + number * MINUTE))
        ledger.close_call(call_id, CallEnd(outcome, latency_ms=5))  # pyright: ignore[reportArgumentType]
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


def test_one_of_many_claims_a_judgement_and_the_others_get_its_answer(ledger: Ledger) -> None:
    """
    The first who asks about a stop judges it; the answer is there for all once it is published.
    """
    assert [ledger.claim_judgement("stop", NOW, started_at=NOW) for _ in range(3)] == [True, False, False]
    assert ledger.claim_judgement("other stop", NOW, started_at=NOW)
    assert ledger.published_judgement("stop") is None

    ledger.publish_judgement("stop", "clean", NOW)

    assert ledger.published_judgement("stop") == "clean"
    assert ledger.published_judgement("other stop") is None
    assert not ledger.claim_judgement("stop", NOW + MINUTE, started_at=NOW)


@pytest.mark.parametrize("later", [timedelta(seconds=61), timedelta(hours=-1)], ids=["owner-died", "clock-set-back"])
def test_a_stale_claim_can_be_taken_over(ledger: Ledger, later: timedelta) -> None:
    """
    After a minute, or when the clock went back, the next who asks judges anew.
    """
    ledger.claim_judgement("stop", NOW, started_at=NOW)
    ledger.publish_judgement("stop", "old", NOW)

    assert ledger.claim_judgement("stop", NOW + later, started_at=NOW)
    assert ledger.published_judgement("stop") is None


def test_shared_answers_older_than_a_minute_are_deleted(ledger: Ledger) -> None:
    """
    The next answer takes them away, as the next claim does; it never takes itself away, however long it took.
    """
    ledger.claim_judgement("slow", NOW, started_at=NOW)
    ledger.claim_judgement("old", NOW, started_at=NOW)
    ledger.publish_judgement("old", "clean", NOW)

    ledger.publish_judgement("slow", "late", NOW + timedelta(seconds=61))

    assert ledger.database.rows("SELECT stop, answer FROM shared_judgements") == [("slow", "late")]
    ledger.claim_judgement("next", NOW + timedelta(seconds=62), started_at=NOW)
    assert ledger.database.rows("SELECT stop, answer FROM shared_judgements") == [("next", None)]


CLAIM = """
import sys, datetime
from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
ledger = Ledger(open_database(sys.argv[1], busy_timeout_s=30))
now = datetime.datetime.now(datetime.timezone.utc)
print(sum(ledger.claim_judgement(str(n), now, started_at=now) for n in range(50)))
"""


def test_of_many_processes_one_claims_each_judgement(tmp_path: Path) -> None:
    """
    Four processes that claim the same 50 stops at once get 50 claims between them.
    """
    workers = [
        subprocess.Popen([sys.executable, "-c", CLAIM, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]

    assert sum(int(worker.communicate()[0]) for worker in workers) == 50


def test_a_locked_ledger_is_a_store_error(tmp_path: Path) -> None:
    """
    While somebody else writes for longer than the busy timeout, nothing but StoreError comes out.
    """
    with open_database(tmp_path) as holder, open_database(tmp_path, busy_timeout_s=0.01) as database:
        ledger = Ledger(database)
        with holder.write():
            with pytest.raises(StoreError, match="locked"):
                ledger.open_call(a_start())
            with pytest.raises(StoreError, match="locked"):
                ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean"))
            with pytest.raises(StoreError, match="locked"):
                ledger.claim_judgement("stop", NOW, started_at=NOW)
        ledger.open_call(a_start())


def test_a_locked_store_can_be_waited_for_less(tmp_path: Path) -> None:
    """
    A shorter wait is of that write only.
    """
    with open_database(tmp_path) as holder, open_database(tmp_path, busy_timeout_s=30) as database:
        with holder.write(), pytest.raises(StoreError, match="locked"):
            Ledger(database).open_call(a_start(), wait_s=0.01)

        assert database.rows("PRAGMA busy_timeout") == [(30_000,)]


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


@pytest.mark.parametrize("at", ["garbage", "", "2026-11-30", "2026-11-30T00:00:00", "9999-12-31T23:59:59.999Z"])
def test_a_call_with_a_damaged_time_is_no_recent_call(ledger: Ledger, at: str) -> None:
    """
    What the hook reads is not known then; it never breaks.
    """
    a_call(ledger, "1")
    with ledger.database.write() as connection:
        connection.execute("UPDATE calls SET at = ?, latency_ms = 'x'", (at,))

    assert ledger.recent_outcomes("api.anthropic.com", 5) == []
    assert ledger.last_call_at("abc", "claude-sonnet-5-5", "api.anthropic.com") is None


@pytest.mark.parametrize("fields", ["{", "[[1], 2]", "null", "7", "[" * 100_000, b"\xff"])
def test_damaged_refusals_are_no_refusals(ledger: Ledger, fields: object) -> None:
    """
    The endpoint is asked with all fields again, and what it refuses is remembered anew.
    """
    where = ("api.anthropic.com", "m")
    ledger.remember_refused_fields(*where, ["effort"], at=NOW)
    with ledger.database.write() as connection:
        connection.execute("UPDATE endpoint_refusals SET fields = ?", (fields,))

    assert ledger.refused_fields(*where, now=NOW) == ()
    ledger.remember_refused_fields(*where, ["thinking"], at=NOW)
    assert ledger.refused_fields(*where, now=NOW) == ("thinking",)


VALUES = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | TEXT | st.binary(max_size=9)


@given(st.lists(VALUES, min_size=len(CALL_COLUMNS), max_size=len(CALL_COLUMNS)))
def test_any_call_row_can_be_read(row: list[object]) -> None:
    """
    Whatever a database can hold gives a call whose values have their types.
    """
    call, _ = read_call(row)

    assert isinstance(call.id, str)
    assert call.start.at.tzinfo is not None
    if call.end is not None:
        assert call.end.usage is None or all(type(count) is int and count >= 0 for count in call.end.usage)
        assert call.end.cost_usd is None or call.end.cost_usd.is_finite()


@given(st.lists(VALUES, min_size=len(DECISION_COLUMNS), max_size=len(DECISION_COLUMNS)))
def test_any_decision_row_can_be_read(row: list[object]) -> None:
    """
    Whatever a database can hold gives a line whose values have their types.
    """
    line, _ = read_decision(row)

    assert line.at.tzinfo is not None
    assert all(isinstance(text, str) for text in (line.id, line.event, line.outcome, line.detail))
    assert line.spent is None or line.spent >= 0
