"""
The judgement: what came of asking, and what it took.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from ..rubric.turn import Turn
from ..rubric.verdict import Verdict

AskOutcome = Literal["answered", "timeout", "error", "unreadable", "refused", "breaker_open", "budget", "no_judge"]


class Judgement(NamedTuple):
    """
    The outcome of asking once. `verdict` is None unless the outcome is `answered`.
    """

    outcome: AskOutcome
    verdict: Verdict | None = None
    detail: str = ""
    """Why there is no verdict, in one masked line; of an answer, who made it, where that was another machine."""
    rubric: str = ""
    """Id and version, for example `turn_end@1`."""
    rubric_hash: str = ""
    calls: tuple[str, ...] = ()
    """Ids of the ledger lines of the tries that this judgement paid for."""


Ask = Callable[[Turn], Judgement]
"""Asks a judge about one turn. Never raises for what a judge, a network or an endpoint does."""
