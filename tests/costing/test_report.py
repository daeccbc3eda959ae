from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from turngate.costing.day_sums import read_days
from turngate.costing.latencies import latency, latency_over_time
from turngate.costing.ledger import Ledger
from turngate.costing.overview import overview, overview_json
from turngate.costing.records import CallEnd, CallStart, DecisionLine
from turngate.costing.report import (
    WAYS,
    By,
    Total,
    decisions_by_outcome,
    report,
    report_csv,
    report_json,
    spend_over_time,
    tokens_by_class,
    total_of,
)
from turngate.costing.store import Store
from turngate.costing.sums import Filters
from turngate.costing.usage import Usage
from turngate.costing.windows import ALL_TIME, Window

from .places import Place

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOW = datetime(2026, 12, 15, 12, tzinfo=UTC)
"""When reports are asked for: most days are over."""
BERLIN = ZoneInfo("Europe/Berlin")


def decide(store: Store, outcome: str, costs: list[str | None], at: datetime = NOON, **fields: str) -> str:
    """
    Record a decision with calls of these costs, each with 10 input tokens and 1 of every other class.
    """
    ledger = Ledger(store)
    model, project, event, session = (
        fields.get(name, default)
        for name, default in (("model", "m"), ("project", "/p"), ("event", "Stop"), ("session", "s"))
    )
    decision = ledger.record_decision(DecisionLine(at, event, outcome, session_id=session, project=project))  # pyright: ignore[reportArgumentType]
    for cost in costs:
        start = CallStart(
            at, "anthropic", model, decision_id=decision, event=event, session_id=session, project=project
        )
        usage = Usage(10, 1, 1, 1, 1, 1)
        end = CallEnd("answered", usage=usage, cost_usd=None if cost is None else Decimal(cost))
        ledger.settle_call(ledger.open_call(start), start, end)
    return decision


def a_total(key: str, decisions: int, calls: int, cost: str | None, unknown: int = 0, blocks: int = 0) -> Total:
    known = None if cost is None else Decimal(cost)
    return Total(key, decisions, calls, 10 * calls, calls, calls, calls, calls, calls, known, unknown, blocks)


