from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart, DecisionLine
from turngate.costing.report import WAYS, By, Total, report, report_csv, report_json
from turngate.costing.store import Store
from turngate.costing.usage import Usage

from .places import Place

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def decide(store: Store, outcome: str, costs: list[str | None], at: datetime = NOON, **fields: str) -> None:
    """
    Record a decision with calls of these costs, each with 10 input tokens and 1 of every other class.
    """
    ledger = Ledger(store)
    model, project = fields.get("model", "m"), fields.get("project", "/p")
    decision = ledger.record_decision(DecisionLine(at, "Stop", outcome, project=project))  # pyright: ignore[reportArgumentType]
    for cost in costs:
        start = CallStart(at, "anthropic", model, decision_id=decision, project=project)
        usage = Usage(10, 1, 1, 1, 1, 1)
        end = CallEnd("answered", usage=usage, cost_usd=None if cost is None else Decimal(cost))
        ledger.settle_call(ledger.open_call(start), start, end)


def a_total(key: str, decisions: int, calls: int, cost: str | None, unknown: int = 0) -> Total:
    known = None if cost is None else Decimal(cost)
    return Total(key, decisions, calls, 10 * calls, calls, calls, calls, calls, calls, known, unknown)


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        pytest.param(
            "day",
            [a_total("2026-11-30", 3, 2, "0.3", 0), a_total("2026-12-01", 2, 3, "0.4", 2)],
            id="days-in-order",
        ),
        pytest.param(
            "model",
            [
                a_total("n", 1, 2, "0.4", 1),
                a_total("m", 2, 2, "0.3"),
                a_total("", 1, 0, "0"),
                a_total("u", 1, 1, None, 1),
            ],
            id="models-dearest-first",
        ),
        pytest.param("project", [a_total("/q", 3, 4, "0.6", 2), a_total("/p", 2, 1, "0.1")], id="projects"),
        pytest.param(
            "outcome",
            [
                a_total("block_verdict", 2, 3, "0.5", 1),
                a_total("pass_clean", 1, 1, "0.2"),
                a_total("block_background", 1, 0, "0"),
                a_total("pass_judge_timeout", 1, 1, None, 1),
            ],
            id="outcomes",
        ),
    ],
)
def test_adds_up_by(store: Store, by: By, rows: list[Total]) -> None:
    """
    Each decision and call stands in its row; unknown costs are counted, and where no cost is known there is none.
    """
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    decide(store, "block_verdict", ["0.1"])
    decide(store, "block_background", [])
    decide(store, "pass_clean", ["0.2"], midnight - timedelta(milliseconds=1), project="/q")
    decide(store, "block_verdict", ["0.4", None], midnight, project="/q", model="n")
    decide(store, "pass_judge_timeout", [None], midnight, project="/q", model="u")

    found = report(store, by)

    assert list(found.rows) == rows
    assert found.total == a_total("total", 5, 5, "0.7", 2)


def test_a_call_without_a_decision_is_not_lost(store: Store) -> None:
    """
    Where the hook was killed before it could write its decision, the call still counts.
    """
    Ledger(store).open_call(CallStart(NOON, "anthropic", "m"))

    (row,) = report(store, "outcome").rows

    assert row == Total("", 0, 1, 0, 0, 0, 0, 0, 0, None, 1)


def test_nothing_recorded_is_an_empty_report(store: Store) -> None:
    """
    An empty ledger, or none at all, has no rows and a total of nothing: that is known to be 0.
    """
    assert report(store, "day") == report(None, "day")
    assert report(None, "day") == ("day", (), Total("total", 0, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0))


def test_json_has_plain_decimals_and_null(store: Store) -> None:
    """
    The data for other tools: money as decimal text, never as a float, and null where it is unknown.
    """
    decide(store, "pass_clean", ["0.0000001"])
    decide(store, "pass_judge_error", [None], project="/q")

    assert json.loads(json.dumps(report_json(report(store, "project")))) == {
        "by": "project",
        "rows": [
            {"project": "/p", **expected(decisions=1, calls=1, cost_usd="0.0000001", unknown_costs=0)},
            {"project": "/q", **expected(decisions=1, calls=1, cost_usd=None, unknown_costs=1)},
        ],
        "total": expected(decisions=2, calls=2, cost_usd="0.0000001", unknown_costs=1),
    }


def test_csv_has_the_columns_of_json(store: Store) -> None:
    """
    One row for each of the report's, money as a plain decimal and nothing where it is unknown.
    """
    decide(store, "pass_clean", ["0.0000001"])
    decide(store, "pass_judge_error", [None], project='/q, "r"')

    assert report_csv(report(store, "project")) == (
        "project,decisions,calls,input_tokens,output_tokens,thinking_tokens,"
        "cache_write_5m_tokens,cache_write_1h_tokens,cache_read_tokens,cost_usd,unknown_costs\n"
        "/p,1,1,10,1,1,1,1,1,0.0000001,0\n"
        '"/q, ""r""",1,1,10,1,1,1,1,1,,1\n'
    )


def expected(**fields: object) -> dict[str, object]:
    calls = fields["calls"]
    assert isinstance(calls, int)
    names = ("output", "thinking", "cache_write_5m", "cache_write_1h", "cache_read")
    return {**fields, "input_tokens": 10 * calls, **{f"{name}_tokens": calls for name in names}}


@pytest.mark.parametrize("by", WAYS)
def test_sums_agree_with_plain_sql_to_the_last_digit(store: Store, by: By) -> None:
    """
    Over 500 mixed calls, rows and total agree with the database's own counts and with costs added one by one.
    """
    dice = random.Random(7)
    for number in range(250):
        costs = [dice.choice([None, f"0.{dice.randrange(10**14):014}", "0.00249"]) for _ in range(2)]
        fields = {"model": dice.choice("mn"), "project": dice.choice(["/p", "/q", ""])}
        decide(store, dice.choice(["pass_clean", "block_verdict"]), costs, NOON + timedelta(hours=number), **fields)

    found = report(store, by)

    ((calls, tokens),) = store.rows("SELECT COUNT(*), SUM(input_tokens) FROM calls")
    costs = [cost for (cost,) in store.rows("SELECT cost_usd FROM calls")]
    exact = sum((Decimal(cost) for cost in costs if cost is not None), Decimal(0))
    for rows in (found.rows, [found.total]):
        assert sum(row.calls for row in rows) == calls == 500
        assert sum(row.decisions for row in rows) == 250
        assert sum(row.input_tokens for row in rows) == tokens
        assert sum(row.cost_usd or 0 for row in rows) == exact
        assert sum(row.unknown_costs for row in rows) == costs.count(None)


@pytest.mark.parametrize("damaged", ["x", b"7", 1.5, -1, 10**13])
def test_a_damaged_count_counts_as_nothing(tmp_path: Path, damaged: object) -> None:
    """
    What is no whole number from 0 up, as a column of SQLite may hold, is left out of the sum, and the rest is kept.
    """
    with Place(str(tmp_path)).open() as store:
        decide(store, "pass_clean", ["0.1", "0.1"])
        with store.write() as transaction:
            transaction.execute("UPDATE calls SET input_tokens = ? WHERE number = 1", (damaged,))

        assert report(store, "day").total.input_tokens == 10
