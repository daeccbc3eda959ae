"""
The outcomes in words, and how grave each is, for somebody who reads them for the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from ..outcomes import Outcome

Tone = Literal["hold", "trouble", "fine", "plain"]

WORDS: Final[Mapping[Outcome, str]] = {
    "pass_clean": "judged, no fault found",
    "pass_noted": "judged, a fault was noted only",
    "pass_empty_reply": "nothing to judge: an empty reply",
    "pass_api_error": "nothing to judge: an error of the API",
    "pass_not_a_turn": "not the end of a turn",
    "pass_off": "the gate was off or paused",
    "pass_cap_spent": "not judged: this turn was held as often as it may be",
    "pass_wakeup_pending": "the agent is about to be woken",
    "pass_ungrounded": "judged, but no finding could be found in the reply",
    "pass_budget": "not judged: the budget is spent",
    "pass_judge_timeout": "not judged: no answer in time",
    "pass_judge_error": "not judged: the judge could not be asked",
    "pass_judge_unreadable": "not judged: the answer could not be read",
    "pass_judge_refused": "not judged: the model declined",
    "pass_breaker_open": "not judged: the judge failed too often just before",
    "pass_no_judge": "not judged: no judge is set up",
    "pass_state_error": "not held: the count could not be kept",
    "pass_service_error": "not decided: the service failed",
    "pass_internal_error": "not decided: a fault of turngate",
    "block_background": "held: background work still runs",
    "block_verdict": "held: the judge found a fault",
    "jobs_pass": "command let through",
    "jobs_deny": "command denied: it starts or ends what nobody tracks",
    "jobs_unparsed": "command let through: it could not be read",
    "shadow_background": "would have been held for background work (shadow mode)",
    "shadow_verdict": "would have been held for a fault (shadow mode)",
}

_TROUBLE: Final = (
    *("pass_budget", "pass_judge_timeout", "pass_judge_error", "pass_judge_unreadable", "pass_judge_refused"),
    *("pass_breaker_open", "pass_no_judge", "pass_state_error", "pass_service_error", "pass_internal_error"),
)


def words(outcome: str) -> str:
    """
    Say what an outcome means; one that is damaged stands for itself.
    """
    return next((said for known, said in WORDS.items() if known == outcome), outcome)


def tone(outcome: str) -> Tone:
    """
    Say how grave an outcome is.
    """
    if outcome.startswith(("block_", "shadow_")) or outcome == "jobs_deny":
        return "hold"
    if outcome in _TROUBLE:
        return "trouble"
    return "fine" if outcome == "pass_clean" else "plain"
