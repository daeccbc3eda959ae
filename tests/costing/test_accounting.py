"""
What thousands of mixed calls come to: in the report, on the page, by plain SQL, by hand, and in the metrics.

Prices by hand, in millionths of a dollar for each token: https://platform.claude.com/docs/en/about-claude/pricing.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from io import StringIO
from typing import Any, Final, NamedTuple, cast
from zoneinfo import ZoneInfo

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.measured_ledger import MeasuredLedger
from turngate.costing.metrics import Metrics
from turngate.costing.outcomes import Outcome
from turngate.costing.prices import price
from turngate.costing.records import BATCH, CallEnd, CallStart, DecisionLine
from turngate.costing.report import WAYS, report
from turngate.costing.reprice import reprice
from turngate.costing.store import Store, Transaction
from turngate.costing.usage import read_usage
from turngate.costing.windows import Window
from turngate.stopgate.cli import main

from .dashboard.a_ledger import a_dashboard
from .measured import measured, samples
from .places import BOTH, Place, a_place

CUT = datetime(2026, 10, 7, tzinfo=UTC)
"""Since when reading Sonnet's cache costs half."""
FIRST = CUT - timedelta(days=3)
NOW = CUT + timedelta(days=30)
CALLS = 10_000
DICE = random.Random(7)
OUTCOMES: Final[Sequence[Outcome]] = ("pass_clean", "block_verdict", "pass_judge_error", "pass_cap_spent")

MICRO = Decimal("0.000001")


class Row(NamedTuple):
    """
    The vendor's table: uncached input, output, cache writes of 5 minutes and 1 hour, cache read.
    """

    input: str
    output: str
    write_5m: str
    write_1h: str
    read: str


PRICES: Mapping[str, Row] = {
    "claude-sonnet-5-5": Row("2", "10", "2.50", "4", "0.10"),
    "claude-haiku-5-5": Row("0.10", "0.50", "0.125", "0.20", "0.01"),
    "claude-haiku-4-5": Row("1", "5", "1.25", "2", "0.10"),
    "claude-opus-5-5": Row("4", "20", "5", "8", "0.20"),
}
LONG_HAIKU = Row("0.50", "2.50", "0.625", "1.00", "0.05")
OLD_SONNET = PRICES["claude-sonnet-5-5"]._replace(read="0.20")


def by_hand(model: str, at: datetime, tokens: Sequence[int], *, batch: bool, geography: str) -> Decimal | None:
    """
    Work out a cost by the vendor's table alone.
    """
    row = PRICES.get(model)
    if row is None:
        return None
    plain, output, write_5m, write_1h, read = tokens
    if model == "claude-haiku-5-5" and plain + write_5m + write_1h + read > 100_000:
        row = LONG_HAIKU
    if model == "claude-sonnet-5-5" and at < CUT:
        row = OLD_SONNET
    counts = (plain, output, write_5m, write_1h, read)
    micros = sum((Decimal(each) * count for each, count in zip(row, counts, strict=True)), Decimal(0))
    return micros * MICRO * (Decimal("0.5") if batch else 1) * (Decimal("1.1") if geography == "us" else 1)


class Mixed(NamedTuple):
    """
    One call as a vendor bills it, and what it costs by hand.
    """

    start: CallStart
    end: CallEnd | None
    cost: Decimal | None


def mixed_calls(dice: random.Random) -> list[Mixed]:
    """
    Failed tries, unknown prices, batches, caches, long prompts, geographies; most of them around midnight somewhere.
    """
    calls: list[Mixed] = []
    for number in range(CALLS):
        hour = dice.choice([0, 21, 22, 23, dice.randrange(24)])
        at = FIRST + timedelta(days=dice.randrange(9), hours=hour, milliseconds=dice.choice([0, 1, 3_599_999]))
        model, batch = dice.choice([*PRICES, "claude-sonnet-5-5", "local/unpriced"]), dice.random() < 0.1
        start = CallStart(
            at,
            BATCH if batch else "anthropic",
            model,
            try_number=1 + number % 2,
            decision_id=f"d{number // 2}",
            event=dice.choice(["Stop", "SubagentStop"]),
            session_id=f"s{number // 40}",
            project=f"/p{number // 40 % 7}",
        )
        calls.append(a_mixed_call(start, dice, batch=batch))
    return calls


