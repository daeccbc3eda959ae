from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from turngate.costing.json_lines import decision_json
from turngate.costing.records import Call, CallEnd, CallStart, Decision, DecisionLine, FindingLine
from turngate.costing.usage import Usage

AT = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
START = CallStart(AT, "anthropic", "claude-sonnet-5-5", "api.anthropic.com", "turn_end@1", "abc", 2)


def test_a_decision_has_the_promised_fields_in_their_order() -> None:
    """
    `log --json` gives these names in this order, with money as a plain decimal.
    """
    end = CallEnd("answered", 1312, "answered-model", Usage(1, 2, 3, 4, 5, 6), {}, Decimal("1E-7"), "user", "req_1")
    line = DecisionLine(
        AT,
        "Stop",
        "block_verdict",
        id="d1",
        session_id="s",
        agent_id="a",
        project="/p",
        prompt_id="p",
        detail="why",
        findings=(FindingLine("claim", "All tests pass.", "No test ran.", held=True),),
        spent=1,
        hook_ms=1400,
    )

    found: dict[str, Any] = decision_json(Decision(line, (Call("c1", START, end),)))

    assert list(found.items()) == [
        ("id", "d1"),
        ("at", "2026-11-30T12:00:00.123Z"),
        ("event", "Stop"),
        ("session_id", "s"),
        ("agent_id", "a"),
        ("project", "/p"),
        ("prompt_id", "p"),
        ("outcome", "block_verdict"),
        ("detail", "why"),
        ("findings", [{"fault": "claim", "quote": "All tests pass.", "reason": "No test ran."}]),
        ("spent", 1),
        ("hook_ms", 1400),
        ("calls", found["calls"]),
    ]
    assert list(found["calls"][0].items()) == [
        ("id", "c1"),
        ("at", "2026-11-30T12:00:00.123Z"),
        ("backend", "anthropic"),
        ("model", "claude-sonnet-5-5"),
        ("model_answered", "answered-model"),
        ("rubric", "turn_end@1"),
        ("rubric_hash", "abc"),
        ("input_tokens", 1),
        ("output_tokens", 2),
        ("thinking_tokens", 3),
        ("cache_write_5m_tokens", 4),
        ("cache_write_1h_tokens", 5),
        ("cache_read_tokens", 6),
        ("cost_usd", "0.0000001"),
        ("price_source", "user"),
        ("latency_ms", 1312),
        ("try", 2),
        ("outcome", "answered"),
        ("request_id", "req_1"),
    ]


def test_what_is_not_known_is_null_and_never_zero() -> None:
    """
    A call that never ended, and one without usage, have null for tokens, cost and time, in the same fields.
    """
    calls = (Call("c1", START, None), Call("c2", START, CallEnd("timeout")))

    found: dict[str, Any] = decision_json(Decision(DecisionLine(AT, "Stop", "pass_judge_timeout"), calls))

    assert found["spent"] is found["hook_ms"] is None
    open_call, cut_call = found["calls"]
    assert list(open_call) == list(cut_call)
    for name in (*Usage._fields, "cost_usd", "latency_ms"):
        assert open_call[name] is cut_call[name] is None
    assert open_call["outcome"] is None
    assert cut_call["outcome"] == "timeout"
