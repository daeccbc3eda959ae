"""
What a report is made of, whatever it is written as: sections of prose, tables and plots.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Prose(NamedTuple):
    """
    A paragraph.
    """

    text: str
    is_warning: bool = False


class Table(NamedTuple):
    """
    Rows under their names; the first column names the row, the others stand to the right where they hold numbers.
    """

    title: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: bool = True


class Plot(NamedTuple):
    """
    A figure, by its name in `figures`; all that it shows stands in a table too.
    """

    name: str
    title: str


Block: TypeAlias = Prose | Table | Plot


class Section(NamedTuple):
    """
    Blocks under a heading.
    """

    name: str
    """Of its anchor."""
    title: str
    blocks: tuple[Block, ...]
