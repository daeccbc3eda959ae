"""
Plots as data: what Plotly would make of them.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.dashboard.figures import lines, plain_name, ranked_bars, stacked_bars


@given(st.text(max_size=60))
def test_a_name_holds_no_tag_and_no_hole(name: str) -> None:
    """
    Plotly fills `%{...}` and reads tags: neither is left in a name.
    """
    plain = plain_name(name)

    assert "<" not in plain
    assert ">" not in plain
    assert "%{" not in plain


def test_a_long_name_keeps_its_end() -> None:
    """
    The end of a path is what tells it from others.
    """
    assert plain_name("/home/ann/a/very/long/way/to/parser", longest=10) == "\u2026to/parser"


def test_nothing_is_no_plot() -> None:
    """
    Where nothing is known there is nothing to draw.
    """
    assert stacked_bars(["a"], {"x": [None]}) is None
    assert lines(["a"], {}) is None
    assert ranked_bars([], []) is None


@pytest.mark.parametrize(
    ("places", "shown"),
    [
        (["2026-11-30"], ["11-30"]),
        (["2026-11-30 14:00"], ["14:00"]),
        (["2026-11", "2026-12"], ["2026-11", "2026-12"]),
        ([f"2026-11-{day:02}" for day in range(1, 15)], [f"11-{day:02}" for day in range(1, 15, 2)]),
    ],
)
def test_the_axis_names_few_places(places: list[str], shown: list[str]) -> None:
    """
    At most seven, so that none covers another on a telephone.
    """
    figure = lines(places, {"x": [1.0] * len(places)})

    assert figure
    assert figure["layout"]["xaxis"]["ticktext"] == shown


def test_a_limit_is_a_line_across() -> None:
    """
    The budget is drawn where spend would meet it.
    """
    figure = stacked_bars(["a"], {"x": [1.0]}, limit=5.0)

    assert figure
    assert [(one["y0"], one["y1"]) for one in figure["layout"]["shapes"]] == [(5.0, 5.0)]


def test_a_share_of_nothing_has_an_axis() -> None:
    """
    Where no share is above zero, the axis still has a height.
    """
    figure = lines(["a", "b"], {"x": [0.0, None]}, share=True)

    assert figure
    assert figure["layout"]["yaxis"]["range"] == [0, 0.02]
