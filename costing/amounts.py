"""
Amounts of US dollars as the store has them: read, written and added up, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, cast

from .records import Spent

if TYPE_CHECKING:
    from decimal import Decimal

_MOST: Final = 10**12


def readable_cost(value: object) -> Decimal | None:
    """
    Read an amount as the store has it; None where it is none that money can be.
    """
    from decimal import Decimal

    try:
        found = Decimal(cast("str", value))
    except (ArithmeticError, ValueError, TypeError):
        return None
    exponent = found.as_tuple().exponent
    # So that sums stay exact.
    is_money = isinstance(exponent, int) and exponent >= -40 and 0 <= found <= _MOST
    return found if is_money else None


def sum_costs(costs: Iterable[tuple[str | None, int]]) -> Spent:
    """
    Add up costs as they are stored, each with the number of calls that cost so much, exactly.

    A cost that cannot be read is unknown.
    """
    from decimal import Context, Decimal, Inexact

    exact = Context(prec=100, traps=[Inexact])
    usd, unknown = Decimal(0), 0
    for cost, times in costs:
        amount = None if cost is None else readable_cost(cost)
        if amount is None:
            unknown += times
        else:
            usd = exact.add(usd, exact.multiply(amount, Decimal(times)))
    return Spent(usd, unknown)


def plain(amount: Decimal) -> str:
    """
    Write an amount as a plain decimal, without exponent or superfluous zeros.
    """
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
