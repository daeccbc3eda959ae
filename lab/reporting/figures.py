"""
The plots of a report, as data for Plotly; the only file that knows Plotly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from ..scoring.marks import Marks, Rate
from ..scoring.score import Figures, Score
from ..statistics import Interval
from .report import Arm, Compared, Report

Figure: TypeAlias = dict[str, Any]
"""`data` and `layout`."""

_COLOURS: Final = ("#3b7dd8", "#e0752d", "#2a9d6f", "#c2456b", "#8a63d2", "#8c8c1f", "#1f9eb3", "#a0693c")
_SHARE: Final = {"range": [-0.03, 1.03], "tickformat": ".0%", "zeroline": False}
_PANELS: Final[tuple[tuple[str, Callable[[Marks], Rate]], ...]] = (
    ("precision", lambda of: of.precision),
    ("recall", lambda of: of.recall),
    ("F1", lambda of: of.f1),
    ("named where it is not", lambda of: of.false_alarms),
)


def library() -> str:
    """
    Give the whole of Plotly's script (MIT licence).
    """
    from plotly.offline import get_plotlyjs  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    return str(get_plotlyjs())  # pyright: ignore[reportUnknownArgumentType]


def figures(of: Report) -> dict[str, Figure]:
    """
    Give the plots for which something is known, by name.
    """
    scored = [(arm, arm.score) for arm in of.arms if arm.score]
    found: dict[str, Figure | None] = {}
    for each in of.comparisons:
        found[f"difference-{each.arm}"] = _difference(each)
    if scored:
        found["marks-all"] = _marks([(arm, score.labelled) for arm, score in scored])
        found["marks-sure"] = _sure_marks(scored)
        for arm, _ in scored:
            found[f"confusion-{arm.letter}"] = _confusion(arm)
        found["calibration"] = _calibration(scored)
        found["lengths"] = _lengths(scored)
        found["cost-f1"] = _cost_f1(scored)
    return {name: figure for name, figure in found.items() if figure}


def whiskers(rate: Rate) -> Interval | None:
    """
    Give the interval to draw: over sessions, else Wilson's.
    """
    return rate.clustered or rate.wilson


def _sure_marks(scored: Sequence[tuple[Arm, Score]]) -> Figure | None:
    some = [(arm, score.sure) for arm, score in scored if score.sure and score.sure.cases < score.labelled.cases]
    return _marks(some) if some else None


def _marks(arms: Sequence[tuple[Arm, Figures]]) -> Figure:
    """
    Four panels, one for each figure; a fault is a row, an arm a colour.
    """
    faults = list(dict.fromkeys(one.fault for _, of in arms for one in (of.held, *of.faults)))
    data: list[dict[str, Any]] = []
    for panel, (_, rate_in) in enumerate(_PANELS, start=1):
        for number, (arm, of) in enumerate(arms):
            rows = [one for one in (of.held, *of.faults) if rate_in(one).value is not None]
            trace = _points(arm, "x", [rate_in(one) for one in rows])
            place = {"xaxis": f"x{panel}", "yaxis": "y", "showlegend": panel == 1 and len(arms) > 1}
            heights = [faults.index(one.fault) + _shift(number, len(arms)) for one in rows]
            data.append({**trace, "y": heights, **place})
    axes = {
        f"xaxis{panel}": {**_SHARE, "domain": _domain(panel - 1, len(_PANELS)), "title": {"text": name}, "nticks": 4}
        for panel, (name, _) in enumerate(_PANELS, start=1)
    }
    rows = {
        "tickvals": list(range(len(faults))),
        "ticktext": list(map(_escaped, faults)),
        "range": [len(faults) - 0.5, -0.5],
    }
    return _figure(data, height=110 + 48 * len(faults), yaxis={**rows, "zeroline": False}, **axes)


def _shift(arm: int, arms: int) -> float:
    # Arms stand a little beside each other.
    return (arm - (arms - 1) / 2) * 0.6 / max(arms, 2)


def _domain(panel: int, panels: int) -> list[float]:
    width = 1 / panels
    return [round(panel * width + (0.015 if panel else 0), 4), round((panel + 1) * width - 0.015, 4)]


def _difference(each: Compared) -> Figure | None:
    if each.comparison is None:
        return None
    subjects = (each.comparison.held, *each.comparison.faults)
    known = [(one.subject, one.accuracy) for one in subjects if one.accuracy.difference is not None]
    values = [of.difference or 0.0 for _, of in known]
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": values,
        "y": [_escaped(subject) for subject, _ in known],
        "error_x": _bars(values, [_ends(of.low, of.high) for _, of in known]),
        "marker": {"color": _COLOURS[1], "size": 9},
    }
    axis = {"tickformat": "+.0%", "title": {"text": f"accuracy, {each.arm} less {each.baseline}"}, "zeroline": True}
    return _figure([trace], height=110 + 36 * len(known), xaxis=axis, yaxis={"autorange": "reversed"})


def _ends(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else Interval(low, high)


def _confusion(arm: Arm) -> Figure | None:
    if arm.confusion is None:
        return None
    rows = [row for row in arm.confusion.rows if row.cases]
    shares = [[cell / row.cases for cell in row.named] for row in rows]
    heat = {
        "type": "heatmap",
        "x": list(map(_escaped, arm.confusion.columns)),
        "y": [f"{_escaped(row.label)} ({row.cases})" for row in rows],
        "z": shares,
        "text": [[f"{cell:.4g}" for cell in row.named] for row in rows],
        "texttemplate": "%{text}",
        "hovertemplate": "label %{y}, named %{x}: %{text} (%{z:.0%} of the row)<extra></extra>",
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, "rgba(59,125,216,0.04)"], [1, "rgba(59,125,216,0.85)"]],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }
    axes = {"xaxis": {"title": {"text": "named"}, "type": "category", "showgrid": False}}
    rows_down = {"autorange": "reversed", "type": "category", "showgrid": False}
    return _figure([heat], height=130 + 40 * len(rows), yaxis=rows_down, **axes)


def _calibration(scored: Sequence[tuple[Arm, Score]]) -> Figure | None:
    data: list[dict[str, Any]] = []
    for number, (arm, score) in enumerate(scored):
        known = [(place, one.right) for place, one in enumerate(score.trust) if one.right.value is not None]
        places = [place + _shift(number, len(scored)) for place, _ in known]
        data.append({**_points(arm, "y", [rate for _, rate in known]), "x": places, "showlegend": len(scored) > 1})
    names = [one.confidence for one in scored[0][1].trust]
    axis = _places(names, "confidence of the labels")
    return _figure(data, xaxis=axis, yaxis={**_SHARE, "title": {"text": "right about holding"}})


def _lengths(scored: Sequence[tuple[Arm, Score]]) -> Figure | None:
    data: list[dict[str, Any]] = []
    for number, (arm, score) in enumerate(scored):
        rates = [one.held for one in score.lengths.quarters]
        places = [place + _shift(number, len(scored)) for place in range(len(rates))]
        data.append({**_points(arm, "y", rates), "x": places, "name": f"{arm.letter}: held"})
    quarters = scored[0][1].lengths.quarters
    faulty = {
        "type": "scatter",
        "mode": "markers",
        "name": "labelled faulty",
        "x": list(range(len(quarters))),
        "y": [one.faulty for one in quarters],
        "marker": {"symbol": "diamond-open", "size": 11, "color": "#888888"},
    }
    names = [f"{one.shortest:,}-{one.longest:,}" for one in quarters]
    axis = _places(names, "characters of the reply, quarters of the cases")
    return _figure([*data, faulty], xaxis=axis, yaxis={**_SHARE, "title": {"text": "share of cases"}})


def _places(names: Sequence[str], title: str) -> dict[str, Any]:
    ticks = {"tickvals": list(range(len(names))), "ticktext": list(names), "range": [-0.5, len(names) - 0.5]}
    return {**ticks, "title": {"text": title}, "zeroline": False, "showgrid": False}


def _cost_f1(scored: Sequence[tuple[Arm, Score]]) -> Figure | None:
    data: list[dict[str, Any]] = []
    for arm, score in scored:
        cost, f1 = score.costs.usd_per_case, score.labelled.held.f1
        if cost is None or f1.value is None:
            continue
        name = {"text": [arm.letter], "mode": "markers+text", "textposition": "top right", "cliponaxis": False}
        data.append({**_points(arm, "y", [f1]), "x": [float(cost)], **name, "showlegend": len(scored) > 1})
    if not data:
        return None
    axis = {"title": {"text": "US dollars to judge a case once"}, "tickprefix": "$", "rangemode": "tozero"}
    return _figure(data, xaxis=axis, yaxis={**_SHARE, "title": {"text": "F1 of holding"}})


def _points(arm: Arm, along: str, rates: Sequence[Rate]) -> dict[str, Any]:
    """
    Points with whiskers along one axis; the caller gives the other.
    """
    values = [rate.value or 0.0 for rate in rates]
    colour = _COLOURS[ord(arm.letter[0]) % 65 % len(_COLOURS)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{arm.letter}: {_escaped(arm.judge)[:60]}",
        along: values,
        f"error_{along}": _bars(values, [whiskers(rate) for rate in rates]),
        "marker": {"color": colour, "size": 9},
    }


def _bars(values: Sequence[float], intervals: Sequence[Interval | None]) -> dict[str, Any]:
    up = [max(0.0, found.high - value) if found else 0.0 for value, found in zip(values, intervals, strict=True)]
    down = [max(0.0, value - found.low) if found else 0.0 for value, found in zip(values, intervals, strict=True)]
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.5, "width": 4}


def _escaped(text: str) -> str:
    # Plotly reads some tags, links among them, in what it writes.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _figure(data: Sequence[dict[str, Any]], *, height: int = 340, **layout: Any) -> Figure:
    margin = {"l": 70, "r": 20, "t": 20, "b": 55}
    whole = {"height": height, "margin": margin, "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"}}
    for name, axis in layout.items():
        layout[name] = {"automargin": True, **axis} if isinstance(axis, dict) else axis
    return {"data": list(data), "layout": {**whole, **layout}}
