"""
Whether a judge must not be asked now: there is no money left, or its endpoint is down.

Cheap, so that it can be known before anything is done for a question: a few rows of the ledger, and no heavy import.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal

from .breaker import LOOK_BACK, is_open
from .budget import spent_budget
from .judgement import Judgement

if TYPE_CHECKING:
    from ..rubric.library import Rubric
    from .quiet_ledger import QuietLedger
    from .settings import JudgeSettings


def held_back(
    settings: JudgeSettings, rubric: Rubric, ledger: QuietLedger, *, endpoint: str, session_id: str, now: datetime
) -> Judgement | None:
    """
    Give the judgement of a judge that must not be asked now; None where it may be.

    `endpoint` is its name in the ledger. Where the ledger cannot be read, it may be asked.
    """

    def without_call(outcome: Literal["budget", "breaker_open"], detail: str) -> Judgement:
        return Judgement(outcome, None, detail, rubric.label, rubric.hash)

    spent = ledger.attempt(lambda found: spent_budget(found, settings, session_id, now), otherwise="")
    if spent:
        return without_call("budget", spent)

    recent = ledger.attempt(lambda found: found.recent_outcomes(endpoint, LOOK_BACK), otherwise=[])
    if is_open(recent, now):
        return without_call("breaker_open", f"{endpoint} failed too often in a row; left alone a minute")
    return None
