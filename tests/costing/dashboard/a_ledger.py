"""
A small ledger whose sums are worked out by hand, and texts that try to break out of a page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from turngate.costing.dashboard.dashboard import Dashboard, Sources
from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store
from turngate.costing.outcomes import Outcome
from turngate.costing.records import CallEnd, CallStart, DecisionLine, FindingLine
from turngate.costing.usage import Usage

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">{{ 7 * 7 }}"
PARSER, SHOP, EVIL = "/home/ann/parser", "/home/ann/shop", f"/srv/{HOSTILE}"
CLAIM = FindingLine("claim", "All tests pass.", "No test was run in this turn.", held=True)


def a_decision(
    ledger: Ledger,
    number: int,
    outcome: Outcome = "pass_clean",
    *,
    at: datetime = NOW,
    project: str = PARSER,
    findings: tuple[FindingLine, ...] = (),
    detail: str = "",
) -> str:
    """
    Write a decision with the id `d<number>`.
    """
    line = DecisionLine(
        at,
        "Stop",
        outcome,
        id=f"d{number}",
        session_id="s1",
        project=project,
        findings=findings,
        detail=detail,
        hook_ms=900,
    )
    return ledger.record_decision(line)


def a_call(
    ledger: Ledger,
    number: int,
    cost: str | None,
    *,
    model: str = "claude-sonnet-5-5",
    at: datetime = NOW,
    project: str = PARSER,
    took_ms: int = 1500,
) -> None:
    """
    Write a call for the decision `d<number>`, of 1,000 tokens in, 100 out and 3,000 read from the cache.
    """
    start = CallStart(
        at, "anthropic", model, "api.example", decision_id=f"d{number}", event="Stop", session_id="s1", project=project
    )
    usage = Usage(1000, 100, 0, 0, 0, 3000)
    end = CallEnd("answered", took_ms, model, usage, cost_usd=None if cost is None else Decimal(cost))
    ledger.settle_call(ledger.open_call(start), start, end)


def fill(ledger: Ledger) -> None:
    """
    Write one week: $0.06 for two held stops in one project, and a call of unknown cost in the other.
    """
    a_decision(ledger, 1, "block_verdict", at=NOW - 2 * DAY, findings=(CLAIM,))
    a_call(ledger, 1, "0.01", at=NOW - 2 * DAY)
    a_decision(ledger, 2, "block_verdict", at=NOW - DAY, findings=(CLAIM,))
    a_call(ledger, 2, "0.02", at=NOW - DAY)
    a_decision(ledger, 3, "pass_clean")
    a_call(ledger, 3, "0.03", model="claude-haiku-5-5")
    a_decision(ledger, 4, "pass_judge_error", project=SHOP, detail="500 from the endpoint")
    a_call(ledger, 4, None, project=SHOP)
    a_decision(ledger, 5, "pass_cap_spent")
    a_decision(ledger, 6, "jobs_deny")
    a_decision(ledger, 7, "pass_clean", at=NOW - 40 * DAY)
    a_call(ledger, 7, "5", at=NOW - 40 * DAY)


def fill_with_hostile(ledger: Ledger) -> None:
    """
    Write a decision all of whose texts try to become part of the page: `d9`.
    """
    finding = FindingLine(HOSTILE, HOSTILE, HOSTILE, held=True)
    a_decision(ledger, 9, "block_verdict", project=EVIL, findings=(finding,), detail=HOSTILE)
    a_call(ledger, 9, "0.5", model=HOSTILE, project=EVIL)
    facts = {
        "edited_files": [HOSTILE],
        "checks": [{"command": HOSTILE, "passed": False, "edited_after": True}],
        "holds": [HOSTILE],
    }
    call = {"tool": "Bash", "line": HOSTILE, "kind": "check", "failed": True}
    turn = {
        "request": HOSTILE,
        "reply": HOSTILE,
        "previous_reply": HOSTILE,
        "later_prompts": [HOSTILE],
        "tool_calls": [call],
        "facts": facts,
    }
    ledger.record_turn("d9", json.dumps(turn))
    ledger.label("d9", HOSTILE, NOW, HOSTILE)


def fill_with_commands(ledger: Ledger) -> None:
    """
    Write the week, and after it two thousand commands that were let through.
    """
    fill(ledger)
    names = (
        "at, event, session_id, agent_id, project, prompt_id, human_turn, detail, findings, dropped, transcript_path"
    )
    numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1999) SELECT"
    with ledger.database.write() as transaction:
        transaction.execute(
            f"INSERT INTO decisions (id, outcome, reply_chars, client_version, {names}) {numbers}"
            " 'j' || i, 'jobs_pass', 0, '', '2026-11-30T12:00:01.000Z', 'PreToolUse', 's1', '', ?, '', '', '', '[]', 0, '' FROM n",
            (PARSER,),
        )


def a_dashboard(
    ledger: Ledger | None, *, trouble: str = "", usd_per_day: str | None = None, **health: Any
) -> Dashboard:
    """
    Give the pages over a ledger, at noon of the last day.
    """
    found: Mapping[str, Any] = {
        "version": "0.1.0",
        "alive_since": "2026-11-30T11:00:00.000Z",
        "ledger": "/state/turngate.db",
        "breaker_open": [],
        "calls_in_flight": 0,
        "spent_today_usd": "0.03",
        "unpriced_calls_today": 1,
        **health,
    }
    sources = Sources(
        ledger=lambda: (ledger, trouble),
        health=lambda: found,
        usd_per_day=lambda: None if usd_per_day is None else Decimal(usd_per_day),
        faults=lambda: ("claim", "promise", "cave"),
        safe_note=lambda text: text.replace("hunter2", "[secret]"),
        zone=lambda: UTC,
        now=lambda: NOW,
    )
    return Dashboard("0.1.0", sources)


def open_ledger(folder: Path) -> Ledger:
    """
    Open a ledger of its own in a folder.
    """
    return Ledger(open_ledger_store(folder))
