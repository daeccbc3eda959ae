"""
The metrics as a reader of `/metrics` gets them: read back by prometheus_client's parser, expected by hand.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics

from turngate.costing.metrics import Metrics
from turngate.costing.records import CallEnd
from turngate.costing.usage import Usage

from .ledger_lines import a_start
from .measured import NOW, ODD_MODELS, a_decision, measured, samples, value

ROOT = Path(__file__).parents[2]
MODEL = "claude-sonnet-5-5"

# design.md, section 9, and what was added to it.
LABELS = {
    "turngate_decisions_total": {"event", "outcome"},
    "turngate_judge_calls_total": {"model", "outcome"},
    "turngate_judge_tokens_total": {"model", "kind"},
    "turngate_judge_cost_usd_total": {"model"},
    "turngate_judge_duration_seconds_bucket": {"model", "le"},
    "turngate_judge_duration_seconds_count": {"model"},
    "turngate_judge_duration_seconds_sum": {"model"},
    "turngate_hook_duration_seconds_bucket": {"event", "le"},
    "turngate_hook_duration_seconds_count": {"event"},
    "turngate_hook_duration_seconds_sum": {"event"},
    "turngate_judge_in_flight": set[str](),
    "turngate_build_info": {"version"},
    "turngate_judge_retries_total": {"model"},
    "turngate_judge_calls_unknown_cost_total": {"model", "outcome"},
    "turngate_breaker_open": set[str](),
    "turngate_ledger_owed_lines": set[str](),
    "turngate_start_time_seconds": set[str](),
}


def call(metrics: Metrics, model: str = MODEL, *, outcome: Any = "answered", try_number: int = 1, **end: Any) -> None:
    metrics.call_ended(a_start(model=model, try_number=try_number), CallEnd(outcome, **end))


def test_names_and_labels_are_those_of_the_contract() -> None:
    """
    Each metric has its name and its labels; nothing of a session, a user or a path, and nothing else of ours.
    """
    metrics = measured(breaker_is_open=lambda: True, owed_lines=lambda: 3)
    metrics.decision(a_decision(hook_ms=1, session_id="s", project="/p", transcript_path="/t"))
    call(metrics, latency_ms=1)

    found: dict[str, set[str]] = {}
    for name, labels in samples(metrics):
        found.setdefault(name, set()).update(label for label, _ in labels)

    assert {name: labels for name, labels in found.items() if name.startswith("turngate_")} == LABELS


def test_a_decision_is_counted_once_by_event_and_outcome() -> None:
    """
    Two held stops and a passed one; how long they took is counted by event.
    """
    metrics = measured()
    for outcome, hook_ms in (("block_verdict", 1200), ("block_verdict", 3), ("pass_clean", None)):
        metrics.decision(a_decision(outcome, hook_ms=hook_ms))

    assert value(metrics, "turngate_decisions_total", event="Stop", outcome="block_verdict") == 2
    assert value(metrics, "turngate_decisions_total", event="Stop", outcome="pass_clean") == 1
    assert value(metrics, "turngate_hook_duration_seconds_count", event="Stop") == 2
    assert value(metrics, "turngate_hook_duration_seconds_sum", event="Stop") == pytest.approx(1.203)
    assert value(metrics, "turngate_hook_duration_seconds_bucket", event="Stop", le="0.0025") == 0
    assert value(metrics, "turngate_hook_duration_seconds_bucket", event="Stop", le="0.005") == 1
    assert value(metrics, "turngate_hook_duration_seconds_bucket", event="Stop", le="2.0") == 2
    assert value(metrics, "turngate_hook_duration_seconds_bucket", event="Stop", le="+Inf") == 2


def test_each_outcome_is_there_before_it_happens() -> None:
    """
    A series that begins at 0 lets Prometheus see the first state error, which `increase` would miss otherwise.
    """
    metrics = measured()
    call(metrics)

    assert value(metrics, "turngate_decisions_total", event="Stop", outcome="pass_state_error") == 0
    assert value(metrics, "turngate_judge_calls_total", model=MODEL, outcome="rejected") == 0
    assert value(metrics, "turngate_judge_calls_unknown_cost_total", model=MODEL, outcome="refused") == 0


def test_a_call_adds_its_tokens_by_class_and_its_cost() -> None:
    """
    Two calls: classes add up one by one, the cost exactly.
    """
    metrics = measured()
    call(metrics, usage=Usage(106, 44, 12, 925, 7, 3), cost_usd=Decimal("0.1"), latency_ms=1800)
    call(metrics, usage=Usage(106, 40, 0, 0, 0, 925), cost_usd=Decimal("0.2"), latency_ms=700)

    tokens = {
        dict(labels)["kind"]: count
        for (name, labels), count in samples(metrics).items()
        if name.endswith("tokens_total")
    }
    assert tokens == {
        "input": 212,
        "output": 84,
        "thinking": 12,
        "cache_write_5m": 925,
        "cache_write_1h": 7,
        "cache_read": 928,
    }
    assert value(metrics, "turngate_judge_cost_usd_total", model=MODEL) == 0.3
    assert value(metrics, "turngate_judge_calls_total", model=MODEL, outcome="answered") == 2
    assert value(metrics, "turngate_judge_duration_seconds_sum", model=MODEL) == 2.5
    assert value(metrics, "turngate_judge_duration_seconds_bucket", model=MODEL, le="1.0") == 1


@pytest.mark.parametrize(
    "cost",
    [
        pytest.param(None, id="unknown"),
        pytest.param(Decimal("NaN"), id="nan"),
        pytest.param(Decimal("sNaN"), id="signalling"),
        pytest.param(Decimal("Infinity"), id="endless"),
        pytest.param(Decimal("-0.01"), id="below-0"),
    ],
)
def test_a_cost_that_is_not_known_is_counted_and_not_added(cost: Decimal | None) -> None:
    """
    An unknown cost is no 0, and one that is no amount cannot spoil the sum.
    """
    metrics = measured()
    call(metrics, cost_usd=Decimal("0.5"))
    call(metrics, outcome="timeout", cost_usd=cost)

    assert value(metrics, "turngate_judge_cost_usd_total", model=MODEL) == 0.5
    assert value(metrics, "turngate_judge_calls_unknown_cost_total", model=MODEL, outcome="timeout") == 1
    assert value(metrics, "turngate_judge_calls_unknown_cost_total", model=MODEL, outcome="answered") == 0
    assert value(metrics, "turngate_judge_tokens_total", model=MODEL, kind="input") == 0


def test_tries_after_the_first_are_retries() -> None:
    """
    One judgement in three tries and one in one try are four calls and two retries.
    """
    metrics = measured()
    for try_number in (1, 2, 3, 1):
        call(metrics, try_number=try_number)

    assert value(metrics, "turngate_judge_retries_total", model=MODEL) == 2
    assert value(metrics, "turngate_judge_calls_total", model=MODEL, outcome="answered") == 4


def test_tries_under_way_are_counted_however_they_end() -> None:
    """
    The gauge returns to 0 after an answer, an error, a cancelled task, and one that was given up and forgotten.
    """
    metrics = measured()

    async def a_try(error: Exception | None = None, *, for_ever: bool = False) -> None:
        with metrics.in_flight():
            if error:
                raise error
            if for_ever:
                await asyncio.Event().wait()

    async def four_tries() -> None:
        cut = asyncio.ensure_future(a_try(for_ever=True))
        forgotten = a_try(for_ever=True)
        forgotten.send(None)
        await asyncio.sleep(0)
        assert value(metrics, "turngate_judge_in_flight") == 2
        assert metrics.summary().in_flight == 2
        cut.cancel()
        forgotten.close()
        await asyncio.gather(a_try(), a_try(OSError()), cut, return_exceptions=True)

    asyncio.run(four_tries())

    assert value(metrics, "turngate_judge_in_flight") == 0


@pytest.mark.parametrize(
    ("model", "label"),
    [pytest.param(model, label, id=str(number)) for number, (model, label) in enumerate(ODD_MODELS.items())],
)
def test_an_odd_model_name_is_one_clean_label(model: str, label: str) -> None:
    """
    A name that came from anywhere forges no line and breaks no encoding.
    """
    metrics = measured()
    call(metrics, model)

    assert model_labels(metrics) == {label}


@given(st.text(alphabet=st.characters(codec=None), max_size=200), st.text(alphabet=st.characters(codec=None)))
def test_any_text_can_be_a_model_or_an_event(model: str, event: str) -> None:
    """
    Whatever stands there, the metrics can be read, and the call and the decision are in them.
    """
    metrics = measured()
    call(metrics, model)
    metrics.decision(a_decision(event=event))

    found = samples(metrics)
    assert sum(n for (name, _), n in found.items() if name == "turngate_judge_calls_total") == 1
    assert sum(n for (name, _), n in found.items() if name == "turngate_decisions_total") == 1
    assert all(len(label) <= 100 and label.isprintable() for label in model_labels(metrics))


def test_the_number_of_models_is_bounded() -> None:
    """
    After fifty models all new ones are `other`, the old ones keep their own, and no call is lost.
    """
    metrics = measured()
    for number in [*range(200), 3]:
        call(metrics, f"model-{number}")

    assert model_labels(metrics) == {*(f"model-{number}" for number in range(50)), "other"}
    assert value(metrics, "turngate_judge_calls_total", model="model-3", outcome="answered") == 2
    assert value(metrics, "turngate_judge_calls_total", model="other", outcome="answered") == 150


def test_the_number_of_events_is_bounded() -> None:
    """
    An event without a label of its own is `other`, whatever it is called.
    """
    metrics = measured()
    for event in ("Stop", "Notification", "unknown", "", "x" * 10_000):
        metrics.decision(a_decision("pass_not_a_turn", event))

    events = {dict(labels)["event"] for (name, labels) in samples(metrics) if name == "turngate_decisions_total"}
    assert events == {"Stop", "SubagentStop", "PreToolUse", "other"}
    assert value(metrics, "turngate_decisions_total", event="other", outcome="pass_not_a_turn") == 4


def test_counting_never_raises_for_an_unknown_outcome() -> None:
    """
    What the ledger would refuse is counted under its own name.
    """
    metrics = measured()
    metrics.decision(a_decision("pass_new"))
    call(metrics, outcome="new")

    assert value(metrics, "turngate_decisions_total", event="Stop", outcome="pass_new") == 1
    assert value(metrics, "turngate_judge_calls_total", model=MODEL, outcome="new") == 1


def test_threads_lose_no_count() -> None:
    """
    Eight threads count while a ninth reads; the sums are exact.
    """
    metrics = measured()
    done = threading.Event()

    def count(_: int) -> None:
        for _ in range(500):
            metrics.decision(a_decision(hook_ms=1))
            with metrics.in_flight():
                call(metrics, cost_usd=Decimal("0.001"), latency_ms=1)

    def read() -> list[float | None]:
        seen: list[float | None] = []
        while not done.is_set():
            seen.append(value(metrics, "turngate_decisions_total", event="Stop", outcome="pass_clean"))
        return seen

    with ThreadPoolExecutor(9) as threads:
        reader = threads.submit(read)
        list(threads.map(count, range(8)))
        done.set()

    assert reader.result() == sorted(n for n in reader.result() if n is not None)
    assert value(metrics, "turngate_decisions_total", event="Stop", outcome="pass_clean") == 4000
    assert value(metrics, "turngate_judge_calls_total", model=MODEL, outcome="answered") == 4000
    assert value(metrics, "turngate_judge_cost_usd_total", model=MODEL) == 4
    assert value(metrics, "turngate_judge_in_flight") == 0


def test_what_is_asked_at_each_reading_may_fail() -> None:
    """
    A gauge whose source fails is left out; the others are there.
    """

    def fails() -> int:
        raise OSError("the database is locked")

    metrics = measured(breaker_is_open=lambda: True, owed_lines=fails)

    assert value(metrics, "turngate_breaker_open") == 1
    assert value(metrics, "turngate_ledger_owed_lines") is None
    assert value(metrics, "turngate_start_time_seconds") == NOW.timestamp()


def test_counting_does_not_wait_for_a_slow_reading() -> None:
    """
    While the breaker is asked, which may wait for a store, a decision is counted at once.
    """
    asked, counted = threading.Event(), threading.Event()

    def slow() -> bool:
        asked.set()
        return counted.wait(10)

    metrics = measured(breaker_is_open=slow)
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(value, metrics, "turngate_breaker_open")
        assert asked.wait(10)
        metrics.decision(a_decision())
        counted.set()

        assert reading.result() == 1


def test_counting_imports_nothing_heavy() -> None:
    """
    prometheus_client is imported when somebody reads, or when `warm` is called.
    """
    program = (
        "import sys\n"
        "from datetime import UTC, datetime\n"
        "from turngate.costing.metrics import Metrics, warm\n"
        "from turngate.costing.records import CallEnd, CallStart, DecisionLine\n"
        "now = datetime.now(UTC)\n"
        "metrics = Metrics('0.1.0', events=['Stop'], started_at=now)\n"
        "metrics.decision(DecisionLine(now, 'Stop', 'pass_clean', hook_ms=1))\n"
        "metrics.call_ended(CallStart(now, 'anthropic', 'm'), CallEnd('answered'))\n"
        "with metrics.in_flight(): metrics.summary()\n"
        "assert not [n for n in sys.modules if n.startswith(('prometheus_client', 'asyncio', 'http'))]\n"
        "warm()\n"
        "assert 'prometheus_client' in sys.modules\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stderr) == (0, "")


def test_openmetrics_is_given_to_who_asks_for_it() -> None:
    """
    The header that Prometheus sends gets OpenMetrics with its end mark; no header gets the plain format.
    """
    metrics = measured()
    call(metrics, "} 1\nturngate_forged_total 1")
    sent = "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

    body, content_type = metrics.exposition(sent)

    assert content_type == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = {family.name: family.type for family in read_openmetrics(body.decode())}
    assert families["turngate_judge_cost_usd"] == "counter"
    assert families["turngate_build"] == "info"
    assert metrics.exposition()[1] == "text/plain; version=0.0.4; charset=utf-8"


@given(st.one_of(st.text(), st.from_regex(r"application/openmetrics-text; ?version=.{0,5}; ?escaping=.{0,5}")))
def test_no_header_breaks_the_reading_or_comes_back(accept: str) -> None:
    """
    Whatever the header says, the content type is one of two.
    """
    assert measured().exposition(accept)[1] in (
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
        "text/plain; version=0.0.4; charset=utf-8",
    )


def test_the_process_tells_its_memory_and_descriptors() -> None:
    """
    The standard metrics of a process are there, where the system has them.
    """
    names = {name for name, _ in samples(measured())}

    assert {"process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"} <= names


def test_the_summary_has_sums_and_percentiles() -> None:
    """
    For `turngate status`: counts over all events and models, and the middle and slow end of the latest, stops by themselves.
    """
    metrics = measured()
    assert metrics.summary() == (0, 0, 0, {}, (None, None))

    for number in range(1, 101):
        metrics.decision(a_decision(hook_ms=number * 10))
        metrics.decision(a_decision("jobs_pass", "PreToolUse", hook_ms=2))
    metrics.decision(a_decision(event="SubagentStop"))
    call(metrics, latency_ms=1800)
    call(metrics, "another", outcome="timeout", latency_ms=8000)

    by_event = {"Stop": (0.5, 0.95), "PreToolUse": (0.002, 0.002)}
    assert metrics.summary() == (201, 2, 0, by_event, (1.8, 8.0))


@given(st.lists(st.sampled_from(["pass_clean", "block_verdict", "pass_no_judge"]), max_size=30))
def test_every_decision_is_counted_exactly_once(outcomes: list[str]) -> None:
    """
    The counts are those of the decisions.
    """
    metrics = measured()
    for outcome in outcomes:
        metrics.decision(a_decision(outcome))

    counted = {
        dict(labels)["outcome"]: n
        for (name, labels), n in samples(metrics).items()
        if name == "turngate_decisions_total" and n
    }
    assert counted == Counter(outcomes)


def model_labels(metrics: Metrics) -> set[str]:
    return {label for _, labels in samples(metrics) for key, label in labels if key == "model"}


def test_the_page_on_monitoring_names_every_metric_and_rule() -> None:
    """
    What can be read is explained once, and nothing else.
    """
    page = (ROOT / "docs/monitoring.md").read_text()
    rules = (ROOT / "costing/grafana/alerts.yml").read_text()
    rows = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)

    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in LABELS}
    assert sorted(rows) == sorted([*families, *re.findall(r"- (?:record|alert): (\S+)", rules)])
