"""
A ledger's lines come back as they were written; of a damaged one, what can be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.ledger import Ledger
from turngate.costing.outcomes import CALL_OUTCOMES, OUTCOMES
from turngate.costing.records import Call, CallEnd, CallStart, Decision, DecisionLine, FindingLine
from turngate.costing.rows import CALL_COLUMNS, DECISION_COLUMNS, read_call, read_decision
from turngate.costing.stamps import new_id
from turngate.costing.usage import Usage

from .ledger_lines import COSTS, NOW, a_call
from .places import BOTH, Place, a_place


@pytest.fixture(scope="module", params=BOTH)
def shared_ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with a_place(request.param, tmp_path_factory.mktemp("state")) as place, place.open() as store:
        yield Ledger(store)


@pytest.fixture
def file_ledger(tmp_path: Path) -> Iterator[Ledger]:
    """
    Give a ledger whose columns take values of any type, as only SQLite's do.
    """
    with Place(str(tmp_path / "state")).open() as store:
        yield Ledger(store)


TEXT = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)
COUNTS = st.integers(0, 10**12)


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
        shared_ledger.settle_call(call_id, start, end)

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
    start = CallStart(NOW, text, text, decision_id="d1")
    call_id = ledger.settle_call(ledger.open_call(start), start, CallEnd("error", detail=text))

    kept = line._replace(session_id=stored, agent_id=stored, detail=stored)
    call = Call(call_id, CallStart(NOW, stored, stored, decision_id="d1"), CallEnd("error", detail=stored))
    assert ledger.decision("d1") == Decision(kept._replace(findings=(FindingLine(stored, stored, stored),)), (call,))


@pytest.mark.parametrize("at", ["garbage", "", "2026-11-30", "2026-11-30T00:00:00", "9999-12-31T23:59:59.999Z"])
def test_a_call_with_a_damaged_time_is_no_recent_call(file_ledger: Ledger, at: str) -> None:
    """
    What the hook reads is not known then; it never breaks.
    """
    a_call(file_ledger, "1")
    with file_ledger.database.write() as connection:
        connection.execute("UPDATE calls SET at = ?, latency_ms = 'x'", (at,))

    assert file_ledger.recent_outcomes("api.anthropic.com", 5) == []
    assert file_ledger.last_call_at("abc", "claude-sonnet-5-5", "api.anthropic.com") is None


@pytest.mark.parametrize("fields", ["{", "[[1], 2]", "null", "7", "[" * 100_000, b"\xff"])
def test_damaged_refusals_are_no_refusals(file_ledger: Ledger, fields: object) -> None:
    """
    The endpoint is asked with all fields again, and what it refuses is remembered anew.
    """
    where = ("api.anthropic.com", "m")
    file_ledger.remember_refused_fields(*where, ["effort"], at=NOW)
    with file_ledger.database.write() as connection:
        connection.execute("UPDATE endpoint_refusals SET fields = ?", (fields,))

    assert file_ledger.refused_fields(*where, now=NOW) == ()
    file_ledger.remember_refused_fields(*where, ["thinking"], at=NOW)
    assert file_ledger.refused_fields(*where, now=NOW) == ("thinking",)


def test_a_nul_is_kept_or_marked_and_found_again(ledger: Ledger) -> None:
    """
    PostgreSQL takes none in any text; the line is written all the same.
    """
    decision_id = ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean", session_id="a\0b", detail="\0"))

    (found,) = ledger.decisions(session_id="a\0b")

    assert found.line.id == decision_id
    assert (found.line.session_id, found.line.detail) in {("a\0b", "\0"), ("a\ufffdb", "\ufffd")}


def test_a_huge_text_comes_back_whole(ledger: Ledger) -> None:
    """
    Five million characters of more than one byte.
    """
    text = "\U0001f600x" * 2_500_000
    ledger.record_turn("d1", text)

    assert ledger.recorded_turn("d1") == text


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