def a_mixed_call(start: CallStart, dice: random.Random, *, batch: bool) -> Mixed:
    kind = dice.random()
    if kind < 0.05:
        return Mixed(start, None, None)  # killed
    if kind < 0.15:
        outcome: Any = dice.choice(["timeout", "error", "rejected"])
        return Mixed(start, CallEnd(outcome, dice.randrange(8000)), None)

    most = 90_000 if dice.random() < 0.1 else 1500
    plain, output, write_5m, write_1h, read = (dice.randrange(limit) for limit in (most, 200, most, 900, most))
    geography = dice.choice(["", "", "us", "global", "not_available", "atlantis"])
    raw: dict[str, object] = {
        "input_tokens": plain,
        "output_tokens": output,
        "output_tokens_details": {"thinking_tokens": output // 2},
        "cache_creation_input_tokens": write_5m + write_1h,
        "cache_creation": {"ephemeral_5m_input_tokens": write_5m, "ephemeral_1h_input_tokens": write_1h},
        "cache_read_input_tokens": read,
    }
    if geography:
        raw["inference_geo"] = geography
    cost = by_hand(start.model, start.at, (plain, output, write_5m, write_1h, read), batch=batch, geography=geography)
    if geography == "atlantis":
        cost = None
    usage = read_usage(raw)
    assert usage is not None
    found = price(start.model, usage, start.at, batch=batch, geography=geography)
    outcome = dice.choice(["answered", "answered", "answered", "unreadable", "refused"])
    end = CallEnd(outcome, dice.randrange(8000), start.model, usage, raw, found.cost_usd, found.source)
    return Mixed(start, end, cost)


class Joined:
    """
    A store whose writes are all part of one transaction: ten thousand of their own take a server long.
    """

    def __init__(self, store: Store, transaction: Transaction) -> None:
        self._store, self._transaction = store, transaction

    @contextmanager
    def write(self, **_: object) -> Generator[Transaction]:
        yield self._transaction

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Filled(NamedTuple):
    """
    A ledger with all the calls, and the metrics of the process that made them.
    """

    place: Place
    store: Store
    metrics: Metrics


@pytest.fixture(scope="module", params=BOTH)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, calls: list[Mixed]
) -> Iterator[Filled]:
    metrics = measured()
    with a_place(request.param, tmp_path_factory.mktemp("state")) as place, place.open(60) as store:
        with store.write() as transaction:
            ledger = MeasuredLedger(cast("Store", Joined(store, transaction)), metrics)
            for number, (start, end, _) in enumerate(calls):
                if end is None:
                    ledger.open_call(start)
                else:
                    ledger.settle_call("", start, end)
                if number % 2:
                    line = DecisionLine(
                        start.at + timedelta(hours=1), start.event, DICE.choice(OUTCOMES), start.decision_id
                    )
                    ledger.record_decision(line._replace(session_id=start.session_id, project=start.project))
        yield Filled(place, store, metrics)


@pytest.fixture(scope="module")
def calls() -> list[Mixed]:
    return mixed_calls(random.Random(20261007))


