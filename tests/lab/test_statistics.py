"""
The formulas, against statsmodels, against numbers worked out by hand, and for what must hold of any numbers.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.lab.statistics import (
    Interval,
    Resamples,
    cohen_kappa,
    f1,
    f1_wilson,
    few_clusters,
    holm,
    mcnemar_exact,
    pass_hat_k,
    quantiles,
    rate,
    reweighted_precision,
    smallest_difference,
    spearman,
    wilson,
)


@pytest.mark.parametrize(("successes", "n"), [(0, 10), (8, 10), (10, 10), (1, 3), (119, 120), (2.5, 7)])
def test_wilson_is_that_of_statsmodels(successes: float, n: float) -> None:
    """
    The interval of a rate is Wilson's, also for counts that are means over repeats.
    """
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(successes, n, method="wilson")

    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-12)


def test_wilson_by_hand() -> None:
    """
    Eight of ten lie between 49.0 % and 94.3 %, as Wilson's formula gives with z = 1.96.
    """
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_nothing_counted_tells_nothing() -> None:
    """
    A rate of nothing is unknown, and lies anywhere.
    """
    assert wilson(0, 0) == Interval(0, 1)
    assert rate(0, 0) is None


@given(n=st.integers(1, 10_000), share=st.floats(0, 1))
def test_wilson_holds_its_rate(n: int, share: float) -> None:
    """
    The interval lies in 0 to 1 and holds the rate itself.
    """
    low, high = wilson(share * n, n)

    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


def test_f1_by_hand() -> None:
    """
    Precision 6/8 and recall 6/10 make an F1 of 2/3.
    """
    assert f1(6, 2, 4) == pytest.approx(2 / 3)
    assert f1(0, 0, 0) is None


@given(tp=st.integers(0, 200), fp=st.integers(0, 200), fn=st.integers(0, 200))
def test_f1_lies_between_precision_and_recall(tp: int, fp: int, fn: int) -> None:
    """
    F1 is a mean: no higher than the higher of the two, no lower than the lower, and within its own interval.
    """
    value, precision, recall = f1(tp, fp, fn), rate(tp, tp + fp), rate(tp, tp + fn)

    if value is not None and precision is not None and recall is not None:
        assert min(precision, recall) - 1e-12 <= value <= max(precision, recall) + 1e-12
    if value is not None:
        low, high = f1_wilson(tp, fp, fn)
        assert 0 <= low <= value + 1e-12
        assert value - 1e-12 <= high <= 1


def test_reweighted_precision_by_hand() -> None:
    """
    A judge that finds 80 % and names 5 % of the clean is right in 16 of 25 where one turn in ten has the fault.
    """
    assert reweighted_precision(0.8, 0.05, 0.1) == pytest.approx(0.08 / (0.08 + 0.045))
    assert reweighted_precision(0.0, 0.0, 0.1) is None
    assert reweighted_precision(None, 0.1, 0.1) is None


_PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(pairs=_PAIRS)
def test_kappa_is_that_of_statsmodels(pairs: list[tuple[bool, bool]]) -> None:
    """
    Agreement beyond chance is Cohen's; none where one labeller never varies, and unknown where both say the same of all.
    """
    from statsmodels.stats import inter_rater

    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    table = [[sum((x, y) == cell for x, y in pairs) for cell in row] for row in _cells()]
    found = cohen_kappa(a, b)

    if len({*a, *b}) == 1:
        assert found is None
    elif len(set(a)) == 1 or len(set(b)) == 1:
        assert found == 0
    else:
        oracle: Any = inter_rater.cohens_kappa(table)
        assert found == pytest.approx(float(oracle.kappa), abs=1e-9)


def _cells() -> list[list[tuple[bool, bool]]]:
    return [[(False, False), (False, True)], [(True, False), (True, True)]]


def test_kappa_by_hand() -> None:
    """
    Cohen's textbook case: 20 both yes, 15 both no, 5 and 10 apart: observed 0.7, by chance 0.5, kappa 0.4.
    """
    a = [True] * 25 + [False] * 25
    b = [True] * 20 + [False] * 5 + [True] * 10 + [False] * 15

    assert cohen_kappa(a, b) == pytest.approx(0.4)
    assert cohen_kappa([], []) is None
    with pytest.raises(ValueError, match="paired"):
        cohen_kappa([True], [])


@given(only_a=st.integers(0, 80), only_b=st.integers(0, 80))
def test_mcnemar_is_that_of_statsmodels(only_a: int, only_b: int) -> None:
    """
    The exact test is two-sided and symmetric, and 1 where no pair differs.
    """
    from statsmodels.stats.contingency_tables import mcnemar

    oracle: Any = mcnemar([[7, only_a], [only_b, 9]], exact=True)
    expected = float(oracle.pvalue) if only_a + only_b else 1.0

    assert mcnemar_exact(only_a, only_b) == pytest.approx(expected, abs=1e-12)
    assert mcnemar_exact(only_b, only_a) == mcnemar_exact(only_a, only_b)


def test_mcnemar_by_hand() -> None:
    """
    One against nine: 2 x (1 + 10) / 1024.
    """
    assert mcnemar_exact(1, 9) == pytest.approx(22 / 1024)


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(p: list[float]) -> None:
    """
    Adjusted values come in the order of the given ones, and never below them.
    """
    from statsmodels.stats.multitest import multipletests

    oracle: Any = multipletests(p, method="holm")[1]
    adjusted = holm(p)

    assert adjusted == pytest.approx(list(oracle), abs=1e-12)
    assert all(after >= before for before, after in zip(p, adjusted, strict=True))


def test_holm_by_hand() -> None:
    """
    The smallest of three is tripled, the next doubled, and none falls below the one before.
    """
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_pass_hat_k_counts_all_choices(k: int) -> None:
    """
    The chance that k tries succeed is the share of all choices of k of the tries made that hold successes alone.
    """
    successes, repeats = [4, 3, 1, 0], 4
    tried = [[index < count for index in range(repeats)] for count in successes]
    choices = [all(choice) for case in tried for choice in _choices(case, k)]

    assert pass_hat_k(successes, repeats, k) == pytest.approx(sum(choices) / len(choices))


def _choices(tries: list[bool], k: int) -> list[tuple[bool, ...]]:
    from itertools import combinations

    return list(combinations(tries, k))


def test_pass_hat_k_beyond_what_was_tried() -> None:
    """
    What three tries in a row would give is unknown from two.
    """
    assert pass_hat_k([2, 2], 2, 3) is None
    assert pass_hat_k([], 2, 1) is None


def test_spearman_by_hand() -> None:
    """
    One swap among four ranks: 1 - 6 x 2 / (4 x 15).
    """
    found = spearman([1, 2, 3, 4], [10, 30, 20, 900])

    assert found is not None
    assert found[0] == pytest.approx(0.8)
    assert spearman([1, 2, 3], [5, 5, 5]) is None
    assert spearman([1, 2], [1, 2]) is None


def test_quantiles_by_hand() -> None:
    """
    The middle of four values lies between the inner two.
    """
    assert quantiles([4, 1, 3, 2], [0, 0.5, 1]) == [1, 2.5, 4]
    with pytest.raises(ValueError, match="no values"):
        quantiles([], [0.5])


def test_bootstrap_of_independent_cases_is_near_wilson() -> None:
    """
    Where each case is a cluster of its own, the bootstrap agrees with the formula to two points in a hundred.
    """
    hits = [index % 10 < 3 for index in range(400)]
    found = Resamples([str(index) for index in range(400)]).rate(hits, [1] * 400)

    assert found is not None
    assert found == pytest.approx(wilson(120, 400), abs=0.02)


def test_cases_of_one_session_are_no_new_evidence() -> None:
    """
    Ten copies of each case in its own session leave the interval as wide as it was.
    """
    hits = [index % 10 < 3 for index in range(40)]
    once = Resamples([f"{index:02}" for index in range(40)]).rate(hits, [1] * 40)
    tenfold = Resamples([f"{index:02}" for index in range(40)] * 10).rate(hits * 10, [1] * 400)

    assert once is not None
    assert tenfold == pytest.approx(once)


def test_the_order_of_cases_and_the_seed() -> None:
    """
    The same seed gives the same interval, whatever the order of the cases; another seed gives another.
    """
    clusters = [f"s{index % 7}" for index in range(50)]
    hits = [index % 17 / 17 for index in range(50)]
    first = Resamples(clusters, seed=1).rate(hits, [1.0] * 50)

    assert Resamples(clusters[::-1], seed=1).rate(hits[::-1], [1.0] * 50) == pytest.approx(first)
    assert Resamples(clusters, seed=2).rate(hits, [1.0] * 50) != first


def test_sessions_that_all_agree_are_no_certainty() -> None:
    """
    Where every session is right each time, the interval is that of so many sessions, each counted once.
    """
    found = Resamples(["a", "a", "b", "c"]).rate([1, 1, 1, 0], [1, 1, 1, 0])

    assert found == pytest.approx(wilson(2, 2))


def test_one_session_tells_nothing() -> None:
    """
    Of a single session nobody can say how sessions differ.
    """
    assert Resamples(["a"] * 9).rate([1] * 9, [1] * 9) is None
    assert Resamples([]).rate([], []) is None


def test_a_statistic_that_is_seldom_defined_has_no_interval() -> None:
    """
    Where most resamples hold nothing to divide by, no interval is given.
    """
    clusters = [str(index) for index in range(100)]
    rows = [[1.0, 1.0]] + [[0.0, 0.0]] * 99

    assert Resamples(clusters).interval(rows, lambda sums: sums[:, 0] / sums[:, 1]) is not None
    assert Resamples(clusters).interval([[0.0, 0.0]] * 100, lambda sums: sums[:, 0] / sums[:, 1]) is None


def test_bootstrap_over_all_resamples_by_hand() -> None:
    """
    Two sessions, all right and all wrong: a quarter of the resamples has rate 0 and a quarter rate 1.
    """
    draws = Resamples(["a", "b"], resamples=4000)
    sums = draws.sums(np.array([[1.0, 1.0], [0.0, 1.0]]))
    shares = [float(np.mean(sums[:, 0] / sums[:, 1] == share)) for share in (0, 0.5, 1)]

    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.03)


def _power(n: int, discordant: float, difference: float) -> float:
    """
    Give the chance that the test rejects, by adding up every outcome of n pairs.
    """
    for_b, for_a = (discordant + difference) / 2, (discordant - difference) / 2
    shown = 0.0
    for b, a in product(range(n + 1), repeat=2):
        if a + b <= n and mcnemar_exact(a, b) <= 0.05:
            ways = math.comb(n, a) * math.comb(n - a, b)
            shown += ways * for_b**b * for_a**a * (1 - discordant) ** (n - a - b)
    return shown


@pytest.mark.parametrize(("n", "discordant"), [(40, 0.3), (60, 0.5), (25, 0.9)])
def test_smallest_difference_has_just_the_power(n: int, discordant: float) -> None:
    """
    At the smallest difference the test shows it in 80 of 100 trials, at a slightly smaller one in fewer.
    """
    found = smallest_difference(n, discordant)

    assert found is not None
    assert found <= discordant
    assert _power(n, discordant, found) >= 0.8
    assert _power(n, discordant, found - 0.001) < 0.8


def test_too_few_pairs_show_nothing() -> None:
    """
    Five pairs cannot reject at 5 % even where all differ one way: 2 / 32 is more. Six can.
    """
    assert smallest_difference(5, 0.5) is None
    assert smallest_difference(0, 0.5) is None
    assert smallest_difference(6, 0.0) == pytest.approx(0.8 ** (1 / 6), abs=2e-4)


@given(n=st.integers(6, 300), discordant=st.floats(0, 1))
def test_more_pairs_show_no_larger_difference(n: int, discordant: float) -> None:
    """
    The smallest difference lies in 0 to 1, and four times the pairs show at least as small a one.
    """
    few, many = smallest_difference(n, discordant), smallest_difference(4 * n, discordant)

    assert few is None or 0 < few <= 1
    assert few is None or (many is not None and many <= few + 1e-3)


def test_intervals_are_plain_numbers() -> None:
    """
    What is given can be written as JSON: no type of numpy gets out.
    """
    found: list[Any] = [
        *(wilson(1, 3)),
        *(Resamples(["a", "b", "c"]).rate([1, 0, 1], [1, 1, 1]) or ()),
        *(spearman([1, 2, 3], [3, 1, 2]) or ()),
        smallest_difference(50, 0.2),
    ]

    assert {type(value) for value in found} == {float}


@pytest.mark.parametrize(("clusters", "t"), [(2, 12.7062), (6, 2.5706), (20, 2.0930), (10_000, 1.9602)])
def test_few_clusters_widen_an_interval_by_students_t(clusters: int, t: float) -> None:
    """
    By the table of its 97.5 % quantiles, and by what a resample varies less than the data.
    """
    assert few_clusters(clusters) == pytest.approx(t / 1.959964 * math.sqrt(clusters / (clusters - 1)), rel=1e-4)
