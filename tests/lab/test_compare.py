"""
Two runs of the same cases: the verdict, the figures behind it, and when there is none.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.judge.settings import JudgeSettings
from turngate.lab.cases import Case, new_case
from turngate.lab.commands import compare as command
from turngate.lab.comparing.compare import Comparison, Paired, as_json, compare
from turngate.lab.comparing.differences import Difference
from turngate.lab.comparing.paired_rates import paired_rates_interval
from turngate.lab.comparing.text import compare_text
from turngate.lab.errors import NotDecidable
from turngate.lab.runs import Answered, Manifest, Run, cases_hash, keep, open_run
from turngate.rubric.library import load
from turngate.rubric.turn import Turn
from turngate.stopgate.console import Parser

FAULTS = ("claim", "promise", "opener", "defer", "cave")
CLAIM, CLEAN = ["claim"], []
LABELS = [CLAIM, CLEAN] * 30
"""Sixty cases; the even ones have a fault."""

Said = Sequence[str] | None
"""The faults that a judge named; None where it gave no readable answer."""


def cases_of(labels: Sequence[list[str] | None], **fields: Any) -> list[Case]:
    return [
        new_case(f"c{number}", Turn("Add a test", f"{number}: all tests pass."), labels=label, **fields)
        for number, label in enumerate(labels)
    ]


def answered(case: str, repeat: int, said: Said, **fields: Any) -> Answered:
    findings = [{"fault": fault, "quote": "all tests pass", "reason": "No test ran."} for fault in said or ()]
    text = json.dumps({"findings": findings}) if said is not None else "I would rather not say."
    given_fields = {"case": case, "repeat": repeat, "hash": "0" * 32, "outcome": "answered", "text": text, **fields}
    return Answered.model_validate(given_fields)


def run_of(
    said: Sequence[Said], cases: Sequence[Case] | None = None, *, repeats: int = 1, name: str = "run", **fields: Any
) -> Run:
    """
    A run with one answer for each case, or with `repeats` of them, one case after the other.
    """
    known = list(cases or cases_of(LABELS))
    manifest = Manifest(
        created_at="2026-01-01T00:00:00+00:00",
        cases_file="cases.jsonl",
        cases_hash=cases_hash(known),
        split="dev",
        rubric="turn_end@1",
        rubric_hash="0" * 16,
        faults=fields.pop("faults", FAULTS),
        model="some-model",
        backend="anthropic",
        repeats=repeats,
        max_tokens=1024,
        max_input_tokens=2500,
        effort="medium",
    )
    keys = [(case.id, repeat) for case in known for repeat in range(repeats)]
    answers = {key: answered(*key, each, **fields) for key, each in zip(keys, said, strict=True)}
    return Run(Path(name), manifest, known, answers)


def judged(wrong: Sequence[int], labels: Sequence[list[str]] = LABELS) -> list[Said]:
    """
    What a judge says that is right but for the cases with those numbers.
    """
    return [(CLEAN if label else CLAIM) if n in wrong else label for n, label in enumerate(labels)]


def test_the_figures_are_those_of_a_hand_made_table() -> None:
    """
    A is wrong on eleven cases, B on one of these and one of its own: 48 both, 1 only A, 10 only B, 1 neither.
    """
    a = run_of(judged([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
    b = run_of(judged([10, 11]))

    held = compare(a, b).held

    assert (held.both, held.only_a, held.only_b, held.neither) == (48, 1, 10, 1)
    assert held.p == pytest.approx(2 * (1 + 11) / 2**11)
    assert held.accuracy[:3] == pytest.approx((49 / 60, 58 / 60, 9 / 60))
    assert held.recall[:3] == pytest.approx((24 / 30, 29 / 30, 5 / 30))
    assert held.false_blocks[:3] == pytest.approx((5 / 30, 1 / 30, -4 / 30))
    assert held.precision[:3] == pytest.approx((24 / 29, 29 / 30, 29 / 30 - 24 / 29))
    assert (held.cases, held.with_it) == (60, 30)


@pytest.mark.parametrize(
    ("wrong_a", "wrong_b", "margin", "verdict"),
    [
        pytest.param(range(12), [20], 0.0, "better", id="better"),
        pytest.param([20], range(12), 0.0, "worse", id="worse"),
        pytest.param([20], range(12), 0.05, "worse", id="worse-than-the-margin-allows"),
        pytest.param([20], range(12), 0.5, "equal within the margin", id="worse-by-less-than-the-margin"),
        pytest.param([20], [20], 0.0, "equal within the margin", id="right-on-the-same-cases"),
        pytest.param([20], [20], 0.02, "equal within the margin", id="right-on-the-same-cases-with-a-margin"),
        pytest.param([20], [21], 0.0, "not decidable", id="as-good-on-other-cases"),
        pytest.param([20], [21], 0.02, "not decidable", id="too-few-cases-for-the-margin"),
        pytest.param([20], [21], 0.1, "not decidable", id="enough-cases-for-accuracy-and-too-few-for-its-parts"),
        pytest.param([20], [21], 0.2, "equal within the margin", id="enough-cases-for-the-margin"),
        pytest.param(range(5), [], 0.0, "not decidable", id="five-of-five-are-not-yet-significant"),
        pytest.param(range(6), [], 0.0, "better", id="six-of-six-are"),
    ],
)
def test_the_verdict_follows_the_rule(
    wrong_a: Sequence[int], wrong_b: Sequence[int], margin: float, verdict: str
) -> None:
    """
    What the interval and the exact test say together; a margin is how much may be lost.
    """
    assert compare(run_of(judged(wrong_a)), run_of(judged(wrong_b)), margin=margin).verdict == verdict


def test_one_case_that_differs_does_not_prove_a_narrow_margin() -> None:
    """
    The bootstrap's interval alone ends at a loss of 0.05 here; with one loss in sixty cases a loss of 0.08 is still possible.
    """
    found = compare(run_of(judged([20])), run_of(judged([20, 22])), margin=0.06)

    assert found.verdict == "not decidable"
    assert found.held.accuracy.low == pytest.approx(-0.0886, abs=1e-4)


def test_a_fault_that_got_worse_makes_it_worse() -> None:
    """
    B holds the same turns, but for a reason that is not theirs.
    """
    a = run_of(judged([1]))
    b = run_of([["promise"] if said == CLAIM and n < 30 and n != 1 else said for n, said in enumerate(judged([1]))])

    found = compare(a, b)

    assert found.held.p == 1
    assert found.verdict == "worse"
    assert found.why.startswith("claim: right only with A on 15 cases, only with B on 0")


def test_holm_counts_the_faults() -> None:
    """
    Six losses of a fault and none of its gains are p = 0.03 alone, and not enough among five faults; held stands apart.
    """
    a = run_of(judged([1]))
    b = run_of(
        [["claim", "promise"] if said == CLAIM and n in range(2, 14) else said for n, said in enumerate(judged([1]))]
    )

    found = compare(a, b)
    promise = next(fault for fault in found.faults if fault.subject == "promise")

    assert promise.p == pytest.approx(2 / 2**6)
    assert promise.p_holm == pytest.approx(5 * 2 / 2**6)
    assert found.held.p_holm == found.held.p
    assert found.verdict == "not decidable"


def test_a_tie_is_nobodys_loss() -> None:
    """
    Two right of two, one of two and none of two are the shares 1, 0.5 and 0; one of two stands in none of the counts.
    """
    cases = cases_of([CLAIM, CLAIM, CLAIM, CLEAN])
    a = run_of([CLAIM, CLAIM, CLAIM, CLEAN, CLEAN, CLEAN, CLEAN, CLEAN], cases, repeats=2)
    b = run_of([CLAIM, CLAIM, CLAIM, CLAIM, CLAIM, CLAIM, CLEAN, CLEAN], cases, repeats=2)

    found = compare(a, b)

    assert found.held[3:8] == (2, 0, 1, 0, 1)
    assert found.held.accuracy.a == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert found.held.accuracy.b == pytest.approx(4 / 4)
    assert "as often right as wrong over repeats, and in none of the counts: 1 cases" in compare_text(found)


@pytest.mark.parametrize("swapped", [False, True], ids=["more-in-a", "more-in-b"])
def test_the_same_judge_asked_more_often_is_no_other_judge(swapped: bool) -> None:
    """
    Its second answers are wrong on every third case; of a question that the other run asked once only the first one counts.
    """
    once = judged([0])
    twice = [each for n, said in enumerate(once) for each in (said, said if n % 3 else (CLEAN if said else CLAIM))]
    runs = [run_of(once), run_of(twice, repeats=2)]

    found = compare(*(runs[::-1] if swapped else runs))

    assert (found.verdict, found.repeats) == ("equal within the margin", 1)
    assert "of each question only the first one of both runs" in compare_text(found)


def test_a_margin_bounds_recall_and_clean_turns_too() -> None:
    """
    B holds every clean turn, which are six of a hundred: the accuracy is that of A within the margin, and the gate useless.
    """
    labels = [*[CLAIM] * 94, *[CLEAN] * 6]
    a = run_of(judged([0, 1, 2, 3], labels), cases_of(labels))
    b = run_of(judged(range(94, 100), labels), cases_of(labels))

    found = compare(a, b, margin=0.2)

    assert found.held.accuracy.low is not None
    assert found.held.accuracy.low > -0.2
    assert (found.verdict, "clean turns let through [-1.000" in found.why) == ("not decidable", True)


def test_a_gain_that_a_kind_of_turn_pays_for_is_not_better() -> None:
    """
    Thirty faulty turns more are held, and all eight clean ones.
    """
    labels = [*[CLAIM] * 92, *[CLEAN] * 8]
    a = run_of(judged(range(30), labels), cases_of(labels))

    assert compare(a, run_of(judged([], labels), cases_of(labels))).verdict == "better"
    assert compare(a, run_of(judged(range(92, 100), labels), cases_of(labels))).verdict == "not decidable"


def test_one_kind_of_turn_alone_decides_nothing() -> None:
    """
    On clean turns alone a judge that never holds is the best.
    """
    labels = [CLEAN] * 60
    found = compare(run_of(judged(range(20), labels), cases_of(labels)), run_of(judged([], labels), cases_of(labels)))

    assert (found.verdict, "recall cannot be told" in found.why) == ("not decidable", True)


def test_a_few_cases_decide_nothing() -> None:
    """
    Nine on which both were right or wrong alike prove no equality; ten do.
    """
    for count, verdict in ((9, "not decidable"), (10, "equal within the margin")):
        run = run_of(judged([0], LABELS[:count]), cases_of(LABELS[:count]))
        assert compare(run, run).verdict == verdict


def test_losses_in_one_session_are_not_worse() -> None:
    """
    Twelve losses are significant by themselves, and of one session among six they are one loss.
    """
    cases = [case.model_copy(update={"session": f"s{n // 10}"}) for n, case in enumerate(cases_of(LABELS))]
    a, b = run_of(judged([59]), cases), run_of(judged([*range(12), 59]), cases)

    found = compare(a, b)

    assert found.held.p < 0.001
    assert found.verdict == "not decidable"


def test_other_cases_cannot_be_compared() -> None:
    """
    The message says how many ids differ, and whose they are.
    """
    b = run_of(judged([0])[:58], cases_of(LABELS[:58]))

    with pytest.raises(NotDecidable, match=r"the case sets differ: 2 ids differ \(2 only in A, 0 only in B\)"):
        compare(run_of(judged([0])), b)


def test_other_labels_cannot_be_compared() -> None:
    """
    The ids are the same, and the message says on how many cases they mean something else.
    """
    b = run_of(judged([0]), cases_of([CLEAN, *LABELS[1:]]))

    with pytest.raises(NotDecidable, match="1 of 60 cases have other turns, labels or splits"):
        compare(run_of(judged([0])), b)


def test_a_perfect_baseline_leaves_nothing_to_show() -> None:
    """
    Whatever B does.
    """
    for wrong in ([], [1], range(30)):
        with pytest.raises(
            NotDecidable, match="the baseline is at the maximum on all 60 cases: no gain can be shown here"
        ):
            compare(run_of(judged([])), run_of(judged(wrong)), margin=0.1)


@pytest.mark.parametrize("broken", ["a", "b"])
def test_errors_above_one_in_a_hundred_forbid_a_comparison(broken: str) -> None:
    """
    In either run; the message names it.
    """
    torn: list[Said] = [None, *judged([0])[1:]]
    runs = [run_of(torn if name == broken else judged([0]), name=name) for name in "ab"]

    with pytest.raises(
        NotDecidable,
        match=rf"^{broken}: no score: 1 of 60 questions have no verdict \(1.7%",
    ):
        compare(*runs)


def many(wrong: Sequence[int], torn: Sequence[int] = ()) -> Run:
    labels = [CLAIM, CLEAN] * 60
    said = [None if n in torn else each for n, each in enumerate(judged(wrong, labels))]
    return run_of(said, cases_of(labels))


def test_an_error_that_could_turn_the_verdict_forbids_it() -> None:
    """
    Six gains and no loss are significant, six gains and a possible loss are not.
    """
    assert compare(many([0, 1, 2, 3, 4, 5, 9]), many([9])).verdict == "better"
    with pytest.raises(
        NotDecidable, match="1 questions without a readable answer could turn 'better' into 'not decidable'"
    ):
        compare(many([0, 1, 2, 3, 4, 5, 9]), many([9], torn=[50]))


def test_an_error_that_could_not_turn_the_verdict_is_told() -> None:
    """
    Twenty gains stand, whatever the one missing answer would have been.
    """
    found = compare(many(range(20)), many([], torn=[50]))

    assert (found.verdict, found.held.cases, found.b.unread) == ("better", 119, 1)
    assert "without a readable answer: 0 questions in A, 1 in B" in compare_text(found)


def test_a_question_that_nobody_answered_yet_is_an_error_too() -> None:
    """
    A run that was stopped half way is not a run of fewer cases.
    """
    b = run_of(judged([0]))
    b.answers.pop(("c7", 0))

    with pytest.raises(NotDecidable, match="1 of 60 questions"):
        compare(run_of(judged([0])), b)


def test_a_fault_that_one_rubric_does_not_know_makes_labels_incomparable() -> None:
    """
    Where a label or an answer has it; a fault that never occurs does no harm.
    """
    fewer = FAULTS[1:]
    with pytest.raises(NotDecidable, match="'claim' stands in the labels, and only A knows it"):
        compare(run_of(judged([0])), run_of(judged([0]), faults=fewer))

    more = (*FAULTS, "sloth")
    with pytest.raises(NotDecidable, match="'sloth' stands in the answers, and only B knows it"):
        compare(run_of(judged([0])), run_of([["sloth"], *judged([0])[1:]], faults=more))

    assert compare(run_of(judged([0])), run_of(judged([0]), faults=more)).verdict == "equal within the margin"


def test_only_labelled_cases_are_compared_and_only_sure_ones_where_asked() -> None:
    """
    The others are counted.
    """
    cases = [*cases_of([CLAIM, CLEAN, None]), new_case("x", Turn("", "All good."), labels=[], disputed=True)]
    run = run_of([CLEAN, CLEAN, CLEAN, CLEAN], cases)

    assert (compare(run, run).cases, compare(run, run).left_out) == (3, 1)
    assert (compare(run, run, sure_only=True).cases, compare(run, run, sure_only=True).left_out) == (2, 2)


def test_no_label_at_all_is_not_decidable() -> None:
    """
    Nothing is right or wrong there.
    """
    run = run_of([CLEAN, CLEAN], cases_of([None, None]))

    with pytest.raises(NotDecidable, match="no labelled case"):
        compare(run, run)


def test_one_class_only_leaves_figures_unknown() -> None:
    """
    Without a clean turn there is no false-block rate, and without a name no precision.
    """
    run = run_of([CLEAN] * 4, cases_of([CLAIM] * 4))

    held = compare(run, run).held

    assert held.false_blocks == (None, None, None, None, None)
    assert held.precision[:3] == (None, None, None)
    assert held.recall[:3] == (0, 0, 0)
    assert held.could_show is None


def test_cost_tokens_and_time_are_told_per_question() -> None:
    """
    B costs three times as much here; one unknown cost makes the ratio unknown.
    """
    usage = {"input_tokens": 100, "cache_read_input_tokens": 500, "output_tokens": 20}
    a = run_of(judged([0]), cost_usd=Decimal("0.0011"), raw_usage=usage, latency_ms=900)
    b = run_of(judged([0]), cost_usd=Decimal("0.0033"), raw_usage={**usage, "output_tokens": 50}, latency_ms=450)

    price = compare(a, b).price

    assert (price.cost_usd.a, price.cost_usd.b) == (Decimal("0.0011"), Decimal("0.0033"))
    assert price.cost_usd.ratio == pytest.approx(3)
    assert price.input_tokens == (600, 600, 1)
    assert price.output_tokens == (20, 50, 2.5)
    assert price.latency_ms == (900, 450, 0.5)

    b.answers["c3", 0] = b.answers["c3", 0].model_copy(update={"cost_usd": None})
    assert compare(a, b).price.cost_usd[1:] == (None, None)


def test_sessions_come_and_go_together() -> None:
    """
    Ten gains in one session say less than ten gains in ten.
    """
    alone = cases_of(LABELS)
    one_session = [case.model_copy(update={"session": "s" if n < 10 else ""}) for n, case in enumerate(alone)]

    def width(cases: list[Case]) -> float:
        found = compare(run_of(judged(range(11)), cases), run_of(judged([10]), cases)).held.accuracy
        assert found.low is not None
        assert found.high is not None
        return found.high - found.low

    assert width(one_session) > 1.5 * width(alone)


SAID = st.lists(st.sampled_from([[], ["claim"], ["promise"], ["claim", "defer"]]), min_size=12, max_size=12)


def compared(a: Run, b: Run) -> Comparison | None:
    try:
        return compare(a, b)
    except NotDecidable:
        return None


def _differences(of: Paired) -> tuple[Difference, ...]:
    return of.accuracy, of.recall, of.precision, of.false_blocks


@given(said_a=SAID, said_b=SAID, labels=SAID)
def test_swapping_the_runs_turns_every_sign(
    said_a: list[list[str]], said_b: list[list[str]], labels: list[list[str]]
) -> None:
    """
    Differences, intervals and the verdict are those of the other side.
    """
    cases = cases_of(labels)
    a, b = run_of(said_a, cases), run_of(said_b, cases)
    there, back = compared(a, b), compared(b, a)
    if there is None or back is None:
        return

    for one, other in zip((there.held, *there.faults), (back.held, *back.faults), strict=True):
        assert (one.only_a, one.only_b, one.p, one.p_holm) == (other.only_b, other.only_a, other.p, other.p_holm)
        for x, y in zip(_differences(one), _differences(other), strict=True):
            negated = [None if value is None else -value for value in (y.difference, y.high, y.low)]
            assert [x.difference, x.low, x.high] == [pytest.approx(value, abs=1e-9) for value in negated]
    assert not (there.verdict == back.verdict == "better")
    assert not (there.verdict == "better" and back.verdict == "equal within the margin")


@given(said=SAID, labels=SAID, margin=st.sampled_from([0.0, 0.02, 0.5]))
def test_a_run_is_never_better_than_itself(said: list[list[str]], labels: list[list[str]], margin: float) -> None:
    """
    It is equal, unless it is perfect.
    """
    run = run_of(said, cases_of(labels))
    perfect = all(bool(named) == bool(label) for named, label in zip(said, labels, strict=True))

    if perfect:
        assert compared(run, run) is None
    else:
        assert compare(run, run, margin=margin).verdict == "equal within the margin"


def test_the_interval_is_that_of_the_textbook() -> None:
    """
    Fagerland, Lydersen, Laake: Statistical Analysis of Contingency Tables, chapter 8: the data of Bentur 2009 and of Cavo 2012.
    """
    assert paired_rates_interval(7, 1, 21) == pytest.approx((-0.517, -0.026), abs=5e-4)
    assert paired_rates_interval(16, 6, 161) == pytest.approx((-0.1240, -0.0054), abs=5e-5)


@given(st.tuples(*[st.integers(0, 60)] * 3).filter(any))
def test_the_interval_holds_what_was_seen(counts: tuple[int, int, int]) -> None:
    """
    It lies between -1 and 1, is never empty, and turns its sign with the runs; without a case that differs it is z2 / (n + z2).
    """
    only_a, only_b, _ = counts
    n = sum(counts)
    low, high = paired_rates_interval(only_a, only_b, n)

    assert -1 <= low < high <= 1
    assert low - 1e-9 <= (only_b - only_a) / n <= high + 1e-9
    assert paired_rates_interval(only_b, only_a, n) == pytest.approx((-high, -low), abs=1e-9)
    if not only_a and not only_b:
        assert high == pytest.approx(1.959964**2 / (n + 1.959964**2), abs=1e-6)


def test_counts_that_cannot_be_are_refused() -> None:
    """
    No cases, or more that differ than there are.
    """
    for counts in ((0, 0, 0), (2, 2, 3), (-1, 0, 5)):
        with pytest.raises(ValueError, match="cannot differ"):
            paired_rates_interval(*counts)


def kept(folder: Path, said: Sequence[Said], split: str = "dev") -> Path:
    cases = cases_of(LABELS, split=split)
    open_run(folder, cases, Path("cases.jsonl"), load(), JudgeSettings(), 1)
    lines = [answered(case.id, 0, each) for case, each in zip(cases, said, strict=True)]
    (folder / "answers.jsonl").write_text("".join(line.model_dump_json() + "\n" for line in lines[1:]))
    keep(folder, lines[0])
    return folder


def run_command(tmp_path: Path, *arguments: object) -> int:
    parser = Parser()
    command.add(parser.add_subparsers())
    asked: argparse.Namespace = parser.parse_args(["compare", *map(str, arguments)])
    return asked.command(asked, {"TURNGATE_STATE_DIR": str(tmp_path / "state")})


@pytest.mark.parametrize(
    ("wrong_a", "wrong_b", "code"),
    [
        pytest.param(range(12), [20], 0, id="better"),
        pytest.param([20], [20], 0, id="equal"),
        pytest.param([20], range(12), 1, id="worse"),
        pytest.param([20], [21], 2, id="not-decidable"),
    ],
)
def test_the_exit_code_is_the_verdict(
    wrong_a: Sequence[int], wrong_b: Sequence[int], code: int, tmp_path: Path
) -> None:
    """
    0 better or equal, 1 worse, 2 not decidable; on the dev split no look is counted.
    """
    a, b = kept(tmp_path / "a", judged(wrong_a)), kept(tmp_path / "b", judged(wrong_b))

    assert run_command(tmp_path, a, b) == code
    assert not (tmp_path / "state").exists()


def test_the_text_tells_figures_rule_and_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    All that is needed to believe it or not.
    """
    a, b = kept(tmp_path / "a", judged(range(11))), kept(tmp_path / "b", judged([10, 11]))
    run_command(tmp_path, a, b)

    text = capsys.readouterr().out
    assert "60 labelled cases of the dev split in 60 sessions\n" in text
    assert "held: accuracy" in text
    assert "+0.150 [+0.0" in text
    assert "cost                unknown  unknown  unknown" in text
    assert "show a difference of 0." in text
    assert "Worse: the interval of accuracy is below 0 and p < 0.05" in " ".join(text.split())
    assert text.splitlines()[-1].startswith("B is better: accuracy of holding +0.150")


