"""
The metrics: what one process decided, asked and paid since it started, as Prometheus reads it.

Counting needs the standard library only; prometheus_client, which takes 100 ms to import, is reached when somebody first
reads. No label names a session, a user or a path, and each has a bounded number of values. This is the one file that
imports prometheus_client.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from decimal import Context, Decimal
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from .latency import Histogram, LatestDurations, Percentiles
from .outcomes import CALL_OUTCOMES, OUTCOMES
from .usage import Usage

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from .records import CallEnd, CallStart, DecisionLine

MOST_MODELS: Final = 50
MODEL_LIMIT: Final = 100
OTHER: Final = "other"
"""The label of an event that is not known, and of each model after the fiftieth."""

JUDGE_BOUNDS_S: Final = (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 20, 30)
HOOK_BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16)

_EXACT: Final = Context(prec=100)
"""Beyond what money can be: nothing is lost before the sum becomes a float."""

OPENMETRICS: Final = "application/openmetrics-text"


class Summary(NamedTuple):
    """
    The same in short, for a person.
    """

    decisions: int
    calls: int
    in_flight: int
    hooks: Mapping[str, Percentiles]
    """By event, of those that came: a check before a tool is far quicker than a stop, and far more frequent."""
    judge: Percentiles


class Metrics:
    """
    The counts of one process, safe to share between threads. What counts raises nothing for what is counted.

    `events` are those that have a label of their own. `breaker_is_open` and `owed_lines` are asked at each reading; what
    fails or is not given is left out.
    """

    def __init__(
        self,
        version: str,
        *,
        events: Iterable[str],
        started_at: datetime,
        breaker_is_open: Callable[[], bool] | None = None,
        owed_lines: Callable[[], int] | None = None,
    ) -> None:
        self._version: Final = version
        self._started_at: Final = started_at
        self._breaker_is_open: Final = breaker_is_open
        self._owed_lines: Final = owed_lines
        self._lock: Final = Lock()
        self._events: Final = {event: _EventCounts() for event in (*events, OTHER)}
        self._models: Final[dict[str, _ModelCounts]] = {}
        self._in_flight = 0
        self._latest_calls: Final = LatestDurations()

    def decision(self, line: DecisionLine) -> None:
        """
        Count a decision, whether or not the ledger could take it.
        """
        with self._lock:
            counts = self._events.get(line.event) or self._events[OTHER]
            _count(counts.decisions, line.outcome)
            if line.hook_ms is not None:
                counts.duration.add(line.hook_ms / 1000)
                counts.latest.add(line.hook_ms / 1000)

    @contextmanager
    def in_flight(self) -> Generator[None]:
        """
        Count a try as under way while the block runs, however it ends.
        """
        with self._lock:
            self._in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                self._in_flight -= 1

    def call_ended(self, start: CallStart, end: CallEnd) -> None:
        """
        Count a try with what it took.
        """
        with self._lock:
            self._counts_of(start.model).add(start, end)
            if end.latency_ms is not None:
                self._latest_calls.add(end.latency_ms / 1000)

    def summary(self) -> Summary:
        """
        Give the sums, and how long the latest thousand decisions of each event and the latest thousand tries took.
        """
        with self._lock:
            latest = {event: counts.latest.percentiles() for event, counts in self._events.items()}
            return Summary(
                sum(sum(counts.decisions.values()) for counts in self._events.values()),
                sum(sum(counts.calls.values()) for counts in self._models.values()),
                self._in_flight,
                {event: found for event, found in latest.items() if found.p50_s is not None},
                self._latest_calls.percentiles(),
            )

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """
        Give all metrics, and their content type: OpenMetrics where the `Accept` header names it, else Prometheus's own.

        The first time it takes 100 ms, unless `warm` was called.
        """
        from prometheus_client import CollectorRegistry, ProcessCollector
        from prometheus_client.exposition import choose_encoder

        registry = CollectorRegistry()
        registry.register(self)
        ProcessCollector(registry=registry)
        # The library would repeat parts of the header in its answer, and raises for a version that is no number.
        encode, content_type = choose_encoder(OPENMETRICS if OPENMETRICS in accept else "")
        return encode(registry), content_type

    def collect(self) -> Iterable[Metric]:
        """
        Give the metric families, as a registry asks for them: all of one moment.
        """
        gauges = self._asked_gauges()
        with self._lock:
            return [*gauges, *self._process_families(), *self._event_families(), *self._model_families()]

    def _counts_of(self, model: str) -> _ModelCounts:
        label = "".join(filter(str.isprintable, model[:MODEL_LIMIT])) or "unknown"
        if label not in self._models and len(self._models) >= MOST_MODELS:
            label = OTHER
        return self._models.setdefault(label, _ModelCounts())

    def _asked_gauges(self) -> list[Metric]:
        # Outside the lock: they may wait for a store, and counting must not wait with them.
        asked = {
            "turngate_breaker_open": ("Whether calls to a judge's endpoint are held back.", self._breaker_is_open),
            "turngate_ledger_owed_lines": ("Lines that the ledger could not be given yet.", self._owed_lines),
        }
        gauges: list[Metric] = []
        for name, (what, ask) in asked.items():
            with suppress(Exception):  # other parts of the process: they may fail, the reading may not
                gauges += [_gauge(name, what, float(ask()))] if ask else []
        return gauges

    def _process_families(self) -> list[Metric]:
        from prometheus_client.metrics_core import InfoMetricFamily

        build = InfoMetricFamily("turngate_build", "The version that runs.", {"version": self._version})
        return [
            build,
            _gauge("turngate_start_time_seconds", "When the process started.", self._started_at.timestamp()),
            _gauge("turngate_judge_in_flight", "Tries at a judge that are under way.", self._in_flight),
        ]

    def _event_families(self) -> list[Metric]:
        events = self._events.items()
        decided = {(event, outcome): count for event, counts in events for outcome, count in counts.decisions.items()}
        durations = {event: counts.duration for event, counts in events}
        return [
            _counter("turngate_decisions", "Decisions of the gate.", ("event", "outcome"), decided),
            _histogram(
                "turngate_hook_duration_seconds",
                "From the start of the hook's process to the decision.",
                "event",
                durations,
            ),
        ]

    def _model_families(self) -> list[Metric]:
        models = self._models.items()
        by_outcome, by_kind, alone = ("model", "outcome"), ("model", "kind"), ("model",)
        calls = {(model, outcome): count for model, counts in models for outcome, count in counts.calls.items()}
        unknown = {(model, outcome): n for model, counts in models for outcome, n in counts.unknown_costs.items()}
        tokens = {(model, kind): count for model, counts in models for kind, count in counts.tokens.items()}
        retries = {(model,): counts.retries for model, counts in models}
        costs = {(model,): counts.cost_usd for model, counts in models}
        durations = {model: counts.duration for model, counts in models}
        return [
            _counter("turngate_judge_calls", "Tries at a judge that ended.", by_outcome, calls),
            _counter("turngate_judge_retries", "Tries after the first of a judgement.", alone, retries),
            _counter("turngate_judge_tokens", "Tokens by class; thinking is part of output.", by_kind, tokens),
            _counter("turngate_judge_cost_usd", "What is known of the cost, in US dollars.", alone, costs),
            _counter(
                "turngate_judge_calls_unknown_cost", "Tries whose usage or price is unknown.", by_outcome, unknown
            ),
            _histogram("turngate_judge_duration_seconds", "From sending a try to its end.", "model", durations),
        ]


def warm() -> None:
    """
    Import what the first reading needs; slow, so call it in a thread.
    """
    import prometheus_client as _  # noqa: F401


class _EventCounts:
    """
    All outcomes are there from the start: Prometheus cannot see the first step of a series that begins above 0.
    """

    def __init__(self) -> None:
        self.decisions: Final[dict[str, int]] = dict.fromkeys(OUTCOMES, 0)
        self.duration: Final = Histogram(HOOK_BOUNDS_S)
        self.latest: Final = LatestDurations()


class _ModelCounts:
    def __init__(self) -> None:
        self.calls: Final[dict[str, int]] = dict.fromkeys(CALL_OUTCOMES, 0)
        self.unknown_costs: Final[dict[str, int]] = dict.fromkeys(CALL_OUTCOMES, 0)
        self.tokens: Final = {_kind(field): 0 for field in Usage._fields}
        self.retries = 0
        self.cost_usd = Decimal(0)
        self.duration: Final = Histogram(JUDGE_BOUNDS_S)

    def add(self, start: CallStart, end: CallEnd) -> None:
        _count(self.calls, end.outcome)
        self.retries += start.try_number > 1
        for field, count in end.usage._asdict().items() if end.usage else ():
            self.tokens[_kind(field)] += count
        # A counter may not fall, and would never recover from a NaN.
        if end.cost_usd is not None and end.cost_usd.is_finite() and end.cost_usd >= 0:
            self.cost_usd = _EXACT.add(self.cost_usd, end.cost_usd)
        else:
            _count(self.unknown_costs, end.outcome)
        if end.latency_ms is not None:
            self.duration.add(end.latency_ms / 1000)


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _kind(field: str) -> str:
    return field.removesuffix("_tokens")


def _gauge(name: str, what: str, value: float) -> Metric:
    from prometheus_client.metrics_core import GaugeMetricFamily

    return GaugeMetricFamily(name, what, value)


def _counter(name: str, what: str, labels: tuple[str, ...], values: Mapping[tuple[str, ...], int | Decimal]) -> Metric:
    from prometheus_client.metrics_core import CounterMetricFamily

    family = CounterMetricFamily(name, what, labels=labels)
    for of, value in values.items():
        family.add_metric(of, float(value))
    return family


def _histogram(name: str, what: str, label: str, durations: Mapping[str, Histogram]) -> Metric:
    from prometheus_client.metrics_core import HistogramMetricFamily

    family = HistogramMetricFamily(name, what, labels=(label,))
    for of, duration in durations.items():
        family.add_metric([of], [(_bound(at), n) for at, n in duration.cumulative()], duration.sum_s)
    return family


def _bound(seconds: float) -> str:
    return str(float(seconds)) if isfinite(seconds) else "+Inf"
