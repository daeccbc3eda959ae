"""
How a table looks on a person's screen.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from .screen import one_line

_GAP = "  "
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[str] = (),
    total: Sequence[str] | None = None,
    styled: bool = False,
) -> list[str]:
    """
    Lay out rows under their names; the columns named in `right` hold numbers.

    Each row is one line that is never cut: a cut amount is a wrong amount.

    `styled` is for terminals: names and total are bold.
    """
    upwards = itertools.zip_longest(*(reversed(name.split("\n")) for name in names), fillvalue="")
    head = list(upwards)[::-1]
    body = [[one_line(cell) for cell in row] for row in rows]
    foot = [list(total)] if total else []

    # Laid out here: a table of rich takes 0.6 ms a row, which a long log is too long for.
    width_of = _width_of()
    widths = [max(map(width_of, column)) for column in zip(*head, *body, *foot, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded: list[str] = []
        for name, cell, width in zip(names, cells, widths, strict=True):
            space = " " * (width - width_of(cell))
            padded.append(space + cell if name in right else cell + space)
        return _GAP.join(padded).rstrip()

    def strong(cells: Sequence[str]) -> str:
        return f"{_BOLD}{line(cells)}{_PLAIN}" if styled else line(cells)

    return [*map(strong, head), *map(line, body), *map(strong, foot)]


def _width_of() -> Callable[[str], int]:
    """
    Give what measures a text in columns of the screen; some characters take two, some none.
    """
    from rich.cells import cell_len

    return lambda text: len(text) if text.isascii() else cell_len(text)
