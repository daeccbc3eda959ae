"""
What a page is asked for: the address, read and written.
"""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.dashboard.asked import SPANS, read_asked

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 10, 26, 23, 30, tzinfo=UTC)
"""In Berlin it is half past midnight of the 27th, two days after the clocks were set back."""


def berlin(month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        pytest.param("", berlin(10, 21), None, id="seven-days-by-default"),
        pytest.param("span=today", berlin(10, 27), None, id="today"),
        pytest.param("span=24h", berlin(10, 26, 0, 30), None, id="24-hours"),
        pytest.param("span=30d", berlin(9, 28), None, id="days-across-a-change-of-clocks"),
        pytest.param("span=month", berlin(10, 1), None, id="month"),
        pytest.param("span=all", None, None, id="all"),
        pytest.param("span=dates", None, None, id="no-dates"),
        pytest.param("since=2026-10-25&until=2026-10-25", berlin(10, 25), berlin(10, 26), id="a-day-of-25-hours"),
        pytest.param("span=7d&since=2026-10-01", berlin(10, 21), None, id="a-span-comes-first"),
        pytest.param("since=x&until=2026-13-01", None, None, id="no-days"),
        pytest.param("since=0001-01-01&until=9999-12-31", None, None, id="at-the-ends-of-the-calendar"),
    ],
)
def test_days_begin_in_the_readers_zone(query: str, since: datetime | None, until: datetime | None) -> None:
    """
    A day is a day of the zone, however many hours it has.
    """
    asked = read_asked(query, NOW, BERLIN)

    assert (asked.since, asked.until) == (since, until)


@pytest.mark.parametrize(
    ("query", "project"),
    [("", None), ("project=", None), ("project=-", ""), ("project=/a%20b", "/a b"), ("project=/a&project=/b", "/a")],
)
def test_a_project_is_chosen(query: str, project: str | None) -> None:
    """
    None at all, that of decisions without one, or its path.
    """
    assert read_asked(query, NOW, UTC).project == project


@pytest.mark.parametrize(
    "query", ["span=nope", "since=x", "until=2026-02-30", "tz=Nowhere/City", "tz=../../etc/passwd", "tz=%00"]
)
def test_what_cannot_be_read_is_told(query: str) -> None:
    """
    One line names it, and the rest counts.
    """
    asked = read_asked(f"{query}&project=/a", NOW, UTC)
    name = query.partition("=")[0]

    assert [problem.partition(":")[0] for problem in asked.problems] == [name]
    assert asked.project == "/a"


@given(
    st.sampled_from(sorted(SPANS)),
    st.one_of(st.none(), st.text(max_size=30)),
    st.sampled_from(["", "UTC", "Asia/Kolkata"]),
    st.one_of(st.just(""), st.dates(datetime(1971, 1, 1).date(), datetime(8999, 1, 1).date()).map(str)),  # noqa: DTZ001
)
def test_the_address_of_what_is_asked_asks_for_the_same(span: str, project: str | None, tz: str, day: str) -> None:
    """
    Filters survive the way through the address.
    """
    fields = {"span": span, "project": project or "", "tz": tz, "since": day}
    asked = read_asked(
        "&".join(f"{name}={quote(value, errors='replace')}" for name, value in fields.items()), NOW, BERLIN
    )

    assert read_asked(asked.query, NOW, BERLIN) == asked


@given(st.text(max_size=300))
def test_no_address_breaks_anything(query: str) -> None:
    """
    Whatever stands there, a page can be made.
    """
    asked = read_asked(query, NOW, UTC)

    assert asked.span in SPANS


def test_an_address_with_endless_fields_asks_for_nothing() -> None:
    """
    It is not taken apart, and the page says that its filters do not count.
    """
    asked = read_asked("project=/a&" + "&".join(f"a{number}=1" for number in range(1000)), NOW, UTC)

    assert (asked.span, asked.project) == ("7d", None)
    assert asked.problems == ("the address has more than 50 fields: no filter of it counts",)


def test_a_project_that_is_too_long_is_told_of() -> None:
    """
    None is shown for another whose name begins like it.
    """
    asked = read_asked(f"project=/{'a' * 2000}", NOW, UTC)

    assert asked.project is None
    assert asked.problems[0].startswith("project: '/aaa")
