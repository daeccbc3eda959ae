"""
The spend limit: what may be asked so that the limit is never passed.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.judge.settings import JudgeSettings
from turngate.lab.asking.spending import Paid, Spending, worst_try_usd
from turngate.lab.cases import new_case
from turngate.lab.errors import LabError
from turngate.lab.runs import Asked, questions
from turngate.rubric.library import load
from turngate.rubric.turn import Turn


def some(number: int) -> list[Asked]:
    cases = [new_case(f"c{index}", Turn(request=f"Do {index}.", reply="Done.")) for index in range(number)]
    return questions(cases, load(), JudgeSettings(), 1)


def test_a_try_at_its_worst_is_written_to_the_cache_and_answered_in_full() -> None:
    """
    Sonnet 5.5: 2.50 USD a million tokens written to the cache, 10 out, and a tenth more in the US.
    """
    [question] = some(1)

    worst = worst_try_usd([question], JudgeSettings(max_tokens=1000), None)(question)

    tokens = Decimal(question.request.estimated_tokens)
    assert worst == (tokens * Decimal("2.5") + 1000 * Decimal(10)) / 1_000_000 * Decimal("1.1")


def test_the_users_own_price_counts(tmp_path: Path) -> None:
    """
    As it does for what was paid.
    """
    [question] = some(1)
    settings = JudgeSettings(model="mine", max_tokens=1000)
    (tmp_path / "prices.toml").write_text('[[price]]\nmodel = "mine"\ninput = 0\noutput = 1000\n')

    assert worst_try_usd([question], settings, tmp_path)(question) == Decimal("1.1")
    with pytest.raises(LabError, match="the price of model 'mine' is not known"):
        worst_try_usd([question], settings, None)


QUESTIONS = some(12)


@given(
    limit=st.integers(0, 60),
    before=st.builds(Paid, st.integers(0, 20).map(Decimal), st.integers(0, 3)),
    ends=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=12, max_size=12),
)
def test_the_limit_is_never_passed(limit: int, before: Paid, ends: list[tuple[int, int, bool]]) -> None:
    """
    Whatever is on its way at once, whatever each try costs up to its worst, told or not.
    """
    spending = Spending(before, limit_usd=Decimal(limit), worst_try=lambda _: Decimal(2), worst_before=Decimal(2))
    on_their_way: list[tuple[Asked, Paid]] = []
    true_usd = before.usd + 2 * before.unknown
    for question, (told, untold, waits) in zip(QUESTIONS, ends, strict=True):
        tries = min(told, 3 - min(untold, 3))
        if not spending.reserve(question):
            break
        true_usd += 2 * (tries + min(untold, 3))
        on_their_way.append((question, Paid(Decimal(2 * tries), min(untold, 3))))
        if not waits:
            spending.settle(*on_their_way.pop(0))

    assert true_usd <= max(limit, before.usd + 2 * before.unknown)


def test_what_is_set_aside_comes_back() -> None:
    """
    A question that cost less than its worst leaves room for the next.
    """
    first, second = some(2)
    spending = Spending(Paid(), limit_usd=Decimal(7), worst_try=lambda _: Decimal(2))

    assert spending.reserve(first)
    assert not spending.reserve(second)
    spending.settle(first, Paid(Decimal(1)))
    assert spending.reserve(second)
    assert spending.paid == Paid(Decimal(1))
