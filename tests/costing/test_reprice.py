from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.prices import PriceEntry
from turngate.costing.records import BATCH, Call, CallEnd, CallStart
from turngate.costing.report import report
from turngate.costing.reprice import reprice, repriced_text
from turngate.costing.store import Store
from turngate.costing.usage import Usage

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
NOW = datetime(2026, 12, 1, tzinfo=UTC)

RAW: Mapping[str, object] = {
    "input_tokens": 1000,
    "output_tokens": 100,
    "output_tokens_details": {"thinking_tokens": 60},
    "cache_creation_input_tokens": 500,
    "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 300},
    "cache_read_input_tokens": 400,
}
"""1000 x 2 + 100 x 10 + 200 x 2.50 + 300 x 4 + 400 x 0.10 = 4740 millionths of a dollar by claude-sonnet-5-5."""
TOKENS = Usage(1000, 100, 60, 200, 300, 400)


def a_call(store: Store, raw: Mapping[str, object] | None = RAW, cost: str | None = None, **start: Any) -> str:
    """
    Record a call as a version may have done that could neither price nor read its usage.
    """
    begun = CallStart(AT, "anthropic", "claude-sonnet-5-5")._replace(**start)
    known = None if cost is None else Decimal(cost)
    end = CallEnd("answered", raw_usage=raw, cost_usd=known, price_source="of old" if cost else "")
    return Ledger(store).settle_call("", begun, end)


def the_call(store: Store, call_id: str) -> Call:
    (found,) = Ledger(store).calls(call_id=call_id)
    return found


@pytest.mark.parametrize(
    ("start", "raw", "cost"),
    [
        pytest.param({}, {}, "0.00474", id="plain"),
        pytest.param({"backend": BATCH}, {}, "0.00237", id="batch-is-half"),
        pytest.param({}, {"inference_geo": "us"}, "0.005214", id="us-only-is-1.1-times"),
        pytest.param({"backend": BATCH}, {"inference_geo": "us"}, "0.002607", id="both"),
        pytest.param({"at": datetime(2026, 10, 6, 12, tzinfo=UTC)}, {}, "0.00478", id="before-the-cut"),
        pytest.param({"model": "claude-haiku-5-5"}, {}, "0.000239", id="the-model-asked"),
    ],
)
def test_costs_are_worked_out_from_the_usage_kept(
    store: Store, start: dict[str, Any], raw: dict[str, object], cost: str
) -> None:
    """
    By time, back end, model and geography of each call; the tokens are read anew, too.
    """
    call = a_call(store, {**RAW, **raw}, "9", **start)

    found = reprice(store)

    end = the_call(store, call).end
    assert end is not None
    assert (end.cost_usd, end.usage) == (Decimal(cost), TOKENS)
    assert end.price_source.startswith(("genai-prices ", "turngate prices "))
    assert found == (1, 1, 0, 0, (Decimal(9), 0), (Decimal(cost), 0))


def test_the_model_that_answered_is_what_is_paid(store: Store) -> None:
    """
    A gateway may answer with another model than the one asked.
    """
    begun = CallStart(AT, "anthropic", "claude-sonnet-5-5")
    Ledger(store).settle_call("", begun, CallEnd("answered", model_answered="claude-haiku-4-5", raw_usage=RAW))

    reprice(store)

    # 1000 x 1 + 100 x 5 + 200 x 1.25 + 300 x 2 + 400 x 0.10 = 2390 millionths
    assert report(store, "day", now=NOW).total.cost_usd == Decimal("0.00239")


@pytest.mark.parametrize(
    "raw",
    [None, {}, {"input_tokens": 1}, {"input_tokens": -1, "output_tokens": 1}],
    ids=["none", "empty", "part", "damage"],
)
def test_a_call_without_a_usage_stays_as_it_is(store: Store, raw: Mapping[str, object] | None) -> None:
    """
    What it cost is not known, and stays so: never 0.
    """
    call = a_call(store, raw)

    assert reprice(store) == (1, 0, 1, 0, (0, 1), (0, 1))
    end = the_call(store, call).end
    assert end is not None
    assert (end.cost_usd, end.usage) == (None, None)


def test_a_call_that_never_ended_stays_so(store: Store) -> None:
    """
    Its usage may still come: nothing is written into its line.
    """
    call = Ledger(store).open_call(CallStart(AT, "anthropic", "claude-sonnet-5-5"))

    assert reprice(store)[:3] == (1, 0, 1)
    assert the_call(store, call).end is None


