"""
The spend limit: what may be asked so that the limit is never passed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.records import Call, CallEnd, CallStart
from turngate.costing.usage import Usage
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


def call(usage: Usage | None, cost_usd: Decimal | None = None) -> Call:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Call("c", CallStart(at, "anthropic", "m"), CallEnd("answered", usage=usage, cost_usd=cost_usd))


@pytest.mark.parametrize(
    ("usage", "cost_usd", "times"),
    [
        pytest.param(lambda read: Usage(input_tokens=3 * read), None, 3, id="read"),
        pytest.param(lambda read: Usage(cache_read_tokens=3 * read), Decimal(1), 3, id="read from the cache"),
        pytest.param(lambda _: Usage(output_tokens=4000), None, 4, id="written"),
        pytest.param(lambda _: Usage(), Decimal(10), 5, id="paid"),
        pytest.param(lambda _: Usage(input_tokens=1), Decimal(1), 1, id="less"),
    ],
)
def test_the_worst_grows_with_what_was_seen(
    usage: Callable[[int], Usage], cost_usd: Decimal | None, times: int
) -> None:
    """
    A try was estimated at 2 dollars, 1000 tokens out and some in: with three tries, the next takes so many times 6.
    """
    [question] = some(1)
    for limit, fits in ((6 * times, True), (6 * times - 1, False)):
        spending = Spending(Paid(), limit_usd=Decimal(limit), worst_try=lambda _: Decimal(2), max_tokens=1000)
        assert spending.is_blind
        spending.learn(question, [call(None)])
        assert spending.is_blind
        spending.learn(question, [call(usage(question.request.estimated_tokens), cost_usd)])
        assert not spending.is_blind
        assert spending.reserve(question) is fits


def test_what_is_on_its_way_grows_too() -> None:
    """
    Of three questions that were set aside, two are still under way when the first turns out twice as dear.
    """
    first, second, third, fourth = some(4)
    spending = Spending(Paid(), limit_usd=Decimal(30), worst_try=lambda _: Decimal(2), max_tokens=1000)
    assert all(map(spending.reserve, (first, second, third)))

    spending.learn(first, [call(Usage(output_tokens=2000))])
    spending.settle(first, Paid(Decimal(4)))

    assert not spending.reserve(fourth)


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
