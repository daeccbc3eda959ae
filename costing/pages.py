"""
A long table read in portions, in the order of writing, so that memory does not grow with it and nobody is kept out meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from .stamps import storable
from .store import Store

SIZE: Final = 500
"""Rows of a portion; older SQLite takes 999 values a statement."""


def pages(
    store: Store,
    table: Literal["decisions", "calls"],
    columns: Sequence[str],
    condition: str = "number = number",
    values: Sequence[str] = (),
) -> Iterator[list[tuple[Any, ...]]]:
    """
    Give the rows that were there when the first portion was asked for, as far as they are still there when their turn comes.
    """
    known = [storable(value) for value in values]
    before, last = store.rows(f"SELECT min(number) - 1, max(number) FROM {table} WHERE {condition}", known)[0]  # noqa: S608
    if last is None:
        return

    asked = (
        f"SELECT number, {', '.join(columns)} FROM {table}"  # noqa: S608
        f" WHERE number > ? AND number <= ? AND ({condition}) ORDER BY number LIMIT {SIZE}"
    )
    while rows := store.rows(asked, (before, last, *known)):
        before = rows[-1][0]
        yield [row[1:] for row in rows]
