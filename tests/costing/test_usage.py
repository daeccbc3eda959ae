from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.usage import Usage, read_usage, total

COUNTS = st.integers(min_value=0, max_value=10**9)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "output_tokens_details",
)


WROTE_1000: dict[str, object] = {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 1000}


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        pytest.param({"input_tokens": 7, "output_tokens": 3}, Usage(7, 3), id="bare"),
        pytest.param(
            {
                "input_tokens": 550,
                "output_tokens": 130,
                "output_tokens_details": {"thinking_tokens": 40},
                "cache_creation_input_tokens": 30,
                "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
                "cache_read_input_tokens": 900,
                "service_tier": "standard",
                "inference_geo": "us",
            },
            Usage(550, 130, 40, 10, 20, 900),
            id="all-classes",
        ),
        pytest.param(
            {"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 8},
            Usage(1, 1, 0, 8),
            id="writes-without-lifetimes-are-5m",
        ),
        pytest.param(
            {"input_tokens": 1, "output_tokens": 1, "cache_creation": {}, "cache_creation_input_tokens": 8},
            Usage(1, 1, 0, 8),
            id="empty-lifetimes",
        ),
        pytest.param(
            {
                "input_tokens": 1,
                "output_tokens": 1,
                "cache_creation": None,
                "cache_creation_input_tokens": None,
                "cache_read_input_tokens": None,
                "output_tokens_details": None,
            },
            Usage(1, 1),
            id="nulls",
        ),
        pytest.param({"input_tokens": 0, "output_tokens": 0}, Usage(), id="zeros"),
        pytest.param({**WROTE_1000, "cache_creation": None}, Usage(1, 1, 0, 1000), id="whole-and-null"),
        pytest.param({**WROTE_1000, "cache_creation": {}}, Usage(1, 1, 0, 1000), id="whole-and-no-parts"),
        pytest.param(
            {**WROTE_1000, "cache_creation": {"ephemeral_5m_input_tokens": None}},
            Usage(1, 1, 0, 1000),
            id="whole-and-null-parts",
        ),
        pytest.param(
            {
                **WROTE_1000,
                "cache_creation": {"ephemeral_5m_input_tokens": 400, "ephemeral_1h_input_tokens": 600, "x": 0},
            },
            Usage(1, 1, 0, 400, 600),
            id="parts-are-the-whole",
        ),
        pytest.param(
            {**WROTE_1000, "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}},
            None,
            id="parts-are-less",
        ),
        pytest.param({**WROTE_1000, "cache_creation": {"ephemeral_24h_input_tokens": 1000}}, None, id="unknown-part"),
        pytest.param({**WROTE_1000, "cache_creation": {"x": 1}}, None, id="odd-part"),
        pytest.param({**WROTE_1000, "cache_creation": [1000]}, None, id="parts-in-a-list"),
        pytest.param(
            {"input_tokens": 1, "output_tokens": 1, "cache_creation": {"ephemeral_24h_input_tokens": 9}},
            None,
            id="unknown-part-without-a-whole",
        ),
        pytest.param({"input_tokens": 1}, None, id="no-output"),
        pytest.param({"output_tokens": 1}, None, id="no-input"),
        pytest.param({}, None, id="empty"),
        pytest.param({"input_tokens": -1, "output_tokens": 1}, None, id="negative"),
        pytest.param({"input_tokens": True, "output_tokens": 1}, None, id="bool"),
        pytest.param({"input_tokens": math.nan, "output_tokens": 1}, None, id="nan"),
        pytest.param({"input_tokens": 1.0, "output_tokens": 1}, None, id="float"),
        pytest.param({"input_tokens": "1", "output_tokens": 1}, None, id="text"),
        pytest.param({"input_tokens": 2**70, "output_tokens": 1}, None, id="beyond-64-bits"),
        pytest.param({"input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": -5}, None, id="one-bad-class"),
    ],
)
def test_reads_the_usage_of_the_messages_api(raw: dict[str, object], usage: Usage | None) -> None:
    """
    Each class is read from its own field, and a usage with a damaged count is no usage.
    """
    assert read_usage(raw) == usage


@given(st.dictionaries(st.sampled_from(KEYS), JSON | COUNTS))
def test_any_object_is_a_sound_usage_or_none(raw: dict[str, Any]) -> None:
    """
    Nothing that JSON can hold makes reading fail or gives a count that is no whole number from 0 up.
    """
    usage = read_usage(raw)

    assert usage is None or all(type(count) is int and count >= 0 for count in usage)


@given(st.lists(USAGES))
def test_adds_up_class_by_class(usages: list[Usage]) -> None:
    """
    A total has, in each class, the sum of that class.
    """
    added = total(usages)

    for place, _ in enumerate(Usage._fields):
        assert added[place] == sum(usage[place] for usage in usages)


def test_prompt_tokens_count_the_cached_ones_once() -> None:
    """
    What the model read is the uncached tokens and every cached class; output is none of it.
    """
    assert Usage(1, 10, 5, 100, 1000, 10_000).prompt_tokens == 11_101
