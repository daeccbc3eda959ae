"""
Plots as data for Plotly's script; colours of text and lines are the page's, which knows the reader's theme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

Figure: TypeAlias = dict[str, Any]
"""`data` and `layout`."""

COLOURS: Final = ("#3b7dd8", "#e0752d", "#2a9d6f", "#c2456b", "#8a63d2", "#8c8c1f", "#1f9eb3", "#a0693c")
TONES: Final = {"hold": "#c2456b", "trouble": "#e0a02d", "fine": "#2a9d6f", "plain": "#8a93a3"}

_LONGEST_NAME: Final = 26
_MOST_POINTS_MARKED: Final = 40
_MOST_TICKS: Final = 7


def stacked_bars(
    places: Sequence[str], series: Mapping[str, Sequence[float | None]], *, prefix: str = "", limit: float | None = None
) -> Figure | None:
    """
    Give bars over time, one colour for each series; None where all is nothing. `limit` is drawn as a line.
    """
    data = [
        {
            "type": "bar",
            "name": plain_name(name),
            "x": list(places),
            "y": list(values),
            "marker": {"color": COLOURS[number % len(COLOURS)]},
            "hovertemplate": f"%{{x}}: {prefix}%{{y:,.6~g}}<extra>{plain_name(name)}</extra>",
        }
        for number, (name, values) in enumerate(series.items())
        if any(value is not None for value in values)
    ]
    if not data:
        return None
    layout: Figure = {"barmode": "stack", "yaxis": {"tickprefix": prefix, "rangemode": "tozero"}}
    if limit is not None:
        layout["shapes"] = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": limit, "y1": limit}]
    return _figure(data, _over_time(places), **layout)


def lines(
    places: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    *,
    prefix: str = "",
    suffix: str = "",
    share: bool = False,
) -> Figure | None:
    """
    Give lines over time, with a gap where nothing is known; None where nothing is known at all.
    """
    number_format = ".1%" if share else ",.4~g"
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers" if len(places) <= _MOST_POINTS_MARKED else "lines",
            "name": plain_name(name),
            "x": list(places),
            "y": list(values),
            "line": {"color": COLOURS[number % len(COLOURS)], "width": 2},
            "hovertemplate": f"%{{x}}: {prefix}%{{y:{number_format}}}{suffix}<extra>{plain_name(name)}</extra>",
        }
        for number, (name, values) in enumerate(series.items())
        if any(value is not None for value in values)
    ]
    if not data:
        return None
    axis: Figure = {"tickprefix": prefix, "ticksuffix": suffix, "rangemode": "tozero"}
    if share:
        highest = max((value or 0.0 for values in series.values() for value in values), default=0.0)
        axis = {"tickformat": ".0%" if highest >= 0.05 else ".1%", "range": [0, min(1.0, max(highest * 1.15, 0.02))]}
    return _figure(data, _over_time(places), yaxis=axis)


def ranked_bars(
    names: Sequence[str],
    values: Sequence[float],
    *,
    prefix: str = "",
    colours: Sequence[str] = (),
    full: Sequence[str] = (),
) -> Figure | None:
    """
    Give bars that lie, the first name on top; `full` is what is shown of each under the pointer.
    """
    if not names:
        return None
    places = list(range(len(names)))
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": list(values),
        "y": places,
        "marker": {"color": list(colours) or COLOURS[0]},
        "text": [f"{prefix}{value:,.3g}" if prefix else f"{value:,.0f}" for value in values],
        "textposition": "outside",
        "textangle": 0,
        "cliponaxis": False,
        "customdata": [plain_name(name, longest=200) for name in (full or names)],
        "hovertemplate": f"%{{customdata}}: {prefix}%{{x:,.6~g}}<extra></extra>",
    }
    ticks = {"tickvals": places, "ticktext": list(map(plain_name, names)), "range": [len(names) - 0.5, -0.5]}
    rows = {**ticks, "showgrid": False, "zeroline": False, "automargin": True}
    # The amounts stand behind the bars and need room there.
    along = {"tickprefix": prefix, "range": [0, (max(values) or 1) * 1.22], "nticks": 5}
    return _figure([bars], along, yaxis=rows)


def plain_name(name: str, longest: int = _LONGEST_NAME) -> str:
    """
    Give a name as Plotly shows it and nothing else: it reads some tags, links among them, in what it writes, and fills holes in `%{...}`.
    """
    cut = name if len(name) <= longest else f"…{name[1 - longest :]}"
    escaped = cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("%{", "%\u200b{")


def _over_time(places: Sequence[str]) -> Figure:
    # As words, not as times: Plotly would show a time of its own zone.
    every = max(1, -(-len(places) // _MOST_TICKS))
    shown = list(places)[::every]
    return {
        "type": "category",
        "showgrid": False,
        "tickangle": 0,
        "tickvals": shown,
        "ticktext": list(map(_short, shown)),
    }


def _short(place: str) -> str:
    """
    Give a day without its year, and an hour without its day.
    """
    if len(place) == len("2026-11-30"):
        return place[5:]
    return place[11:] if len(place) == len("2026-11-30 14:00") else place


def _figure(data: Sequence[Figure], xaxis: Figure, **layout: Any) -> Figure:
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    margin = {"l": 8, "r": 12, "t": 26, "b": 8}
    yaxis = {"automargin": True, "fixedrange": True, "nticks": 6, "zeroline": False, **layout.pop("yaxis", {})}
    axes = {"xaxis": {"automargin": True, "fixedrange": True, "zeroline": False, **xaxis}, "yaxis": yaxis}
    return {
        "data": list(data),
        "layout": {"margin": margin, "legend": legend, "showlegend": len(data) > 1, **axes, **layout},
    }
