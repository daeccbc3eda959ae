"""
The score in real use: precision at the base rate, what the judge took, and whether length alone is held.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store
from turngate.costing.records import CallEnd, CallStart
from turngate.lab.cases import Case
from turngate.lab.runs import Answered
from turngate.lab.scoring.score import score
from turngate.lab.scoring.text import score_text
from turngate.lab.statistics import wilson

from .scored_runs import (
    case,
    cases,
    half_right,
    of,
    right,
    run_of,
    run_on_disk,
    says,
)


def test_precision_at_a_given_base_rate() -> None:
    """
    Recall 1 and a quarter of clean turns held: where one turn in ten is faulty, 0.1 of 0.1 + 0.225 holds are right.
    """
    found = score(run_of(half_right), rates={"held": 0.1})
    held = found.labelled.held

    assert held.precision.value == pytest.approx(16 / 22)
    assert held.precision_in_use == pytest.approx(0.1 / (0.1 + 0.9 * 0.25))
    assert held.precision_in_use_interval is not None
    assert held.precision_in_use_interval.low < 0.1 / 0.325 < held.precision_in_use_interval.high
    assert of(found, "claim").precision_in_use is None


def test_a_judge_that_never_erred_may_still_err_in_use() -> None:
    """
    No false alarm in nine sessions leaves a third of them possible: the precision at a base rate is no certain 1.
    """
    held = score(run_of(right), rates={"held": 0.1}).labelled.held
    recall, false_alarms = wilson(9, 9).low, wilson(0, 9).high

    assert held.precision_in_use == 1
    assert held.precision_in_use_interval == pytest.approx((recall * 0.1 / (recall * 0.1 + false_alarms * 0.9), 1))


def test_the_random_sample_tells_the_base_rate() -> None:
    """
    From thirty labelled random turns up the run knows its base rate; a fault that they do not hold stays unknown.
    """
    drawn = [case(100 + n, ["claim"] if n < 3 else [], sample="random") for n in range(30)]
    found = score(run_of(right, cases() + drawn))
    fewer = score(run_of(right, cases() + drawn[:-1]))

    assert found.labelled.held.base_rate is not None
    assert found.labelled.held.base_rate.value == pytest.approx(0.1)
    assert found.labelled.held.base_rate.wilson == pytest.approx(wilson(3, 30))
    assert of(found, "opener").base_rate is None
    assert fewer.labelled.held.base_rate is None


def test_a_random_sample_that_is_labelled_in_part_tells_no_base_rate() -> None:
    """
    Somebody may have labelled the faulty ones first: what lacks is counted, and one label missing is enough.
    """
    drawn = [case(100 + n, (["claim"] if n < 3 else []) if n < 40 else None, sample="random") for n in range(41)]
    found = score(run_of(lambda one, repeat: says(one, repeat, *(one.labels or ())), cases() + drawn))

    assert found.labelled.held.base_rate is None
    assert (found.counts.random, found.counts.random_unlabelled) == (41, 1)
    assert "base rates: unknown (1 of 41 random cases have no label)\n" in score_text(found)


def test_both_tables_have_one_base_rate() -> None:
    """
    That of the whole random sample, of which the disputed ones are the faulty ones here.
    """
    drawn = [
        case(100 + n, ["claim"] if n < 6 else [], sample="random", disputed=n < 5, session=f"r{n}") for n in range(40)
    ]
    found = score(run_of(half_right, cases() + drawn))

    assert found.sure is not None
    assert found.sure.held.base_rate == found.labelled.held.base_rate
    assert found.sure.held.base_rate is not None
    assert found.sure.held.base_rate.value == pytest.approx(6 / 40)
    assert found.sure.held.precision_in_use_interval is not None


def test_a_given_rate_comes_before_the_sample() -> None:
    """
    What is asked for on the command line is what is used.
    """
    drawn = [case(100 + n, ["claim"] if n < 3 else [], sample="random") for n in range(30)]
    base = score(run_of(right, drawn), rates={"held": 0.5}).labelled.held.base_rate

    assert base is not None
    assert (base.value, base.source) == (0.5, "given")


def test_tokens_time_and_money_by_hand() -> None:
    """
    At a tenth of a cent a question and eight true catches in forty, a catch costs half a cent.
    """
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}

    def judge(one: Case, repeat: int) -> Answered:
        number = int(one.id[1:])
        faults = ["claim"] if number < 8 else []
        return says(one, repeat, *faults, raw_usage=usage, cost_usd=Decimal("0.001"), latency_ms=100 + number)

    found = score(run_of(judge), rates={"held": 0.1})

    assert (found.tokens.input, found.tokens.cache_read, found.tokens.output) == (4000, 3600, 200)
    assert (found.latency.n, found.latency.p50) == (40, 119.5)
    assert found.latency.p95 == pytest.approx(100 + 39 * 0.95)
    assert found.costs.usd == Decimal("0.040")
    assert found.costs.usd_per_case == Decimal("0.001")
    assert found.costs.usd_per_true_catch == Decimal("0.005")
    # Of a hundred turns ten are faulty, of which it finds half.
    assert found.costs.usd_per_true_catch_in_use == Decimal("0.02")


def test_unknown_costs_are_unknown() -> None:
    """
    An answer without a price is counted, and never free.
    """
    none = score(run_of(right))
    some = score(run_of(lambda one, repeat: says(one, repeat, cost_usd=Decimal(1) if one.id < "c010" else None)))

    assert (none.costs.usd, none.costs.usd_per_case, none.costs.unknown) == (None, None, 40)
    assert (some.costs.usd_per_case, some.costs.known, some.costs.unknown) == (1, 10, 30)
    assert some.costs.usd_per_true_catch is None
    assert "cost: unknown" in score_text(none)


def test_what_failed_and_was_paid_counts(tmp_path: Path) -> None:
    """
    By the run's ledger: forty answers at a tenth of a cent, ten tries before them that are no answer any more, and one that never said.
    """
    run = run_on_disk(
        tmp_path, lambda one, repeat: right(one, repeat).model_copy(update={"cost_usd": Decimal("0.001")})
    )
    with open_ledger_store(tmp_path) as store:
        ledger = Ledger(store)
        start = CallStart(datetime(2026, 1, 1, tzinfo=UTC), "anthropic", "a-model")
        for answer in run.answers.values():
            asked = start._replace(decision_id=f"{answer.hash}-r{answer.repeat}")
            ledger.settle_call("", asked, CallEnd("answered", cost_usd=Decimal("0.001")))
        for _ in range(10):
            ledger.settle_call("", start, CallEnd("timeout", cost_usd=Decimal("0.001")))
        ledger.open_call(start)

    costs = score(run).costs

    assert (costs.usd, costs.unknown, costs.usd_per_case) == (Decimal("0.050"), 1, Decimal("0.00125"))
    assert costs.usd_per_true_catch == Decimal("0.003125")


def test_length_of_the_reply() -> None:
    """
    A judge that holds the longer half is seen: quarters of ten, the upper two held, rank correlation near 0.87.
    """
    found = score(run_of(lambda one, repeat: says(one, repeat, *(["claim"] if int(one.id[1:]) >= 20 else []))))
    lengths = found.lengths

    assert [quarter.cases for quarter in lengths.quarters] == [10, 10, 10, 10]
    assert [quarter.held.value for quarter in lengths.quarters] == [0, 0, 1, 1]
    assert lengths.rho == pytest.approx(math.sqrt(3) / 2, abs=0.01)
    assert lengths.p is not None
    assert lengths.p < 1e-6
