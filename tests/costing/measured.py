"""
Metrics to count into, and what prometheus_client's own parser reads of what they say.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from turngate.costing.metrics import Metrics
from turngate.costing.records import DecisionLine

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
EVENTS = ("Stop", "SubagentStop", "PreToolUse")

ODD_MODELS = {
    'say "hi"': 'say "hi"',
    "back\\slash": "back\\slash",
    "line\nbreak": "linebreak",
    "tab\tand\x00nul\x1b[31m": "tabandnul[31m",
    "} 1\nturngate_forged_total 1": "} 1turngate_forged_total 1",
    "\ud800lone": "lone",
    "名前-é-😀": "名前-é-😀",
    "\u202egnp.exe": "gnp.exe",
    "x" * 5000: "x" * 100,
    "": "unknown",
    "\n": "unknown",
}
"""Names of models that would break a line, a label or an encoding, and the label that each becomes."""


def measured(**options: Any) -> Metrics:
    return Metrics("0.1.0", events=EVENTS, started_at=NOW, **options)


def a_decision(outcome: str = "pass_clean", event: str = "Stop", **fields: Any) -> DecisionLine:
    return DecisionLine(NOW, event, outcome, **fields)  # pyright: ignore[reportArgumentType]


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """
    Each sample by its name and labels; one that stands there twice is an error.
    """
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in text_string_to_metric_families(metrics.exposition()[0].decode()):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found
            found[key] = sample.value
    return found


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return samples(metrics).get((name, frozenset(labels.items())))