@pytest.mark.parametrize("cost", ["0.25", None])
def test_without_a_price_what_was_known_stays(store: Store, cost: str | None) -> None:
    """
    A price that is forgotten makes no cost unknown that was known; the tokens are read all the same.
    """
    call = a_call(store, RAW, cost, model="local/unpriced")

    found = reprice(store)

    assert (found.changed, found.without_price) == (1, 1)
    end = the_call(store, call).end
    assert end is not None
    assert (end.cost_usd, end.price_source) == ((Decimal(cost), "of old") if cost else (None, ""))
    assert end.usage == TOKENS


@pytest.mark.parametrize("cost", ["NaN", "x", "-1", b"0.5"], ids=repr)
def test_a_cost_that_cannot_be_read_changes_once_at_most(tmp_path: Path, cost: object) -> None:
    """
    Without a price it stays, and counts as no change; with one it is another afterwards.
    """
    with open_database(tmp_path) as store:
        calls = [a_call(store, model="local/unpriced"), a_call(store)]
        with store.write() as transaction:
            transaction.execute("UPDATE calls SET cost_usd = ?", (cost,))

        assert [reprice(store).changed for _ in range(3)] == [2, 0, 0]

        assert store.rows("SELECT cost_usd FROM calls ORDER BY number") == [(cost,), ("0.00474",)]
        assert len(calls) == 2


def test_the_users_own_prices_come_first(store: Store) -> None:
    """
    One dollar for a million tokens of each class: 2,000 tokens cost 0.002.
    """
    one = Decimal(1)
    call = a_call(store, model="local/mine")

    reprice(store, overrides=[PriceEntry("local/mine", None, None, one, one, one, one, one)])

    end = the_call(store, call).end
    assert end is not None
    assert (end.cost_usd, end.price_source) == (Decimal("0.002"), "user")


def test_since_and_trial_limit_what_is_written(store: Store) -> None:
    """
    Older calls are not looked at, a trial says the same and writes nothing, and a second go has nothing to do.
    """
    old, new = a_call(store, at=AT - timedelta(seconds=1)), a_call(store)

    trial = reprice(store, since=AT, is_trial=True)
    assert the_call(store, new).end == the_call(store, old).end
    done = reprice(store, since=AT)

    assert trial == done == (1, 1, 0, 0, (0, 1), (Decimal("0.00474"), 0))
    old_end, new_end = the_call(store, old).end, the_call(store, new).end
    assert old_end is not None
    assert new_end is not None
    assert (old_end.cost_usd, new_end.cost_usd) == (None, Decimal("0.00474"))
    assert reprice(store, since=AT).changed == 0


def test_reports_are_right_at_once(store: Store) -> None:
    """
    Days that were kept before are added up anew.
    """
    a_call(store, cost="9")
    assert report(store, "day", now=NOW).total.cost_usd == 9

    reprice(store)

    assert report(store, "day", now=NOW).total.cost_usd == Decimal("0.00474")


def test_thousands_of_calls_are_repriced_in_portions(store: Store) -> None:
    """
    2,500 calls, each once: 2500 x 0.00474 = 11.85.
    """
    names = "id, decision_id, at, event, session_id, agent_id, project, human_turn, backend, endpoint, model, rubric"
    with store.write() as transaction:
        for number in range(2500):
            values = (f"c{number}", "", "2026-11-01T12:00:00.000Z", *[""] * 5, "anthropic", "", "claude-sonnet-5-5", "")
            transaction.execute(
                f"INSERT INTO calls ({names}, rubric_hash, try_number, outcome, raw_usage) VALUES ({', '.join('?' * 12)}, '', 1,"
                " 'answered', ?)",
                (*values, json.dumps(RAW)),
            )

    assert reprice(store) == (2500, 2500, 0, 0, (0, 2500), (Decimal("11.85"), 0))


def test_what_was_done_is_said_in_words(store: Store) -> None:
    """
    How many calls, how many changed, and the sums before and after.
    """
    a_call(store, cost="9")
    a_call(store, None)

    assert repriced_text(reprice(store)) == (
        "calls looked at: 2, changed: 1\n"
        "sum before: $9, unknown costs: 1\n"
        "sum after:  $0.00474, unknown costs: 1\n"
        "without a usage that can be read: 1; what they cost stays as it was\n"
    )
