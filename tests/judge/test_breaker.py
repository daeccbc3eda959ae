"""
When the breaker is open.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from turngate.costing.outcomes import CallOutcome
from turngate.costing.records import RecentCall
from turngate.judge.breaker import is_open

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)

E, T, A, U, R, X = "error", "timeout", "answered", "unreadable", "refused", "rejected"


def calls(*outcomes: CallOutcome | None, ago_s: float = 1.0) -> list[RecentCall]:
    """
    Make calls a second apart, newest first.
    """
    return [RecentCall(NOW - timedelta(seconds=ago_s + i), o, 0) for i, o in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("recent", "is_to_be_open"),
    [
        pytest.param([], False, id="no-calls"),
        pytest.param(calls(E, E, E, E), False, id="four"),
        pytest.param(calls(E, E, E, E, E), True, id="five"),
        pytest.param(calls(T, E, T, E, T, A), True, id="timeouts-too"),
        pytest.param(calls(E, E, A, E, E, E, E), False, id="an-answer-among-them"),
        pytest.param(calls(E, E, E, E, U), False, id="an-unreadable-answer-is-an-answer"),
        pytest.param(calls(E, E, E, E, R), False, id="a-refusal-is-an-answer"),
        pytest.param(calls(X, X, X, X, X, X), False, id="rejected-requests-say-nothing-of-others"),
        pytest.param(calls(E, E, X, E, E, E), False, id="who-rejects-is-there"),
        pytest.param(calls(None, E, None, E, E, E, None, E), True, id="unfinished-calls-say-nothing"),
        pytest.param(calls(E, E, E, E, E, ago_s=59.9), True, id="within-a-minute"),
        pytest.param(calls(E, E, E, E, E, ago_s=60.0), False, id="after-a-minute"),
        pytest.param(calls(E, ago_s=1) + calls(E, E, E, E, ago_s=61), True, id="the-try-after-the-pause-failed"),
        pytest.param(calls(E, E, E, E, E, ago_s=-3600), False, id="clock-set-back"),
    ],
)
def test_it_is_open_for_a_minute_after_five_failures_in_a_row(recent: list[RecentCall], is_to_be_open: bool) -> None:
    """
    Only failures of the endpoint count, newest first.
    """
    assert is_open(recent, NOW) is is_to_be_open


def test_the_minute_counts_from_the_end_of_the_last_failure() -> None:
    """
    A timeout that began long ago ended just now.
    """
    recent = [RecentCall(NOW - timedelta(seconds=62), "timeout", 8_000)] * 5

    assert is_open(recent, NOW)