def test_prices_are_the_vendors(calls: list[Mixed]) -> None:
    """
    Each of the calls is priced as by hand, with the table's long prompts, the day of the cut, batch and geography.
    """
    wrong = [call for call in calls if call.end and call.end.cost_usd != call.cost]

    assert wrong == []
    assert sum(call.cost is None for call in calls) > 1000
    kinds = Counter(call.end.price_source for call in calls if call.end)
    assert len([kind for kind in kinds if kind.startswith(("genai-prices ", "turngate prices "))]) == 2
    haikus = [call.end.usage for call in calls if call.end and call.start.model == "claude-haiku-5-5"]
    long = [usage for usage in haikus if usage and usage.prompt_tokens > 100_000]
    assert len(long) > 50


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/Los_Angeles")], ids=str)
def test_report_and_plain_sql_agree(filled: Filled, calls: list[Mixed], zone: tzinfo) -> None:
    """
    Every row and the total, whichever way they are added up, before and after days are kept: to the last digit.
    """
    costs: dict[str, Decimal] = {}
    for call in calls:
        day = call.start.at.astimezone(zone).date().isoformat()
        costs[day] = costs.get(day, Decimal(0)) + (call.cost or 0)
    ((lines, read),) = filled.store.rows("SELECT COUNT(*), SUM(cache_read_tokens) FROM calls")
    ((unknown,),) = filled.store.rows("SELECT COUNT(*) FROM calls WHERE cost_usd IS NULL")
    ((stops,),) = filled.store.rows("SELECT COUNT(*) FROM decisions")

    for by in (*WAYS, *WAYS):
        found = report(filled.store, by, Window(zone=zone), now=NOW)
        assert found.total.cost_usd == sum(costs.values())
        assert sum((row.cost_usd or Decimal(0) for row in found.rows), Decimal(0)) == found.total.cost_usd
        assert (found.total.calls, found.total.unknown_costs) == (lines, unknown) == (CALLS, unknown)
        assert (found.total.cache_read_tokens, found.total.decisions) == (int(read), stops)
        if by == "day":
            assert {row.key: row.cost_usd or 0 for row in found.rows if row.calls} == costs


def test_repricing_changes_nothing_that_was_right(filled: Filled) -> None:
    """
    Worked out anew from the usage kept, each cost is what it was.
    """
    found = reprice(filled.store)

    assert (found.calls, found.changed) == (CALLS, 0)
    assert found.before == found.after
    assert found.before.usd == report(filled.store, "day", now=NOW).total.cost_usd


def by_sql(store: Store, zone: tzinfo, days: Sequence[date]) -> dict[tuple[str, str], tuple[int, Decimal, int, int]]:
    """
    Calls, cost, unknown costs and cached tokens by day and model, and of each day as a whole: the sums are the database's own.
    """
    # No cost has more than twelve decimals, so they are added up as whole numbers.
    figures = (
        "COUNT(*), COALESCE(SUM(CAST(ROUND(CAST(cost_usd AS NUMERIC) * 1000000000000) AS BIGINT)), 0),"
        " COUNT(*) - COUNT(cost_usd), COALESCE(SUM(cache_read_tokens), 0)"
    )
    found: dict[tuple[str, str], tuple[int, Decimal, int, int]] = {}
    for day in days:
        ends = [
            datetime.combine(at, time(), zone).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            for at in (day, day + timedelta(days=1))
        ]
        models = store.rows(f"SELECT model, {figures} FROM calls WHERE at >= ? AND at < ? GROUP BY model", ends)
        ((*whole,),) = store.rows(f"SELECT {figures} FROM calls WHERE at >= ? AND at < ?", ends)
        for model, calls, cost, unknown, cached in [*models, ("", *whole)]:
            found[day.isoformat(), model] = (calls, Decimal(int(cost)).scaleb(-12), unknown, int(cached))
    return found


DAYS = [date(2026, 10, 3) + timedelta(days=number) for number in range(12)]
ZONES = [pytest.param(name, id=name) for name in ("UTC", "Europe/Berlin", "America/Los_Angeles")]


@pytest.mark.parametrize("zone", ZONES)
def test_page_command_and_plain_sql_agree(filled: Filled, zone: str) -> None:
    """
    What the page's tables and plots show and what `turngate cost --json` prints is what the database adds up, to the last digit.
    """
    sql = by_sql(filled.store, ZoneInfo(zone), DAYS)
    by_day = {day: figures for (day, model), figures in sql.items() if not model and figures[0]}
    of_all = [sum(column, Decimal(0)) for column in zip(*by_day.values(), strict=True)]

    said = command(filled.place, "--by", "day", "--tz", zone)
    shown = Shown(filled.store, f"span=dates&since={DAYS[0]}&until={DAYS[-1]}&tz={zone}")

    assert of_all[0] == CALLS
    assert {
        row["day"]: (row["calls"], Decimal(row["cost_usd"] or 0), row["unknown_costs"], row["cache_read_tokens"])
        for row in said["rows"]
        if row["calls"]
    } == by_day
    total = said["total"]
    assert [total["calls"], Decimal(total["cost_usd"]), total["unknown_costs"], total["cache_read_tokens"]] == of_all
    assert [shown.spend["total"], shown.cached] == [tuple(of_all[:3]), of_all[3]]
    assert {day: figures for day, figures in shown.spend.items() if day in by_day} == {
        day: figures[:3] for day, figures in by_day.items()
    }
    # What the plots draw are floats: those that are nearest to the exact amounts.
    assert shown.plotted == {key: float(cost) for key, (_, cost, _, _) in sql.items() if key[1] and cost}


