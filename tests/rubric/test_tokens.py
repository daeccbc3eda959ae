"""
The local estimate of tokens.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.rubric.tokens import estimate


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # (text, tokens by the larger of two published vocabularies: Claude 2's and o200k)
        pytest.param("Wrote retry.ts.\n\nDone. All tests pass.", 12, id="english"),
        pytest.param("ሁሉም ሙከራዎች አልፈዋል", 37, id="amharic"),
        pytest.param("การทดสอบทั้งหมดผ่านแล้ว", 40, id="thai"),
        pytest.param("✅🎉🚀👩‍💻🔥💯🙏🏽🇩🇪🧪🛠️", 36, id="emoji"),
        pytest.param("xqzvkjwpqgbf zzqxjv", 13, id="gibberish"),
        pytest.param("9f8e7d6c5b4a39281706f5e4d3c2b1a0", 19, id="hex"),
        pytest.param("3 1 4 1 5 9 2 6", 15, id="single-digits"),
    ],
)
def test_the_estimate_is_above_a_real_count(text: str, tokens: int) -> None:
    """
    At least 1.3 times a real count, or as many as the text has bytes.
    """
    assert estimate(text) >= min(1.3 * tokens, len(text.encode()))


@given(st.text(), st.text())
def test_parts_on_lines_of_their_own_add_up(first: str, second: str) -> None:
    """
    Joining two texts by a line end costs at most what both cost, and the line end.
    """
    assert estimate(f"{first}\n{second}") <= estimate(first) + estimate(second) + 3


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_fails_to_be_estimated(text: str) -> None:
    """
    Lone surrogates too; only the empty text costs nothing.
    """
    assert (estimate(text) > 0) == bool(text)


@pytest.mark.parametrize("unit", ["a", "the token ", " ", "\n", "-", "\U0001f600", "qX7 "])
def test_estimating_takes_time_in_proportion_to_the_text(unit: str) -> None:
    """
    Sixteen times the text takes far less than 256 times as long.
    """

    def seconds(text: str) -> float:
        start = time.perf_counter()
        estimate(text)
        return time.perf_counter() - start

    small, large = unit * 10_000, unit * 160_000

    assert min(seconds(large) for _ in range(3)) < 80 * max(min(seconds(small) for _ in range(3)), 0.0003)
