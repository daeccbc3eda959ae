"""
How money, text of unknown origin and tables look on a person's screen.

The only file that imports rich, and only for a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from io import StringIO

_ENDLESS = 100_000
"""Columns to lay out in: a cut amount is a wrong amount, so nothing is ever cut."""


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
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in " ".join(text.split())
    )


def table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    total: Sequence[str] | None = None,
    styled: bool = False,
) -> list[str]:
    """
    Lay out rows under their names, each in one line that is never cut; the columns named in `right` hold numbers.

    `styled` is for terminals: names and total are bold.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    laid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_footer=total is not None, footer_style="bold")
    for place, name in enumerate(names):
        footer = Text(total[place]) if total else ""
        laid.add_column(name, justify="right" if name in right else "left", no_wrap=True, footer=footer)
    for row in rows:
        laid.add_row(*(Text(one_line(cell)) for cell in row))

    text = StringIO()
    Console(file=text, force_terminal=styled, width=_ENDLESS).print(laid)
    return [line.rstrip() for line in text.getvalue().splitlines()]
