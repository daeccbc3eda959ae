"""
What a page is asked for: the filters for time and project, as they stand in its address.

A filter that cannot be read is told of and left out: an address from a chat is often cut or mistyped.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlencode

from ..windows import BadTime, named_zone

SPANS: Final[Mapping[str, str]] = {
    "today": "today",
    "24h": "last 24 hours",
    "7d": "last 7 days",
    "30d": "last 30 days",
    "month": "this month",
    "90d": "last 90 days",
    "all": "all time",
    "dates": "from … to …",
}
DEFAULT_SPAN: Final = "7d"

NO_PROJECT: Final = "-"
"""Asks for what belongs to no project; projects are absolute paths."""

_LONGEST: Final = 2_000
_MOST_FIELDS: Final = 50
_AHEAD: Final = timedelta(days=1)
"""So far ahead of this clock another machine's may be."""


class Asked(NamedTuple):
    """
    The filters. `since` and `until` are None where there is no end; `until` itself is left out.
    """

    span: str
    since: datetime | None
    until: datetime | None
    zone: tzinfo
    project: str | None
    """None: all of them; empty: those without one."""
    tz: str = ""
    """As the address names it, where it does."""
    first_day: str = ""
    last_day: str = ""
    problems: tuple[str, ...] = ()

    def ends_at(self, now: datetime) -> datetime:
        """
        Give where the time ends that is added up and listed: with a day from now, where no other day is asked for.
        """
        return now + _AHEAD if self.until is None else self.until

    @property
    def query(self) -> str:
        """
        Give the filters as an address has them, without those that are not set.
        """
        wanted = {"span": self.span, "since": self.first_day, "until": self.last_day, "tz": self.tz}
        if self.project is not None:
            wanted["project"] = self.project or NO_PROJECT
        return urlencode({name: value for name, value in wanted.items() if value})


def read_asked(query: str, now: datetime, zone: tzinfo) -> Asked:
    """
    Read the filters. `zone` is the one that days begin in where the address names none.
    """
    problems = list[str]()
    fields = _fields(query, problems)
    chosen = _zone(fields.get("tz", ""), problems) or zone
    span = fields.get("span", "dates" if "since" in fields or "until" in fields else DEFAULT_SPAN)
    if span not in SPANS:
        problems.append(f"span: {_cut(span)!r} is none of {', '.join(SPANS)}: the {SPANS[DEFAULT_SPAN]} are shown")
        span = DEFAULT_SPAN
    project = fields.get("project", "")
    if len(project) > _LONGEST:
        problems.append(f"project: {_cut(project)!r} is longer than {_LONGEST:,} characters: all projects are shown")
        project = ""
    wanted = {"": None, NO_PROJECT: ""}.get(project, project)
    asked = Asked(span, None, None, chosen, wanted, fields.get("tz", "") if chosen is not zone else "")
    first, last = (_day(fields, name, problems) if span == "dates" else None for name in ("since", "until"))
    since, until = _ends(span, now.astimezone(chosen), first, last)
    days = (first.isoformat() if first else "", last.isoformat() if last else "")
    return asked._replace(since=since, until=until, first_day=days[0], last_day=days[1], problems=tuple(problems))


def _fields(query: str, problems: list[str]) -> dict[str, str]:
    try:
        return {name: values[0] for name, values in parse_qs(query, max_num_fields=_MOST_FIELDS).items()}
    except ValueError:
        problems.append(f"the address has more than {_MOST_FIELDS} fields: no filter of it counts")
        return {}


def _ends(span: str, now: datetime, first: date | None, last: date | None) -> tuple[datetime | None, datetime | None]:
    if span == "dates":
        zone = now.tzinfo
        since = datetime.combine(first, time(), zone) if first else None
        return since, datetime.combine(last + timedelta(days=1), time(), zone) if last else None
    today = datetime.combine(now.date(), time(), now.tzinfo)
    if span == "24h":
        return now - timedelta(hours=24), None
    if span == "month":
        return today.replace(day=1), None
    if span == "all":
        return None, None
    days = 1 if span == "today" else int(span.removesuffix("d"))
    return datetime.combine(now.date() - timedelta(days=days - 1), time(), now.tzinfo), None


def _day(fields: Mapping[str, str], name: str, problems: list[str]) -> date | None:
    given = fields.get(name, "")
    if not given:
        return None
    try:
        found = date.fromisoformat(given)
    except ValueError:
        found = None
    if found is None or not 1971 <= found.year <= 8999:
        problems.append(f"{name}: {_cut(given)!r} is no day like 2026-11-30: left out")
        return None
    return found


def _zone(name: str, problems: list[str]) -> tzinfo | None:
    if not name:
        return None
    try:
        return named_zone(name)
    except BadTime:
        problems.append(f"tz: {_cut(name)!r} is no time zone that this machine knows: its own is used")
        return None


def _cut(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
