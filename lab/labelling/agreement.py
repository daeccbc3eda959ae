"""
How far two labellers agree: fault by fault, and on whether a reply is to be held at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

from ...costing.screen import one_line
from ...costing.tables import table
from ..errors import NotDecidable
from .labels import Labels

HELD: Final = "held"
"""Any fault, as a row of its own."""


class Row(NamedTuple):
    """
    The cases of two labellers, by who names a fault.
    """

    name: str
    both: int
    only_a: int
    only_b: int
    neither: int
    kappa: float | None
    """Cohen's; None where both say the same of each case, so that chance alone would agree as well."""


class Agreement(NamedTuple):
    """
    Two labellers side by side, on the cases that both labelled.
    """

    a: str
    b: str
    n: int
    rows: tuple[Row, ...]


def agreements(labels: Labels, cases: Sequence[str], faults: Sequence[str]) -> list[Agreement]:
    """
    Compare each labeller with each other; `cases` are the ids that count.

    Raises `NotDecidable` where there are not two, or no case that two of them labelled.
    """
    if len(labels.labellers) < 2:
        who = ", ".join(map(one_line, labels.labellers)) or "nobody"
        raise NotDecidable(f"no agreement to be told: two labellers are needed, and {who} labelled")
    found = [_agreement(labels, a, b, cases, faults) for a, b in combinations(labels.labellers, 2)]
    if not any(agreement.n for agreement in found):
        raise NotDecidable("no agreement to be told: no case was labelled by two people")
    return [agreement for agreement in found if agreement.n]


def agreement_text(agreements: Sequence[Agreement]) -> str:
    """
    Give the agreements as tables.
    """
    return "\n".join(map(_table_text, agreements))


def _agreement(labels: Labels, a: str, b: str, cases: Sequence[str], faults: Sequence[str]) -> Agreement:
    pairs: list[tuple[frozenset[str], frozenset[str]]] = []
    for case in cases:
        given = labels.given(case)
        if a in given and b in given:
            pairs.append((frozenset(given[a].labels), frozenset(given[b].labels)))
    rows = [_row(fault, [(fault in one, fault in other) for one, other in pairs]) for fault in faults]
    held = _row(HELD, [(bool(one), bool(other)) for one, other in pairs])
    return Agreement(a, b, len(pairs), (*rows, held))


def _row(name: str, pairs: Sequence[tuple[bool, bool]]) -> Row:
    from ..statistics import cohen_kappa  # numpy: whoever only labels needs none

    return Row(
        name,
        both=pairs.count((True, True)),
        only_a=pairs.count((True, False)),
        only_b=pairs.count((False, True)),
        neither=pairs.count((False, False)),
        kappa=cohen_kappa([a for a, _ in pairs], [b for _, b in pairs]),
    )


def _table_text(agreement: Agreement) -> str:
    names = ["fault", "both", "only A", "only B", "neither", "kappa"]
    rows = [[*map(str, row[:-1]), "unknown" if row.kappa is None else f"{row.kappa:.2f}"] for row in agreement.rows]
    head = f"A: {one_line(agreement.a)}, B: {one_line(agreement.b)}, {agreement.n} cases that both labelled"
    return "\n".join([head, *table(names, rows, right=names[1:])]) + "\n"
