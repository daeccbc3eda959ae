"""
Which time a report is about: from when, until when, and in whose days. Knows clocks and calendars, and nothing of the ledger.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from io import BytesIO
from typing import Final, NamedTuple

_AGO: Final = re.compile(r"([0-9]{1,5})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DAY: Final = timedelta(days=1)


class BadTime(ValueError):
    """
    A time or zone cannot be read; the text is one line that says what was expected.
    """


class Window(NamedTuple):
    """
    A stretch of time, and the zone whose days it is told in. None: no end there. `until` itself is left out.
    """

    since: datetime | None = None
    until: datetime | None = None
    zone: tzinfo = UTC


ALL_TIME: Final = Window()


def named_zone(name: str) -> tzinfo:
    """
    Give the zone with an IANA name. Raises BadTime.
    """
    if name == "UTC":  # known without any database of zones
        return UTC

    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise BadTime(f"{name!r} is no time zone that this machine knows: write it like Europe/Berlin") from None


def machine_zone(environ: Mapping[str, str] = os.environ) -> tzinfo:
    """
    Give the zone that this machine's clock shows: what `TZ` says, else the system's.

    As for every program, `TZ` may also be a file or rules (`CET-1CEST,M3.5.0,M10.5.0/3`), and one that says nothing is UTC.
    """
    name = environ.get("TZ")
    if name is not None:
        name = name.removeprefix(":")
        return _zone_in_file(name) if name.startswith("/") else _zone_of(name) or _zone_by_rules(name)
    return _zone_in_file("/etc/localtime")


def zone_name(zone: tzinfo) -> str:
    """
    Give a zone's name, or its distance from UTC.
    """
    name = getattr(zone, "key", None)
    return name if isinstance(name, str) else str(timezone(zone.utcoffset(datetime.now(UTC)) or timedelta(0)))


def read_time(text: str, zone: tzinfo, now: datetime, *, is_end: bool = False) -> datetime:
    """
    Read a day (`2026-11-30`), an ISO time, or how long ago (`24h`, `7d`, `2w`). Raises BadTime.

    A time without a zone is one of `zone`. A day is its beginning, or with `is_end` its end.
    """
    try:
        found = _ago(text, now) or _day(text, zone, is_end=is_end) or _time(text, zone)
    except (ValueError, OverflowError):
        found = None
    if found is None or not 1970 <= found.year < 9000:
        raise BadTime(f"{text!r} is no time: write it like 2026-11-30, 2026-11-30T14:00, 24h or 7d")
    return found


def day_at(at: datetime, zone: tzinfo) -> tuple[date, datetime, datetime]:
    """
    Give the day of a zone that a time lies in, with its beginning and its end in UTC.

    A day begins at its first midnight and ends where the next one begins, whatever the clocks do between.
    """
    day = at.astimezone(zone).date()
    while at < _begin(day, zone):
        day -= _DAY
    while at >= _begin(day + _DAY, zone):
        day += _DAY
    return day, _begin(day, zone), _begin(day + _DAY, zone)


def day_begin(at: datetime, zone: tzinfo, *, days_before: int = 0) -> datetime:
    """
    Give the beginning of the day that a time lies in, or of one before it, in UTC.
    """
    return _begin(day_at(at, zone)[0] - days_before * _DAY, zone)


def month_begin(at: datetime, zone: tzinfo) -> datetime:
    """
    Give the beginning of the month that a time lies in, in UTC.
    """
    return _begin(day_at(at, zone)[0].replace(day=1), zone)


def _begin(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)


def _ago(text: str, now: datetime) -> datetime | None:
    found = _AGO.fullmatch(text)
    return now - int(found[1]) * _UNITS[found[2]] if found else None


def _day(text: str, zone: tzinfo, *, is_end: bool) -> datetime | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    return _begin(date.fromisoformat(text) + (_DAY if is_end else timedelta(0)), zone)


def _time(text: str, zone: tzinfo) -> datetime:
    found = datetime.fromisoformat(text)
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)


def _zone_of(name: str) -> tzinfo | None:
    try:
        return named_zone("UTC" if name == "Etc/UTC" else name)
    except BadTime:
        return None


def _zone_in_file(path: str) -> tzinfo:
    """
    Give the zone that a file describes, by the name that it has among all zones where it is a link to one.
    """
    from zoneinfo import ZoneInfo

    try:
        if found := _zone_of(os.path.realpath(path).partition("/zoneinfo/")[2]):
            return found
        with open(path, "rb") as file:
            return ZoneInfo.from_file(file, key=path)
    except (OSError, ValueError):
        return UTC


_NO_CHANGES: Final = struct.pack(">4sc15x6l lbb4s", b"TZif", b"2", 0, 0, 0, 0, 1, 4, 0, 0, 0, b"UTC\0")
"""What stands twice before the rules in a zone's file (RFC 8536), where none of its changes is listed."""

_US_CHANGES: Final = ",M3.2.0,M11.1.0"
"""When clocks change where rules name a summer time and do not say when, as the C library has it."""


def _zone_by_rules(rules: str) -> tzinfo:
    from zoneinfo import ZoneInfo

    for whole in (rules, rules + _US_CHANGES) if rules.isprintable() and rules else ():
        with suppress(ValueError):
            found = ZoneInfo.from_file(BytesIO(_NO_CHANGES * 2 + f"\n{whole}\n".encode()), key=rules)
            for month in (1, 7):
                datetime(1970, month, 1, tzinfo=found).utcoffset()  # a whole day from UTC is a rule, and no time here
            return found
    return UTC
