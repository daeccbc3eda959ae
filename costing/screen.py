"""
What a person's screen can show: an amount of dollars, and text of unknown origin, each in one line.
"""

from __future__ import annotations

from decimal import Decimal


def money(amount: Decimal | None) -> str:
    """
    Write US dollars with four decimals, and with two digits that count where four decimals would hide the amount.
    """
    if amount is None:
        return "unknown"

    decimals = 4
    if 0 < abs(amount) < Decimal("0.001"):
        decimals = 1 - amount.adjusted()
    return f"${amount:,.{decimals}f}"


def one_line(text: str) -> str:
    """
    Write text as one line that cannot steer a terminal: white space folded, control characters made visible.
    """
    folded = " ".join(text.split())
    if folded.isprintable():
        return folded
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in folded)
