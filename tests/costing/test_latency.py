"""
Durations: percentiles and histograms against their definitions.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.latency import Histogram, LatestDurations

SECONDS = st.floats(min_value=0, max_value=100, allow_nan=False)


@given(st.lists(SECONDS, min_size=1, max_size=300))
def test_a_percentile_is_the_smallest_that_so_many_do_not_exceed(seconds: list[float]) -> None:
    """
    At least 50 (95) of a hundred took no longer, and with any smaller duration that would not be so.
    """
    latest = LatestDurations()
    for duration in seconds:
        latest.add(duration)

    for percent, found in zip((50, 95), latest.percentiles(), strict=True):
        enough = [d for d in seconds if 100 * sum(other <= d for other in seconds) >= percent * len(seconds)]
        assert found == min(enough)


def test_only_the_latest_thousand_count() -> None:
    """
    A slow hour is forgotten after a thousand quick decisions.
    """
    latest = LatestDurations()
    for duration in [9.0] * 5000 + [1.0] * 950 + [2.0] * 50:
        latest.add(duration)

    assert latest.percentiles() == (1.0, 1.0)


def test_nothing_measured_is_not_known() -> None:
    """
    Without a duration there is no percentile, and no 0.
    """
    assert LatestDurations().percentiles() == (None, None)


@given(st.lists(st.one_of(SECONDS, st.sampled_from([0.1, 1.0, 5.0]))))
def test_a_bucket_has_all_up_to_its_bound(seconds: list[float]) -> None:
    """
    A bucket counts what is not above its bound, which belongs to it; the last counts all.
    """
    histogram = Histogram((0.1, 1.0, 5.0))
    for duration in seconds:
        histogram.add(duration)

    expected = [(bound, sum(duration <= bound for duration in seconds)) for bound in (0.1, 1.0, 5.0, float("inf"))]
    assert histogram.cumulative() == expected
    assert abs(histogram.sum_s - sum(seconds)) < 1e-6