@pytest.mark.parametrize(
    ("by", "rows"),
    [
        pytest.param(
            "day",
            [a_total("2026-11-30", 3, 2, "0.3", 0, 2), a_total("2026-12-01", 2, 3, "0.4", 2, 1)],
            id="days-in-order",
        ),
        pytest.param(
            "model",
            [
                a_total("n", 1, 2, "0.4", 1, 1),
                a_total("m", 2, 2, "0.3", 0, 1),
                a_total("", 1, 0, "0", 0, 1),
                a_total("u", 1, 1, None, 1),
            ],
            id="models-dearest-first",
        ),
        pytest.param("project", [a_total("/q", 3, 4, "0.6", 2, 1), a_total("/p", 2, 1, "0.1", 0, 2)], id="projects"),
        pytest.param(
            "outcome",
            [
                a_total("block_verdict", 2, 3, "0.5", 1, 2),
                a_total("pass_clean", 1, 1, "0.2"),
                a_total("block_background", 1, 0, "0", 0, 1),
                a_total("pass_judge_timeout", 1, 1, None, 1),
            ],
            id="outcomes",
        ),
        pytest.param("event", [a_total("Stop", 5, 5, "0.7", 2, 3)], id="events"),
        pytest.param("session", [a_total("s", 5, 5, "0.7", 2, 3)], id="sessions"),
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

    found = report(store, by, now=NOW)

    assert list(found.rows) == rows
    assert found.total == a_total("total", 5, 5, "0.7", 2, 3)


def test_a_call_without_a_decision_is_not_lost(store: Store) -> None:
    """
    Where the hook was killed before it could write its decision, the call still counts.
    """
    Ledger(store).open_call(CallStart(NOON, "anthropic", "m"))

    (row,) = report(store, "outcome", now=NOW).rows

    assert row == Total("", 0, 1, 0, 0, 0, 0, 0, 0, None, 1)


@pytest.mark.parametrize("by", WAYS)
def test_nothing_recorded_is_an_empty_report(store: Store, by: By) -> None:
    """
    An empty ledger, or none at all, has no rows and a total of nothing: that is known to be 0.
    """
    assert report(store, by, now=NOW) == report(None, by, now=NOW)
    assert report(None, by, now=NOW) == (by, (), Total("total", 0, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0), ALL_TIME)


def test_json_has_plain_decimals_and_null(store: Store) -> None:
    """
    The data for other tools: money as decimal text, never as a float, and null where it is unknown.
    """
    decide(store, "pass_clean", ["0.0000001"])
    decide(store, "pass_judge_error", [None], project="/q")

    assert json.loads(json.dumps(report_json(report(store, "project", now=NOW)))) == {
        "by": "project",
        "since": None,
        "until": None,
        "zone": "UTC",
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

    assert report_csv(report(store, "project", now=NOW)) == (
        "project,decisions,calls,input_tokens,output_tokens,thinking_tokens,"
        "cache_write_5m_tokens,cache_write_1h_tokens,cache_read_tokens,cost_usd,unknown_costs,"
        "blocks,wrong_blocks,cap_spent,cost_per_block_usd,cost_per_upheld_block_usd,cache_hit_share,cap_spent_share\n"
        "/p,1,1,10,1,1,1,1,1,0.0000001,0,0,0,0,,,0.076923,0.0\n"
        '"/q, ""r""",1,1,10,1,1,1,1,1,,1,0,0,0,,,0.076923,0.0\n'
    )


def expected(**fields: object) -> dict[str, object]:
    calls = fields["calls"]
    assert isinstance(calls, int)
    names = ("output", "thinking", "cache_write_5m", "cache_write_1h", "cache_read")
    figures = {"blocks": 0, "wrong_blocks": 0, "cap_spent": 0, "cap_spent_share": 0.0, "cache_hit_share": 0.076923}
    costs = {"cost_per_block_usd": None, "cost_per_upheld_block_usd": None}
    tokens = {f"{name}_tokens": calls for name in names}
    return {**fields, **figures, **costs, "input_tokens": 10 * calls, **tokens}  # 1 / (10 + 1 + 1 + 1) = 0.076923


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

    found = report(store, by, now=NOW)

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

        assert report(store, "day", now=NOW).total.input_tokens == 10


def test_a_block_that_a_person_calls_wrong_is_not_upheld(store: Store) -> None:
    """
    Four blocks, one of a reply without a fault: 0.6 is 0.15 for each block, and 0.2 for each that is upheld.
    """
    wrong, *others = (decide(store, outcome, ["0.15"]) for outcome in ("block_verdict", "block_background") * 2)
    Ledger(store).label(wrong, "none", NOON)
    Ledger(store).label(others[0], "claim", NOON)
    Ledger(store).label(decide(store, "pass_clean", []), "none", NOON)

    for by in WAYS:
        total = report(store, by, now=NOW).total
        assert (total.blocks, total.wrong_blocks, total.upheld_blocks) == (4, 1, 3)
        assert (total.cost_per_block, total.cost_per_upheld_block) == (Decimal("0.15"), Decimal("0.2"))


def test_without_blocks_or_known_costs_there_is_no_cost_per_block(store: Store) -> None:
    """
    What cannot be said is None: never 0, and never a division by it.
    """
    decide(store, "pass_clean", ["0.1"])
    decide(store, "block_verdict", [None], project="/q")

    rows = report(store, "project", now=NOW).rows

    assert [(row.key, row.cost_per_block, row.cost_per_upheld_block) for row in rows] == [
        ("/p", None, None),
        ("/q", None, None),
    ]


def test_stops_that_ended_because_the_cap_was_spent_have_their_share(store: Store) -> None:
    """
    One of four stops; what was decided about commands is no stop, and stands in its own outcome's row alone.
    """
    for outcome in ("pass_cap_spent", "pass_clean", "block_verdict", "shadow_verdict"):
        decide(store, outcome, [])
    for outcome in ("jobs_deny", "jobs_pass", "jobs_deny"):
        decide(store, outcome, [], event="PreToolUse")

    for by in WAYS:
        total = report(store, by, now=NOW).total
        assert (total.decisions, total.cap_spent, total.cap_spent_share) == (4, 1, 0.25)
    outcomes = {row.key: row.decisions for row in report(store, "outcome", now=NOW).rows}
    assert (outcomes["jobs_deny"], outcomes["jobs_pass"], sum(outcomes.values())) == (2, 1, 7)
    assert decisions_by_outcome(read_days(store, ALL_TIME, now=NOW)) == outcomes
    assert [row.key for row in report(store, "event", now=NOW).rows] == ["Stop"]


def test_a_window_and_filters_take_what_lies_in_them(store: Store) -> None:
    """
    From `since` on and before `until`, of one project, model and event: every way of adding up says the same.
    """
    hour = timedelta(hours=1)
    decide(store, "block_verdict", ["1"], NOON - timedelta(milliseconds=1))
    decide(store, "block_verdict", ["2"], NOON)
    decide(store, "pass_clean", ["4"], NOON + hour, project="/q", model="n")
    decide(store, "pass_clean", ["8"], NOON + hour, event="SubagentStop", session="t")
    decide(store, "pass_clean", ["16"], NOON + 2 * hour)

    def spent(by: By, window: Window = ALL_TIME, **filters: str) -> tuple[object, int]:
        total = report(store, by, window, Filters(**filters), now=NOW).total
        return total.cost_usd, total.decisions

    for by in WAYS:
        assert spent(by, Window(NOON, NOON + 2 * hour)) == (14, 3)
        assert spent(by, Window(None, NOON)) == (1, 1)
        assert spent(by, Window(NOON + 2 * hour)) == (16, 1)
        assert spent(by, project="/q") == spent(by, model="n") == (4, 1)
        assert spent(by, Window(NOON), event="Stop", project="/p") == (18, 2)
        assert spent(by, project="/p", model="n") == (0, 0)


def test_days_are_those_of_the_zone(store: Store) -> None:
    """
    Half past eleven in the evening in UTC is the next day in Berlin and the same day in New York.
    """
    decide(store, "pass_clean", ["1"], datetime(2026, 11, 30, 23, 30, tzinfo=UTC))

    for zone, day in ((UTC, "2026-11-30"), (BERLIN, "2026-12-01"), (ZoneInfo("America/New_York"), "2026-11-30")):
        found = report(store, "day", Window(zone=zone), now=NOW)
        assert [row.key for row in found.rows] == [day]
        assert report_json(found)["zone"] == (zone.key if isinstance(zone, ZoneInfo) else "UTC")


def test_spend_tokens_and_hours(store: Store) -> None:
    """
    What the page draws: what each model cost in each day or hour, and the tokens of each class.
    """
    decide(store, "pass_clean", ["1", None])
    decide(store, "pass_clean", ["2"], NOON + timedelta(minutes=59), model="n")
    decide(store, "pass_clean", [None], NOON + timedelta(hours=1))
    decide(store, "pass_off", [], NOON + timedelta(hours=2))

    days = read_days(store, ALL_TIME, now=NOW)
    hours = read_days(store, Window(NOON, zone=BERLIN), now=NOW, hours=True)

    assert spend_over_time(days) == (("2026-11-30", "m", 1, 2, 3), ("2026-11-30", "n", 2, 0, 1))
    assert spend_over_time(hours) == (
        ("2026-11-30 13:00", "m", 1, 1, 2),
        ("2026-11-30 13:00", "n", 2, 0, 1),
        ("2026-11-30 14:00", "m", None, 1, 1),
    )
    assert tokens_by_class(days) == Usage(40, 4, 4, 4, 4, 4)._asdict()
    assert total_of(days)[1:] == total_of(hours)[1:]


def took(store: Store, at: datetime, ms: int | None, project: str = "/p") -> None:
    start = CallStart(at, "anthropic", "m", project=project)
    Ledger(store).settle_call("", start, CallEnd("answered", ms))


def test_latency_is_by_the_nearest_rank(store: Store) -> None:
    """
    Of 1 to 100 ms the middle is 50 and the slow end 95; calls that never ended have no say.
    """
    for ms in range(1, 101):
        took(store, NOON + timedelta(seconds=ms), ms)
    took(store, NOON + timedelta(days=1), 7, "/q")
    took(store, NOON + timedelta(days=1), None)

    assert latency(store, Window(until=NOON + timedelta(hours=1))) == (50, 95, 100, True)
    assert latency(store, ALL_TIME, Filters(project="/q")) == (7, 7, 1, True)
    assert latency(store, Window(NOON + timedelta(days=2))) == latency(None, ALL_TIME) == (None, None, 0, True)
    assert latency_over_time(store, ALL_TIME) == (("2026-11-30", 50, 95), ("2026-12-01", 7, 7))


def test_latency_of_very_many_calls_is_of_the_latest(tmp_path: Path) -> None:
    """
    Above ten thousand calls the percentiles are of the latest ten thousand, and say so.
    """
    with Place(str(tmp_path)).open() as store:
        took(store, NOON, 1)
        with store.write() as transaction:
            numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
            copied = (
                "at, decision_id, event, session_id, agent_id, project, human_turn, backend, endpoint, model, rubric"
            )
            transaction.execute(
                f"INSERT INTO calls (id, {copied}, rubric_hash, try_number, latency_ms) {numbers}"
                f" SELECT 'c' || i, '2026-12-01T00:00:00.000Z', {copied[4:]}, rubric_hash, 1, 9 FROM n, calls"
            )

        assert latency(store, ALL_TIME) == (9, 9, 10_000, False)
        assert latency(store, Window(NOON + timedelta(hours=1))) == (9, 9, 10_000, True)


def test_the_overview_has_today_seven_days_and_the_month(store: Store) -> None:
    """
    Days are the zone's, the budget's day is UTC's as for the gate, and costs that are unknown are counted.
    """
    now = datetime(2026, 12, 4, 0, 30, tzinfo=UTC)  # half past one in Berlin
    for cost, at in {
        "1": now - timedelta(minutes=10),  # today in UTC
        "2": now - timedelta(minutes=70),  # today in Berlin alone
        "4": now - timedelta(minutes=100),  # yesterday in both
        "8": datetime(2026, 11, 27, 23, 0, tzinfo=UTC),  # the first of seven days in Berlin
        "16": datetime(2026, 11, 27, 22, 59, tzinfo=UTC),
    }.items():
        decide(store, "block_verdict", [cost], at)
    decide(store, "pass_judge_timeout", [None], now)

    found = overview(store, BERLIN, now=now, usd_per_day=Decimal("2.50"))

    spent = [(period.total.cost_usd, period.total.unknown_costs) for period in found[:3]]
    assert spent == [(3, 1), (15, 1), (7, 1)]
    assert found.budget == (Decimal("2.50"), 1, 1)
    told: dict[str, Any] = json.loads(json.dumps(overview_json(found)))
    assert told["budget"] == {"usd_per_day": "2.5", "used_usd": "1", "unknown_costs": 1}
    assert told["today"]["since"] == "2026-12-03T23:00:00.000Z"
    assert told["last_7_days"]["cost_per_block_usd"] == "3.75"


def test_an_overview_of_nothing(store: Store) -> None:
    """
    Nothing was recorded: nothing was spent, and that is known.
    """
    for found in (overview(store, UTC, now=NOW), overview(None, UTC, now=NOW, usd_per_day=Decimal(1))):
        assert [period.total.cost_usd for period in found[:3]] == [0, 0, 0]
