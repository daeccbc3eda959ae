from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.windows import (
    BadTime,
    day_at,
    day_begin,
    machine_zone,
    month_begin,
    named_zone,
    read_time,
    zone_name,
)

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026-11-30", "2026-11-29T23:00", "2026-11-30T23:00"),
        ("2026-07-01", "2026-06-30T22:00", "2026-07-01T22:00"),
        ("2026-10-25", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("2026-11-30T14:00", "2026-11-30T13:00", "2026-11-30T13:00"),
        ("2026-11-30 14:00:30.5", "2026-11-30T13:00:30.500", "2026-11-30T13:00:30.500"),
        ("2026-11-30T14:00Z", "2026-11-30T14:00", "2026-11-30T14:00"),
        ("2026-11-30T14:00-05:00", "2026-11-30T19:00", "2026-11-30T19:00"),
        ("24h", "2026-11-29T12:00", "2026-11-29T12:00"),
        ("7d", "2026-11-23T12:00", "2026-11-23T12:00"),
        ("2w", "2026-11-16T12:00", "2026-11-16T12:00"),
    ],
)
def test_times_are_read_as_people_write_them(text: str, start: str, end: str) -> None:
    """
    Days and times without a zone are those of the zone asked for; a day that ends a window is part of it.
    """
    assert read_time(text, BERLIN, NOW) == datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert read_time(text, BERLIN, NOW, is_end=True) == datetime.fromisoformat(end).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "today",
        "7",
        "d",
        "-7d",
        "7x",
        "2026-13-01",
        "2026-02-30",
        "30.11.2026",
        "99999w",
        "0001-01-01",
        "9999-12-31",
        "\u0667d",
    ],
)
def test_anything_else_is_refused_in_one_line(text: str) -> None:
    """
    The message shows what was written and how to write it.
    """
    with pytest.raises(BadTime, match="is no time: write it like 2026-11-30") as error:
        read_time(text, BERLIN, NOW, is_end=True)
    assert "\n" not in str(error.value)


@given(st.text(max_size=30))
def test_no_text_breaks_the_reading_of_times(text: str) -> None:
    """
    Whatever is written: a time, or BadTime.
    """
    try:
        assert read_time(text, BERLIN, NOW).tzinfo is not None
    except BadTime:
        return


@pytest.mark.parametrize("name", ["Europe/Berlin", "America/New_York", "UTC"])
def test_zones_have_names(name: str) -> None:
    """
    A zone is told by the name that it was asked for by.
    """
    assert zone_name(named_zone(name)) == name


@pytest.mark.parametrize("name", ["Mars/Phobos", "", "../../etc/passwd", "Europe", "a\0b", "x" * 5000])
def test_an_unknown_zone_is_refused_in_one_line(name: str) -> None:
    """
    Names that are no zone, folders and paths among them.
    """
    with pytest.raises(BadTime, match="is no time zone that this machine knows"):
        named_zone(name)


@pytest.mark.parametrize(
    ("variable", "name"),
    [("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo"), ("UTC", "UTC"), ("Etc/UTC", "UTC")],
)
def test_the_machines_zone_is_the_variables(variable: str, name: str) -> None:
    """
    `TZ` says which it is, as for every program.
    """
    assert zone_name(machine_zone({"TZ": variable})) == name


def test_a_machine_always_has_a_zone() -> None:
    """
    Without a variable it is the system's.
    """
    assert zone_name(machine_zone({}))
    assert zone_name(timezone(timedelta(hours=2))) == "UTC+02:00"


@pytest.mark.parametrize(
    "variable",
    [
        "NPT-5:45",
        "<+0545>-05:45",
        "CET-1CEST",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1",
        "/usr/share/zoneinfo/Asia/Kathmandu",
        ":/usr/share/zoneinfo/Europe/Berlin",
        "",
        "Mars/Base",
        "/nowhere",
        "/etc/passwd",
        "..",
    ],
)
def test_the_machines_days_are_those_that_date_shows(variable: str) -> None:
    """
    `TZ` may be rules or a file; what says nothing is UTC.
    """
    zone = machine_zone({"TZ": variable})
    times = [datetime(2026, month, day, 12, tzinfo=UTC) for month in range(1, 13) for day in (1, 15, 28)]
    asked = "".join(f"@{time.timestamp():.0f}\n" for time in times)

    shown = subprocess.run(
        ("date", "-f", "-", "+%Y-%m-%d %H:%M"),
        input=asked,
        env={"TZ": variable, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert [f"{time.astimezone(zone):%Y-%m-%d %H:%M}" for time in times] == shown.splitlines()
    assert zone_name(zone) == {"": "UTC"}.get(variable, zone_name(zone))
    assert zone_name(zone)


def test_rules_that_no_time_can_follow_are_no_zone() -> None:
    """
    A day from UTC is a rule for some and no time here: it fails at once, as UTC, and not at the first use.
    """
    assert machine_zone({"TZ": "XXX-24:00"}) is UTC


def test_a_copy_of_a_zones_file_is_read(tmp_path: Path) -> None:
    """
    As containers have `/etc/localtime`: with its summer time, too.
    """
    file = tmp_path / "localtime"
    file.write_bytes(Path("/usr/share/zoneinfo/Europe/Berlin").read_bytes())

    zone = machine_zone({"TZ": f":{file}"})

    assert [datetime(2026, month, 1, tzinfo=zone).utcoffset() for month in (1, 7)] == [
        timedelta(hours=1),
        timedelta(hours=2),
    ]


ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu"]
)


@given(seconds=st.integers(0, 17 * 365 * 86_400), zone=ZONES.map(named_zone))
def test_a_time_lies_in_its_day(seconds: int, zone: tzinfo) -> None:
    """
    The day is the one that a calendar on the wall shows; it begins with the first moment that shows it, and days leave no gap.
    """
    at = datetime(2013, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    day, begin, end = day_at(at, zone)

    assert begin <= at < end
    assert day == at.astimezone(zone).date()
    assert begin.astimezone(zone).date() == day
    assert (begin - timedelta(microseconds=1)).astimezone(zone).date() < day
    assert day_at(end, zone)[1] == end
    assert day_begin(at, zone) == begin
    assert month_begin(at, zone) <= begin


def test_the_days_of_a_changed_clock_are_longer_and_shorter() -> None:
    """
    23 hours when the clock is put on, 25 when it is put back.
    """
    lengths = {
        day: day_at(datetime.fromisoformat(f"{day}T12:00Z"), BERLIN)
        for day in ("2026-03-29", "2026-10-25", "2026-11-30")
    }

    assert [(end - begin) / timedelta(hours=1) for _, begin, end in lengths.values()] == [23, 25, 24]
