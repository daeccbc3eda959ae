"""
The sums of each day (or hour) of a window. Days that are over are kept in the store, so that years are added up at once.

A kept day is right by construction: the store's triggers take its line away as soon as anything in that day is added, changed or removed
(`schema_2.sql`). Whoever adds up a day makes the line first and reads then; what is written meanwhile takes the line away, and the sums
find none to stand in. What is damaged is added up anew. docs/adr/0014-day-sums.md tells why.
"""

from __future__ import annotations

import json
from binascii import crc32
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from .rows import readable_time
from .stamps import new_id, stamp
from .store import Store, StoreError, Transaction
from .sums import EVERYTHING, Cube, Filters, Sums, folded, packed_line, read_cube, read_sessions, unpacked_line
from .windows import Window, day_at, zone_name

__all__ = ("Filters", "Stretch", "forget_sums", "keep_sums", "read_days", "read_session_days")

MOST_KEPT: Final = 5_000
"""Days of all zones. Above it all are added up anew: pages in many zones must not fill the disk."""

_WAIT_S: Final = 0.2
"""For the lock that keeping takes: what cannot be kept at once is added up again next time."""

_FIRST, _LAST = "1970", "9000"
"""Outside of these a time is damage."""


Tell = Callable[[int], None]


class Stretch(NamedTuple):
    """
    What one local day, hour or part of a day adds up to.
    """

    key: str
    """`2026-11-30`, or `2026-11-30 14:00`; empty for lines whose time cannot be read."""
    starts_at: str
    ends_at: str | None
    """As times are stored; itself left out."""
    sums: Sums


def read_days(
    store: Store | None,
    window: Window,
    filters: Filters = EVERYTHING,
    *,
    now: datetime,
    hours: bool = False,
    tell: Tell | None = None,
) -> tuple[Stretch, ...]:
    """
    Add up the days of a window in which there is anything, or with `hours` its hours, in order; the first and last may be cut.

    `tell` is told how many days have to be added up that might have been kept.
    """
    if store is None:
        return ()
    return tuple(
        _read(store, window, filters, "sums" if filters == EVERYTHING else "cube", now, hours=hours, tell=tell)
    )


def read_session_days(
    store: Store | None,
    window: Window,
    filters: Filters = EVERYTHING,
    *,
    now: datetime,
    tell: Tell | None = None,
) -> tuple[Stretch, ...]:
    """
    Add up the same days by session alone.
    """
    if store is None:
        return ()
    return tuple(_read(store, window, filters, "session_sums", now, tell=tell))


def keep_sums(store: Store, window: Window, *, now: datetime, most: int = 1) -> int:
    """
    Add up the days of a window that are over and not kept yet, at most so many, the latest first, and give their number.

    For an owner that lives long, so that nobody waits for them later.
    """
    kept = _kept(store, window, f"CASE WHEN sums IS NULL THEN NULL ELSE '{_sealed('')}' END")
    places = _places(store, window, kept, now)
    due = [place for place in places if _is_due(place, kept)][: -most - 1 : -1]
    writers = _writers(store, window, due, kept, new_id(now))
    for place in due:
        _summed(store, window, place, "sums", EVERYTHING, writers.get(place.starts_at))
    return len(due)


def forget_sums(transaction: Transaction) -> None:
    """
    Forget all that is kept: first of all where many lines are changed, since each looks for the days it lies in.
    """
    transaction.execute("DELETE FROM day_sums")


class _Place(NamedTuple):
    key: str
    starts_at: str
    ends_at: str | None
    can_be_kept: bool = False


_What = Literal["sums", "cube", "session_sums"]


class _Kept(NamedTuple):
    ends_at: str
    writer: str
    text: str | None
    """None: nothing yet, or nothing that can be used."""


def _read(
    store: Store,
    window: Window,
    filters: Filters,
    what: _What,
    now: datetime,
    *,
    hours: bool = False,
    tell: Tell | None = None,
) -> Iterator[Stretch]:
    can_use = not hours and (what != "session_sums" or filters == EVERYTHING)
    kept = _kept(store, window, what) if can_use else {}
    places = list(_places(store, window, kept, now, hours=hours))
    due = [place for place in places if can_use and _is_due(place, kept)]
    if tell and due:
        tell(len(due))
    writers = _writers(store, window, due, kept, new_id(now))
    for place in places:
        found = kept.get(place.starts_at)
        if found and found.text is not None:
            sums = _unpacked(what, found.text, filters)
        else:
            sums = _summed(store, window, place, what, filters, writers.get(place.starts_at))
        yield Stretch(place.key, place.starts_at, place.ends_at, sums)


def _is_due(place: _Place, kept: Mapping[str, _Kept]) -> bool:
    found = kept.get(place.starts_at)
    return place.can_be_kept and (found is None or found.text is None)


def _summed(store: Store, window: Window, place: _Place, what: _What, filters: Filters, writer: str | None) -> Sums:
    """
    Add up a part of a window, and keep what it adds up to where there is a line for it.
    """
    if what == "session_sums":
        sums = read_sessions(store, place.starts_at, place.ends_at, filters)
        texts = {"session_sums": _packed(sums)} if writer else {}
    else:
        cube = read_cube(store, place.starts_at, place.ends_at)
        sums = folded(cube, filters)
        texts = {"sums": _packed(folded(cube)), "cube": _json(cube)} if writer else {}
    if writer:
        _keep(store, window, place, texts, writer)
    return sums


