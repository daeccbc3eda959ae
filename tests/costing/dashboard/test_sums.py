"""
The axis of time: without gaps where it can be, and never long.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from turngate.costing.dashboard.asked import read_asked
from turngate.costing.dashboard.dashboard import Dashboard
from turngate.costing.dashboard.latest import LEFT_OUT
from turngate.costing.dashboard.sums import EARLIER, MOST, read_sums
from turngate.costing.ledger import Ledger

from .a_ledger import DAY, NOW, a_call, a_dashboard, a_decision, fill

AHEAD = datetime(8998, 7, 1, tzinfo=UTC)


def write(ledger: Ledger, *times: datetime) -> None:
    for number, at in enumerate(times):
        a_decision(ledger, 1000 + number, at=at)
        a_call(ledger, 1000 + number, "0.01", at=at)


def axis(ledger: Ledger, query: str) -> tuple[str, list[str]]:
    sums = read_sums(ledger.database, read_asked(query, NOW, UTC), NOW)
    return sums.piece, [slot.name for slot in sums.slots]


@pytest.mark.parametrize(
    ("first", "piece", "count", "begins"),
    [
        pytest.param(NOW - 99 * DAY, "day", 100, "2026-08-23", id="days"),
        pytest.param(NOW - 100 * DAY, "month", 4, "2026-08", id="months"),
        pytest.param(datetime(2016, 12, 1, tzinfo=UTC), "month", 120, "2016-12", id="ten-years"),
        pytest.param(datetime(2016, 11, 30, tzinfo=UTC), "year", 11, "2016", id="years"),
        pytest.param(datetime(1970, 1, 2, tzinfo=UTC), "year", 57, "1970", id="since-the-clocks-began"),
    ],
)
def test_a_longer_time_is_shown_in_longer_pieces(
    ledger: Ledger, first: datetime, piece: str, count: int, begins: str
) -> None:
    """
    Days, months or years: never more of them than a plot can show, and none left out between.
    """
    write(ledger, first, NOW)
    found, names = axis(ledger, "span=all")

    assert (found, len(names), names[0]) == (piece, count, begins)
    assert names[-1] == f"{NOW:%Y-%m-%d}"[: len(names[-1])]


@pytest.mark.parametrize("query", ["", "span=all", "span=24h", "span=month", "since=2026-11-01"])
def test_one_time_far_ahead_makes_no_page_long(ledger: Ledger, query: str) -> None:
    """
    The page is as long as without it, but for a line that says that something is left out.
    """
    fill(ledger)
    dashboard = a_dashboard(ledger)
    before = dashboard.overview(query)
    write(ledger, AHEAD)
    after = dashboard.overview(query)

    assert LEFT_OUT not in before
    assert LEFT_OUT in after
    assert "/turns/d1000" not in after
    assert 0 < len(after) - len(before) < 1000


def test_a_clock_that_is_a_little_ahead_is_no_damage(ledger: Ledger) -> None:
    """
    What another machine wrote within the day counts.
    """
    write(ledger, NOW + timedelta(hours=23))
    html = a_dashboard(ledger).overview("")

    assert "/turns/d1000" in html
    assert LEFT_OUT not in html


def test_days_that_are_asked_for_are_shown_wherever_they_lie(ledger: Ledger) -> None:
    """
    A last day in the far future finds what lies there, on an axis of years in which there is anything.
    """
    write(ledger, NOW, AHEAD)

    assert axis(ledger, "until=8999-01-01") == ("year", ["2026", "8998"])


def test_an_axis_has_an_end_whatever_the_ledger_holds(ledger: Ledger) -> None:
    """
    A line in each of 200 years: the earliest stand together, and none is lost.
    """
    write(ledger, *(datetime(2000 + 10 * number, 1, 1, tzinfo=UTC) for number in range(200)))
    sums = read_sums(ledger.database, read_asked("until=8999-01-01", NOW, UTC), NOW)

    assert len(sums.slots) == MOST["year"]
    assert sums.slots[0].name == EARLIER
    assert sums.slots[0].total.decisions == 81
    assert sum(slot.total.decisions for slot in sums.slots) == 200


def test_the_days_of_latency_are_the_latest(ledger: Ledger) -> None:
    """
    A call on each of 150 days: the latest hundred are drawn, and the page says so.
    """
    write(ledger, *(NOW - number * DAY for number in range(150)))
    dashboard: Dashboard = a_dashboard(ledger)
    sums = read_sums(ledger.database, read_asked("span=all", NOW, UTC), NOW)

    assert len(sums.latencies) == 100
    assert sums.latencies[-1][0] == "2026-11-30"
    assert "per day, the latest 100" in dashboard.overview("span=all")
