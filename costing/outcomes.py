"""
The outcomes: how a stop and how a judge's call can end. Ledger, metrics and log share these words.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

Outcome = Literal[
    "pass_clean",
    "pass_noted",
    "pass_empty_reply",
    "pass_api_error",
    "pass_not_a_turn",
    "pass_off",
    "pass_cap_spent",
    "pass_wakeup_pending",
    "pass_ungrounded",
    "pass_budget",
    "pass_judge_timeout",
    "pass_judge_error",
    "pass_judge_unreadable",
    "pass_judge_refused",
    "pass_breaker_open",
    "pass_no_judge",
    "pass_state_error",
    "pass_service_error",
    "pass_internal_error",
    "block_background",
    "block_verdict",
    "jobs_pass",
    "jobs_deny",
    "jobs_unparsed",
    "shadow_background",
    "shadow_verdict",
]
"""How a decision of the gate ended."""

CallOutcome = Literal["answered", "timeout", "error", "rejected", "unreadable", "refused"]
"""
How one try at a judge ended. A try that was killed before its end has none.

`rejected`: the endpoint is there and does not take this request, for its key, its model or a field of it. `refused`: the
model declined to answer.
"""

COMMAND_PASSED: Final[Outcome] = "jobs_pass"
"""By far the most frequent one, and nothing came of it: lists leave it out unless they are asked for it."""

HOLDS: Final[tuple[Outcome, ...]] = ("block_background", "block_verdict", "shadow_background", "shadow_verdict")
"""Of a stop that was held, or would have been if not for shadow mode."""

OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
CALL_OUTCOMES: Final[tuple[CallOutcome, ...]] = get_args(CallOutcome)