def _places(
    store: Store, window: Window, kept: dict[str, _Kept], now: datetime, *, hours: bool = False
) -> Iterator[_Place]:
    """
    The parts of a window in which there is anything. From one to the next the store is asked, but where the next one is kept.
    """
    since = "" if window.since is None else stamp(window.since)
    until = None if window.until is None else stamp(window.until)
    at = since
    while until is None or at < until:
        first: object = at if at in kept else _first(store, at, until)
        if first is None:
            return
        place = _place_of(first, at, window, now, hours=hours)
        if until is not None and (place.ends_at is None or place.ends_at > until):
            place = place._replace(ends_at=until, can_be_kept=False)
        found = kept.get(place.starts_at)
        if found and (found.ends_at != place.ends_at or not place.can_be_kept):
            del kept[place.starts_at]  # of other rules for the zone's days, or of a whole day that is cut here
        yield place
        if place.ends_at is None:
            return
        at = place.ends_at


def _place_of(first: object, after: str, window: Window, now: datetime, *, hours: bool) -> _Place:
    """
    The day or hour that a time lies in, without what comes before `after`.
    """
    if not isinstance(first, str) or first >= _LAST:
        return _Place("", max(after, _LAST), None)
    if first < _FIRST:
        return _Place("", after, _FIRST)
    time = readable_time(first)
    key, begin, end = ("", "", "") if time is None else _hour(time, window) if hours else _day(time, window)
    if not begin <= first < end:
        return _Place("", max(first, after), first + " ")
    return _Place(key, max(begin, after), end, can_be_kept=begin >= after and end <= stamp(now) and not hours)


def _day(time: datetime, window: Window) -> tuple[str, str, str]:
    day, begin, end = day_at(time, window.zone)
    return day.isoformat(), stamp(begin), stamp(end)


def _hour(time: datetime, window: Window) -> tuple[str, str, str]:
    local = time.astimezone(window.zone)
    begin = local.astimezone(UTC) - timedelta(
        minutes=local.minute, seconds=local.second, microseconds=local.microsecond
    )
    return f"{local:%Y-%m-%d %H}:00", stamp(begin), stamp(begin + timedelta(hours=1))


def _first(store: Store, at: str, until: str | None) -> object:
    where = "at >= ?" + ("" if until is None else " AND at < ?")
    values = (at,) if until is None else (at, until)
    rows = store.rows(
        f"SELECT MIN(at) FROM calls WHERE {where} UNION ALL SELECT MIN(at) FROM decisions WHERE {where}",  # noqa: S608
        (*values, *values),
    )
    found: list[Any] = [value for (value,) in rows if value is not None]
    return min(found, key=lambda value: (isinstance(value, bytes), value)) if found else None


def _kept(store: Store, window: Window, what: str) -> dict[str, _Kept]:
    where, values = "zone = ?", [_zone(window)]
    if window.since is not None:
        where, values = where + " AND starts_at >= ?", [*values, stamp(window.since)]
    if window.until is not None:
        where, values = where + " AND ends_at <= ?", [*values, stamp(window.until)]
    rows = store.rows(f"SELECT starts_at, ends_at, writer, {what} FROM day_sums WHERE {where}", values)  # noqa: S608
    return {starts_at: _Kept(ends_at, writer, _unsealed(text)) for starts_at, ends_at, writer, text in rows}


def _writers(
    store: Store, window: Window, due: Sequence[_Place], kept: Mapping[str, _Kept], writer: str
) -> Mapping[str, str]:
    """
    Make the lines for sums that are to come, where there are none yet; give each line's writer by its beginning.
    """
    known = {place.starts_at: kept[place.starts_at].writer for place in due if place.starts_at in kept}
    new = [place for place in due if place.starts_at not in kept]
    if not new:
        return known
    # Where writers are not alone, one that began before the line was there would not take it away.
    try:
        with store.write(wait_s=_WAIT_S, settled=("decisions", "calls", "labels")) as transaction:
            if transaction.execute("SELECT COUNT(*) FROM day_sums").fetchone()[0] + len(new) > MOST_KEPT:
                forget_sums(transaction)
            for place in new:
                transaction.execute(
                    "INSERT INTO day_sums (zone, starts_at, ends_at, writer) VALUES (?, ?, ?, ?) ON CONFLICT (zone, starts_at)"
                    " DO UPDATE SET ends_at = excluded.ends_at, writer = excluded.writer, sums = NULL, cube = NULL,"
                    " session_sums = NULL",
                    (_zone(window), place.starts_at, place.ends_at, writer),
                )
    except StoreError:
        return known
    return {**known, **{place.starts_at: writer for place in new}}


def _keep(store: Store, window: Window, place: _Place, texts: Mapping[str, str], writer: str) -> None:
    names = ", ".join(f"{name} = ?" for name in texts)
    with suppress(StoreError), store.write(wait_s=_WAIT_S) as transaction:
        transaction.execute(
            f"UPDATE day_sums SET {names} WHERE zone = ? AND starts_at = ? AND writer = ?",  # noqa: S608
            (*map(_sealed, texts.values()), _zone(window), place.starts_at, writer),
        )


def _zone(window: Window) -> str:
    return zone_name(window.zone)


def _packed(sums: Sums) -> str:
    return _json({way: {key: packed_line(line) for key, line in lines.items()} for way, lines in sums.items()})


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


_SEAL: Final = 8


def _sealed(text: str) -> str:
    return f"{crc32(text.encode()):0{_SEAL}x}{text}"


def _unsealed(found: object) -> str | None:
    """
    Give a text that was sealed; None where it is damaged.
    """
    text = found[_SEAL:] if isinstance(found, str) else ""
    return text if found == _sealed(text) else None


def _unpacked(what: _What, text: str, filters: Filters) -> Sums:
    found: Any = json.loads(text)
    if what == "cube":
        return folded(Cube(*found), filters)
    return {way: {key: unpacked_line(line) for key, line in lines.items()} for way, lines in found.items()}