def command(place: Place, *arguments: str) -> dict[str, Any]:
    """
    What `turngate cost --json` prints.
    """
    printed = StringIO()
    environ = {"HOME": place.folder, "TURNGATE_STATE_DIR": place.folder, "TURNGATE_LEDGER_URL": place.url}
    with redirect_stdout(printed):
        assert main(["cost", "--json", *arguments], environ) == 0
    return json.loads(printed.getvalue())


class Shown:
    """
    The figures of the page, read from its HTML and from the data of its plots.
    """

    def __init__(self, store: Store, query: str) -> None:
        html = a_dashboard(Ledger(store)).overview(query)
        table = html.partition('id="table-spend">')[2].partition("</table>")[0]
        rows = re.findall(
            r'<th scope="row">(.*?)</th><td>([\d,]+)</td><td>([\d.]+|unknown)</td><td>([\d,]+)</td>', table
        )
        self.spend = {
            key: (_number(calls), Decimal(0) if cost == "unknown" else Decimal(cost), _number(unknown))
            for key, calls, cost, unknown in rows
        }
        (cached,) = re.findall(r'<th scope="row">cache read</th><td>([\d,]+)</td>', html)
        self.cached = _number(cached)
        data = html.partition('id="figures">')[2].partition("</script>")[0]
        self.plotted = {
            (day, one["name"]): value
            for one in json.loads(data)["spend"]["data"]
            for day, value in zip(one["x"], one["y"], strict=True)
            if value
        }


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def test_metrics_since_the_start_agree(filled: Filled, calls: list[Mixed]) -> None:
    """
    The process that counted every call says what the database adds up, but for those that it never saw end: to the last digit.
    """
    rows = filled.store.rows(
        "SELECT model, outcome, COUNT(*), COUNT(*) - COUNT(cost_usd), COALESCE(SUM(output_tokens), 0),"
        " COALESCE(SUM(cache_read_tokens), 0) FROM calls WHERE outcome IS NOT NULL GROUP BY model, outcome"
    )
    exact = {model: Decimal(0) for model, *_ in rows}
    for (_, model), (_, cost, _, _) in by_sql(filled.store, UTC, DAYS).items():
        exact[model] = exact.get(model, Decimal(0)) + cost
    of_all = exact.pop("")
    stops = filled.store.rows("SELECT event, outcome, COUNT(*) FROM decisions GROUP BY event, outcome")
    total = report(filled.store, "model", now=NOW).total
    found = samples(filled.metrics)

    def told(name: str, *labels: str, **fixed: str) -> dict[tuple[str, ...], float]:
        known = [(dict(of), value) for (sample, of), value in found.items() if sample == f"turngate_{name}_total"]
        return {
            tuple(of[label] for label in labels): value for of, value in known if value and fixed.items() <= of.items()
        }

    def added(place: int, *keys: int) -> dict[tuple[str, ...], float]:
        sums: Counter[tuple[str, ...]] = Counter()
        for row in rows:
            sums[tuple(row[key] for key in keys)] += int(row[place])
        return {key: float(value) for key, value in sums.items() if value}

    assert told("judge_cost_usd", "model") == {(model,): float(cost) for model, cost in exact.items() if cost}
    assert of_all == sum(exact.values()) == total.cost_usd
    assert told("judge_calls", "model", "outcome") == added(2, 0, 1)
    assert told("judge_calls_unknown_cost", "model", "outcome") == added(3, 0, 1)
    assert told("judge_tokens", "model", kind="output") == added(4, 0)
    assert told("judge_tokens", "model", kind="cache_read") == added(5, 0)
    assert told("decisions", "event", "outcome") == {(event, outcome): float(n) for event, outcome, n in stops}
    assert total.calls - sum(told("judge_calls", "model", "outcome").values()) == sum(
        call.end is None for call in calls
    )
