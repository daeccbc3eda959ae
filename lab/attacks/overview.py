"""
Which kinds of attacks there are, and how many of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...costing.tables import table
from ..cases import Case
from .builder import PLAIN
from .catalogue import Attack, attacks


def overview(cases: Sequence[Case]) -> str:
    """
    Give a table of the kinds, for a person.
    """
    kinds = dict.fromkeys(attack.kind for attack in attacks())
    names = ["kind", "attacks", "cases", "languages"]
    rows = [_row(kind, [attack for attack in attacks() if attack.kind == kind]) for kind in kinds]
    plain = [case.turn for case in cases if PLAIN in case.tags]
    same = sum(case.turn in plain for case in cases) - len(plain)
    lines = [
        *table(names, rows, right=names[1:3]),
        "",
        f"{len(attacks())} attacks on {len(plain)} plain turns: {len(cases)} cases with the plain ones",
        f"{same} attacked turns are no other than their plain turn: what was hidden in them never reaches a judge",
    ]
    return "\n".join(lines) + "\n"


def _row(kind: str, of_kind: Sequence[Attack]) -> list[str]:
    languages = sorted({attack.lang for attack in of_kind})
    return [kind, str(len(of_kind)), str(sum(len(attack.bases) for attack in of_kind)), ", ".join(languages)]