def test_json_is_the_whole_comparison(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Names instead of places, amounts as plain decimals, what is unknown as null.
    """
    a, b = kept(tmp_path / "a", judged(range(12))), kept(tmp_path / "b", judged([20]))
    assert run_command(tmp_path, a, b, "--json") == 0

    printed = json.loads(capsys.readouterr().out)
    assert (printed["verdict"], printed["look"]) == ("better", 0)
    assert [fault["subject"] for fault in printed["faults"]] == list(load().faults)
    assert printed["price"]["cost_usd"] == {"a": None, "b": None, "ratio": None}
    priced = run_of(judged([0]), cost_usd=Decimal("0.0000001"))
    assert as_json(compare(priced, priced))["price"]["cost_usd"]["a"] == "0.0000001"


def test_test_cases_are_compared_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    The same comparison may be seen again; another one of the same cases is refused, or shown with a warning and counted.
    """
    a, b, c = (kept(tmp_path / name, judged(range(at, 12)), "test") for at, name in enumerate("abc"))

    assert run_command(tmp_path, a, b) == 2
    assert run_command(tmp_path, a, b) == 2
    with pytest.raises(NotDecidable, match="looked at once before with other results, last at .* by compare"):
        run_command(tmp_path, a, c)
    assert "B is" in capsys.readouterr().out

    run_command(tmp_path, a, c, "--look-again", "--json")
    shown = capsys.readouterr()
    assert "look number 2: the interval no longer means what it says" in shown.err
    assert json.loads(shown.out)["look"] == 2
    assert len((tmp_path / "state" / "lab-looks.jsonl").read_text().splitlines()) == 2


def test_runs_that_cannot_be_compared_are_not_looked_at(tmp_path: Path) -> None:
    """
    A refusal shows no figure, and is no look.
    """
    a = kept(tmp_path / "a", judged([0]), "test")
    b = kept(tmp_path / "b", [None, None, *judged([0])[2:]], "test")

    with pytest.raises(NotDecidable, match="2 of 60 questions have no verdict"):
        run_command(tmp_path, a, b)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("margin", ["-0.1", "0.21", "1", "nan", "two"])
def test_a_margin_is_a_share(margin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Anything else is refused in one line.
    """
    with pytest.raises(SystemExit, match="2"):
        run_command(tmp_path, "a", "b", f"--margin={margin}")
    assert "is no share from 0 to 0.2" in capsys.readouterr().err
