from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.stamps import moment, new_id, stamp, storable

TIMES = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def test_writes_utc_with_milliseconds() -> None:
    """
    A time in another zone is written in UTC, with `Z` and three decimals.
    """
    at = datetime(2026, 11, 30, 1, 2, 3, 4567, tzinfo=timezone(timedelta(hours=2)))

    assert stamp(at) == "2026-11-29T23:02:03.004Z"


def test_a_time_without_a_zone_is_refused() -> None:
    """
    What a time without a zone means is not guessed.
    """
    with pytest.raises(ValueError, match="no time zone"):
        stamp(datetime(2026, 11, 30))  # noqa: DTZ001


@given(TIMES, TIMES)
def test_text_order_is_time_order(one: datetime, other: datetime) -> None:
    """
    Stamps compare as their times do, to the millisecond, and read back as what they say.
    """
    assert (stamp(one) < stamp(other)) == (moment(stamp(one)) < moment(stamp(other)))
    assert abs(moment(stamp(one)) - one) < timedelta(milliseconds=1)


@given(TIMES, TIMES)
def test_ids_sort_by_time(one: datetime, other: datetime) -> None:
    """
    Ids of different milliseconds sort as their times, and all have 15 characters.
    """
    earlier, later = sorted((one, other))
    if later - earlier >= timedelta(milliseconds=1):
        assert new_id(earlier) < new_id(later)
    assert len(new_id(one)) == 15


def test_ids_of_one_moment_differ() -> None:
    """
    A thousand ids of one millisecond are a thousand different ids.
    """
    at = datetime(2026, 11, 30, tzinfo=UTC)

    assert len({new_id(at) for _ in range(1000)}) == 1000


@given(st.text(alphabet=st.characters(codec=None)))  # every code point, lone surrogates too
def test_storable_text_can_be_encoded(text: str) -> None:
    """
    Any text becomes one that a database takes; text that is sound already stays as it is.
    """
    stored = storable(text)

    stored.encode()
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert stored == text
