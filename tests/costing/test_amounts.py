"""
Money is written and added up exactly.
"""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.amounts import plain, sum_costs

from .ledger_lines import COSTS


@given(COSTS)
def test_money_is_stored_as_a_plain_decimal(cost: Decimal) -> None:
    """
    An amount is written without exponent and reads back equal, however small.
    """
    assert set(plain(cost)) <= set("0123456789.")
    assert Decimal(plain(cost)) == cost


@given(st.lists(st.tuples(st.none() | COSTS.map(plain), st.integers(1, 10**6))))
def test_costs_add_up_exactly(costs: list[tuple[str | None, int]]) -> None:
    """
    A sum is exact to the last digit, in whole units of 10^-15 dollars, and counts what it leaves out.
    """
    units = sum(int(Decimal(cost).scaleb(15)) * times for cost, times in costs if cost is not None)

    spent = sum_costs(costs)

    assert int(spent.usd.scaleb(15)) == units
    assert spent.unknown == sum(times for cost, times in costs if cost is None)
