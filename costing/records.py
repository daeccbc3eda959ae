"""
The records of the ledger: what is known of a decision and of each call made for it.

On the hook's way, so `NamedTuple` and no heavy import.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from .outcomes import CallOutcome, Outcome
from .usage import Usage

if TYPE_CHECKING:
    from decimal import Decimal

BATCH: Final = "anthropic_batch"
"""The back end of a call by the Message Batches API, which costs half."""


class CallStart(NamedTuple):
    """
    What is known of a try before it is sent.
    """

    at: datetime
    backend: str
    model: str
    endpoint: str = ""
    """An address without its scheme (host, port and path), or the path of a script; empty where nobody is asked."""
    rubric: str = ""
    """Id and version, for example `turn_end@1`."""
    rubric_hash: str = ""
    try_number: int = 1
    decision_id: str = ""
    event: str = ""
    session_id: str = ""
    agent_id: str = ""
    project: str = ""
    human_turn: str = ""


class CallEnd(NamedTuple):
    """
    What came of a try.
    """

    outcome: CallOutcome
    latency_ms: int | None = None
    model_answered: str = ""
    usage: Usage | None = None
    """None where the endpoint told none: it may still have been billed."""
    raw_usage: Mapping[str, object] | None = None
    """As the endpoint gave it, so that the cost can be worked out again."""
    cost_usd: Decimal | None = None
    """None where usage or price is unknown."""
    price_source: str = ""
    request_id: str = ""
    detail: str = ""


class Call(NamedTuple):
    """
    One try as the ledger has it.
    """

    id: str
    start: CallStart
    end: CallEnd | None
    """None where the try has not ended, or was killed."""


class FindingLine(NamedTuple):
    """
    One finding of a verdict, and what the gate made of it.
    """

    fault: str
    quote: str
    reason: str
    held: bool | None = None
    """Whether it held the turn; None where it was not asked to."""


class DecisionLine(NamedTuple):
    """
    What the gate decided about one event, and why.
    """

    at: datetime
    event: str
    outcome: Outcome
    id: str = ""
    """Empty: the ledger makes one. Calls refer to it, so a gate that calls a judge makes it first (`stamps.new_id`)."""
    session_id: str = ""
    agent_id: str = ""
    project: str = ""
    prompt_id: str = ""
    human_turn: str = ""
    detail: str = ""
    findings: tuple[FindingLine, ...] = ()
    dropped: int = 0
    """Findings of the judge that were left out."""
    spent: int | None = None
    """Continuations of the human turn that are spent after this decision; None where they were not read."""
    hook_ms: int | None = None
    transcript_path: str = ""
    reply_chars: int | None = None
    client_version: str = ""


class Decision(NamedTuple):
    """
    A decision with the calls that were made for it.
    """

    line: DecisionLine
    calls: tuple[Call, ...] = ()


class LabelLine(NamedTuple):
    """
    What a person says of a decision.
    """

    decision_id: str
    label: str
    """The faults of the reply, with commas between them; `none` where it is clean."""
    at: datetime
    note: str = ""


class Spent(NamedTuple):
    """
    A sum of costs, and the number of calls that it leaves out because their cost is unknown.
    """

    usd: Decimal
    unknown: int


class RecentCall(NamedTuple):
    """
    How a recent call ended, for a breaker.
    """

    at: datetime
    outcome: CallOutcome | None
    latency_ms: int | None
