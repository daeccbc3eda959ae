"""
The score: a judge gets what it deserves, and what cannot be told is unknown.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.lab.cases import Case
from turngate.lab.errors import LabError, NotDecidable
from turngate.lab.runs import Answered
from turngate.lab.scoring.score import as_json, score
from turngate.lab.scoring.text import score_text
from turngate.lab.statistics import f1_wilson, wilson

from .scored_runs import (
    CLAIMS,
    CLEAN,
    FAULTS,
    OPENERS,
    Judge,
    case,
    cases,
    fails,
    of,
    right,
    run_of,
    run_on_disk,
    says,
)


def test_a_judge_that_always_says_clean(tmp_path: Path) -> None:
    """
    It finds nothing and blocks nobody; its precision is unknown, neither 0 nor 1.
    """
    found = score(run_on_disk(tmp_path, lambda one, repeat: says(one, repeat)))
    held = found.labelled.held

    assert (held.tp, held.fp, held.fn, held.tn) == (0, 0, CLAIMS + OPENERS, CLEAN)
    assert (held.recall.value, held.false_alarms.value, held.f1.value) == (0, 0, 0)
    assert held.precision.value is None
    assert found.grounding.value is None
    assert "unknown (never named)" in score_text(found)


def test_a_judge_that_always_says_claim(tmp_path: Path) -> None:
    """
    It finds each claim, blocks every clean turn, and its precision is no more than the share of claims.
    """
    found = score(run_on_disk(tmp_path, lambda one, repeat: says(one, repeat, "claim")))
    claim, held = of(found, "claim"), found.labelled.held

    assert claim.precision.value == pytest.approx(CLAIMS / 40)
    assert held.precision.value == pytest.approx((CLAIMS + OPENERS) / 40)
    assert claim.recall.value == held.recall.value == held.false_alarms.value == 1
    assert of(found, "opener").recall.value == 0
    assert found.grounding.value == 1


def test_a_judge_that_quotes_what_is_not_there(tmp_path: Path) -> None:
    """
    Each finding is dropped: no quote stands in its reply, and nothing is found.
    """
    found = score(run_on_disk(tmp_path, lambda one, repeat: says(one, repeat, "claim", quote="I deployed it.")))

    assert found.grounding.value == 0
    assert found.grounding.out_of == 40
    assert found.labelled.held.recall.value == 0
    assert found.labelled.held.false_alarms.value == 0


def test_each_finding_is_looked_up() -> None:
    """
    Of two findings in an answer, one with a quote that stands there and one with none, half is grounded, and the turn is held.
    """

    def judge(one: Case, repeat: int) -> Answered:
        findings = [
            {"fault": "claim", "quote": quote, "reason": "No test ran."}
            for quote in ("all tests pass", "I deployed it.")
        ]
        return says(one, repeat, text=json.dumps({"findings": findings}))

    found = score(run_of(judge))

    assert (found.grounding.hits, found.grounding.out_of) == (40, 80)
    assert found.labelled.held.recall.value == 1


def test_a_judge_that_is_right() -> None:
    """
    It has every mark, and intervals that say how few cases show it.
    """
    found = score(run_of(right))
    held = found.labelled.held

    assert held.precision.value == held.recall.value == held.f1.value == 1
    assert held.recall.wilson == pytest.approx(wilson(16, 16))
    # All nine sessions agree, which is what nine cases would show.
    assert held.recall.clustered == pytest.approx(wilson(9, 9))
    assert held.f1.wilson == pytest.approx(f1_wilson(16, 0, 0))


def test_marks_by_hand() -> None:
    """
    Eight of twelve claims found, three clean turns held: precision 8/11, recall 8/12, false blocks 3/24.
    """

    def judge(one: Case, repeat: int) -> Answered:
        number = int(one.id[1:])
        return says(one, repeat, *(["claim"] if number < 8 or 16 <= number < 19 else []))

    found = score(run_of(judge))
    claim = of(found, "claim")

    assert (claim.tp, claim.fp, claim.fn, claim.tn) == (8, 3, 4, 25)
    assert claim.precision.value == pytest.approx(8 / 11)
    assert claim.recall.value == pytest.approx(8 / 12)
    assert claim.f1.value == pytest.approx(16 / 23)
    assert claim.precision.wilson == pytest.approx(wilson(8, 11))
    assert found.labelled.held.false_alarms.value == pytest.approx(3 / 24)
    assert found.labelled.held.recall.value == pytest.approx(8 / 16)


def test_repeats_count_as_shares_of_one_case() -> None:
    """
    A case held in one of two repeats is half a hold; asking more often makes no interval narrower.
    """
    found = score(run_of(lambda one, repeat: right(one, repeat) if repeat else says(one, repeat), repeats=2))
    held = found.labelled.held

    assert (held.tp, held.fn, held.tn) == (8, 8, CLEAN)
    assert held.recall.wilson == pytest.approx(wilson(8, 16))
    assert found.flips.held.value == pytest.approx(16 / 40)
    assert found.flips.faults["claim"].value == pytest.approx(CLAIMS / 40)
    assert found.labelled.pass_hat == pytest.approx(((24 + 8) / 40, 24 / 40))


def test_without_repeats_flips_are_unknown() -> None:
    """
    What was asked once may or may not be answered the same way again.
    """
    found = score(run_of(right))

    assert found.flips.held.value is None
    assert found.labelled.pass_hat == (1,)


def test_figures_of_sure_cases_stand_apart() -> None:
    """
    Disputed labels and those of low confidence count once with all the others, and not among the sure ones.
    """
    unsure = [case(100, ["claim"], disputed=True), case(101, ["claim"], confidence="low")]
    found = score(
        run_of(lambda one, repeat: right(one, repeat) if one.is_sure else says(one, repeat), cases() + unsure)
    )

    assert found.sure is not None
    assert (found.labelled.cases, found.sure.cases) == (42, 40)
    assert found.labelled.held.recall.value == pytest.approx(16 / 18)
    assert found.sure.held.recall.value == 1
    assert {trust.confidence: trust.right.value for trust in found.trust} == {
        "high": pytest.approx(40 / 41),
        "medium": None,
        "low": 0,
    }


def test_unlabelled_cases_are_left_out_and_counted() -> None:
    """
    What nobody has labelled is neither clean nor faulty.
    """
    found = score(run_of(lambda one, repeat: says(one, repeat, "claim"), [*cases(), case(100, None), case(101, None)]))

    assert (found.counts.cases, found.counts.unlabelled, found.labelled.cases) == (42, 2, 40)
    assert found.labelled.held.false_alarms.out_of == CLEAN
    assert "2 without labels" in score_text(found)


def test_unlabelled_cases_do_not_thin_out_failures() -> None:
    """
    One of forty labelled questions failed, which is too many, though it is one of a hundred and forty in all.
    """
    unlabelled = [case(100 + n, None) for n in range(100)]

    with pytest.raises(NotDecidable, match="1 of 40 labelled questions have no verdict"):
        score(
            run_of(
                lambda one, repeat: fails(one, repeat) if one.id == "c003" else right(one, repeat), cases() + unlabelled
            )
        )


def test_a_fault_named_held_is_refused() -> None:
    """
    That is the name of any fault.
    """
    run = run_of(right)
    run = run._replace(manifest=run.manifest.model_copy(update={"faults": (*FAULTS, "held")}))

    with pytest.raises(LabError, match="a fault named 'held'"):
        score(run)


def test_one_failure_in_a_hundred_is_borne(tmp_path: Path) -> None:
    """
    One question of a hundred may fail: its case counts by its other repeats; two of a hundred may not.
    """
    some = cases()[:20]

    def judge(failures: int, outcome: str = "error") -> Judge:
        return lambda one, repeat: (
            fails(one, repeat, outcome) if repeat == 0 and int(one.id[1:]) < failures else right(one, repeat)
        )

    found = score(run_of(judge(1), some, repeats=5))

    assert (found.counts.errors, found.labelled.cases, found.labelled.pass_hat_cases) == (1, 20, 19)
    assert found.labelled.held.recall.value == 1
    late = score(run_of(judge(1, "timeout"), some, repeats=5))

    assert late.counts.errors == 1
    with pytest.raises(NotDecidable, match="2 of 100"):
        score(run_of(judge(2), some, repeats=5))


@pytest.mark.parametrize(
    ("judge", "told"),
    [
        pytest.param(lambda one, repeat: None, "40 unanswered", id="unanswered"),
        pytest.param(lambda one, repeat: says(one, repeat, text="I cannot say."), "40 unreadable", id="unreadable"),
        pytest.param(lambda one, repeat: fails(one, repeat, "refused", ""), "40 refused", id="refused"),
        pytest.param(
            lambda one, repeat: fails(one, repeat, "timeout", "a\nb\x1b[2J"),
            r"40 timeout; most often: a b\\x1b",
            id="timeout",
        ),
    ],
)
def test_each_way_to_fail_is_told(judge: Judge, told: str) -> None:
    """
    No verdict is no score, whatever the reason, and the reason cannot steer the terminal.
    """
    with pytest.raises(NotDecidable, match=told) as raised:
        score(run_of(judge))

    assert str(raised.value).isprintable()


def test_clean_turns_alone() -> None:
    """
    They tell the false blocks; precision and recall are unknown, even where something was named.
    """
    found = score(run_of(lambda one, repeat: says(one, repeat, "claim"), [case(n, []) for n in range(40)]))
    held = found.labelled.held

    assert held.false_alarms.value == 1
    assert (held.precision.value, held.recall.value, held.f1.value) == (None, None, None)
    assert "unknown (no faulty turn)" in score_text(found)


def test_faulty_turns_alone() -> None:
    """
    They tell the recall; precision and false blocks are unknown.
    """
    found = score(run_of(right, [case(n, ["claim"]) for n in range(40)]))
    held = found.labelled.held

    assert held.recall.value == 1
    assert (held.precision.value, held.false_alarms.value, held.f1.value) == (None, None, None)
    assert "false blocks on clean turns: unknown (no clean turn)" in score_text(found)


def test_no_labelled_case() -> None:
    """
    Without labels there is nothing to be right about.
    """
    with pytest.raises(NotDecidable, match="none of its 40 cases has labels"):
        score(run_of(right, [case(n, None) for n in range(40)]))


_CASES = st.lists(
    st.fixed_dictionaries(
        {
            "labels": st.none() | st.lists(st.sampled_from(FAULTS), unique=True, max_size=2),
            "disputed": st.booleans(),
            "confidence": st.sampled_from(["high", "medium", "low"]),
            "session": st.sampled_from(["", "a", "b"]),
            "sample": st.sampled_from(["picked", "random"]),
        }
    ),
    min_size=1,
    max_size=35,
)


@given(fields=_CASES, repeats=st.integers(1, 3), data=st.data())
def test_any_run_has_a_score_or_a_reason(fields: list[dict[str, Any]], repeats: int, data: st.DataObject) -> None:
    """
    Whatever was labelled and answered: every share lies in 0 to 1 and in its interval, and the score can be printed.
    """
    some = [case(number, **one) for number, one in enumerate(fields)]
    named = st.lists(st.sampled_from(FAULTS), max_size=2)
    quote = st.sampled_from(["all tests pass", "nowhere"])
    run = run_of(
        lambda one, repeat: says(one, repeat, *data.draw(named), quote=data.draw(quote)), some, repeats=repeats
    )
    if all(one.labels is None for one in some):
        with pytest.raises(NotDecidable):
            score(run)
        return

    found = score(run, rates={"claim": 0.0, "defer": 1.0})

    for marks in (found.labelled.held, *found.labelled.faults):
        assert marks.tp + marks.fp + marks.fn + marks.tn == pytest.approx(found.labelled.cases)
        for one in (marks.precision, marks.recall, marks.f1, marks.false_alarms):
            assert (one.value is None) == (one.wilson is None)
            if one.value is not None and one.wilson is not None:
                assert -1e-9 <= one.wilson.low - 1e-9 <= one.value <= one.wilson.high + 1e-9 <= 1 + 2e-9
    json.dumps(as_json(found), allow_nan=False)
    assert score_text(found).isascii()
