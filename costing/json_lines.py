"""
The ledger as plain data, one object per decision: the stable form that other tools read.

Text is never null; a number that is not known is. Field names and their order are a promise (`turngate log --json`).
"""

from __future__ import annotations

from .amounts import plain
from .records import Call, Decision
from .stamps import stamp
from .usage import Usage


def decision_json(decision: Decision) -> dict[str, object]:
    """
    Give a decision with its findings and calls.
    """
    line = decision.line
    return {
        "id": line.id,
        "at": stamp(line.at),
        "event": line.event,
        "session_id": line.session_id,
        "agent_id": line.agent_id,
        "project": line.project,
        "prompt_id": line.prompt_id,
        "outcome": line.outcome,
        "detail": line.detail,
        "findings": [
            {"fault": finding.fault, "quote": finding.quote, "reason": finding.reason} for finding in line.findings
        ],
        "spent": line.spent,
        "hook_ms": line.hook_ms,
        "calls": [call_json(call) for call in decision.calls],
    }


def call_json(call: Call) -> dict[str, object]:
    """
    Give a call; one that has not ended has no outcome.
    """
    start, end = call.start, call.end
    usage = end.usage if end is not None else None
    tokens: dict[str, object] = {name: getattr(usage, name, None) for name in Usage._fields}
    return {
        "id": call.id,
        "at": stamp(start.at),
        "backend": start.backend,
        "model": start.model,
        "model_answered": end.model_answered if end else "",
        "rubric": start.rubric,
        "rubric_hash": start.rubric_hash,
        **tokens,
        "cost_usd": plain(end.cost_usd) if end and end.cost_usd is not None else None,
        "price_source": end.price_source if end else "",
        "latency_ms": end.latency_ms if end else None,
        "try": start.try_number,
        "outcome": end.outcome if end else None,
        "request_id": end.request_id if end else "",
    }
