"""
A decision as a row of the live list.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from decimal import Decimal
from typing import Final, NamedTuple

from ..records import Call
from ..records import Decision as Decided
from ..screen import money, one_line
from ..stamps import stamp
from .outcome_words import tone, words

_LONGEST_WHY: Final = 400


class Row(NamedTuple):
    """
    One row.
    """

    id: str
    at: str
    """ISO 8601 in UTC."""
    time: str
    outcome: str
    words: str
    tone: str
    why: str
    project: str
    folder: str
    """The last part of the project's path."""
    tokens: str
    cost: str
    label: str


def row(decision: Decided, zone: tzinfo, label: str = "") -> Row:
    """
    Give the row of a decision.
    """
    line = decision.line
    why = "; ".join(f"{finding.fault}: {finding.reason}" for finding in line.findings) or line.detail
    return Row(
        id=line.id,
        at=stamp(line.at),
        time=f"{line.at.astimezone(zone):%Y-%m-%d %H:%M:%S}",
        outcome=line.outcome,
        words=words(line.outcome),
        tone=tone(line.outcome),
        why=_cut(one_line(why)),
        project=one_line(line.project),
        folder=one_line(folder_of(line.project)),
        tokens=tokens_of(decision.calls),
        cost=cost_of(decision.calls),
        label=label,
    )


def folder_of(project: str) -> str:
    """
    Give the last part of a path.
    """
    return project.rstrip("/\\").replace("\\", "/").rpartition("/")[2]


def tokens_of(calls: Sequence[Call]) -> str:
    """
    Say how many tokens went in and out; empty where nothing was asked.
    """
    usages = [call.end.usage for call in calls if call.end and call.end.usage]
    if not usages:
        return "tokens unknown" if calls else ""
    return f"{sum(one.prompt_tokens for one in usages):,} in, {sum(one.output_tokens for one in usages):,} out"


def cost_of(calls: Sequence[Call]) -> str:
    """
    Say what calls cost together; what is unknown is said to be.
    """
    if not calls:
        return ""
    costs = [call.end.cost_usd if call.end else None for call in calls]
    known = [cost for cost in costs if cost is not None]
    unknown = len(costs) - len(known)
    if not known:
        return f"{unknown} unknown" if unknown > 1 else "unknown"
    return money(sum(known, Decimal(0))) + (f" + {unknown} unknown" if unknown else "")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_WHY else text[: _LONGEST_WHY - 1] + "…"
