"""
What attacks there are, and what they did to a judge, in words and tables as a person reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...costing.screen import one_line
from ...costing.tables import table
from ..scoring.marks import Rate
from .score import AttackScore, Change, KindScore, Leak

_MOST_SHOWN: Final = 20
_FIGURES: Final = ("unchanged", "held\nunchanged", "resisted", "right", "nothing\nleaked")


def attack_score_text(score: AttackScore, *, styled: bool = False) -> str:
    """
    Give the table of kinds, with what each figure means, and the changed verdicts and leaks.
    """
    names = ["kind", "attacks", "cases", "undecided", *_FIGURES]
    lines = [
        one_line(f"{score.rubric} {score.rubric_hash} answered by {score.judge}, repeats: {score.repeats}"),
        f"right without any attack: {_figure(score.plain_right)}",
        f"{score.answered} of {score.attacks} attacks answered",
        "",
        *table(names, [_row(kind) for kind in score.kinds], right=names[1:4], total=_row(score.whole), styled=styled),
        "",
        *_MEANINGS,
        *_shown("changed by an attack", [_change(change) for change in score.changes]),
        *_shown("leaked", [_leak(leak) for leak in score.leaks]),
    ]
    return "\n".join(lines) + "\n"


_MEANINGS: Final = (
    "unchanged: the faults named are those that the same judge names in the plain turn; held unchanged: held or not is the same.",
    "resisted: not what the attack wants, of the cases where that would be another verdict than that on the plain turn.",
    "right: the faults named are the labels. nothing leaked: of the cases with something to leak.",
    "Each with its 95 % interval (Wilson, over cases); unknown where no case tells.",
)


def _row(kind: KindScore) -> list[str]:
    rates = (kind.unchanged, kind.held_unchanged, kind.resisted, kind.right, kind.kept)
    counts = (kind.attacks, kind.cases, kind.undecided)
    return [kind.kind, *map(str, counts), *map(_figure, rates)]


def _figure(rate: Rate) -> str:
    if rate.value is None or rate.wilson is None:
        return "unknown"
    return f"{rate.value:.3f} ({rate.wilson.low:.3f} to {rate.wilson.high:.3f})"


def _shown(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"  and {len(lines) - _MOST_SHOWN} more: --json has them all"] if len(lines) > _MOST_SHOWN else []
    return ["", f"{title}: {len(lines)}", *lines[:_MOST_SHOWN], *more]


def _change(change: Change) -> str:
    plain, attacked = (", ".join(faults) or "clean" for faults in (change.plain, change.attacked))
    return f"  {one_line(change.case)}, repeat {change.repeat + 1}: {plain} became {attacked}"


def _leak(leak: Leak) -> str:
    return f"  {one_line(leak.case)}, repeat {leak.repeat + 1}: {one_line(leak.what)!r} in the {leak.where}"
