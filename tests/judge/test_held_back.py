"""
Knowing beforehand that a judge must not be asked.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart
from turngate.judge.connect import Judge, connect
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.settings import JudgeSettings
from turngate.rubric.library import load

HOST = "gateway.example"


def judge_of(ledger: Ledger | None, **settings: Any) -> Judge:
    found = connect(
        JudgeSettings(base_url=f"https://{HOST}", **settings),
        {"ANTHROPIC_API_KEY": "k1"},
        ledger,
        CallContext(session_id="s1"),
        deadline_at=0.0,
    )
    assert isinstance(found, Judge)
    return found


def fill(ledger: Ledger, calls: int, *, cost_usd: str = "1", session_id: str = "s1") -> None:
    for _ in range(calls):
        start = CallStart(datetime.now(UTC), "anthropic", "m", HOST, session_id=session_id)
        ledger.settle_call(ledger.open_call(start), start, CallEnd("error", cost_usd=Decimal(cost_usd)))


@pytest.mark.parametrize(
    ("calls", "settings", "outcome", "detail"),
    [
        pytest.param(5, {}, "breaker_open", f"{HOST} failed too often in a row; left alone a minute", id="breaker"),
        pytest.param(1, {"usd_per_day": "1"}, "budget", "budget.usd_per_day of $1 is spent", id="day"),
        pytest.param(1, {"usd_per_session": "1"}, "budget", "budget.usd_per_session of $1 is spent", id="session"),
        pytest.param(5, {"usd_per_day": "5"}, "budget", "budget.usd_per_day of $5 is spent", id="both"),
    ],
)
def test_a_judge_that_must_not_be_asked_says_so_without_a_turn(
    ledger: Ledger, calls: int, settings: dict[str, str], outcome: str, detail: str
) -> None:
    """
    The judgement is there before any evidence is built, with the rubric that would have been asked.
    """
    fill(ledger, calls)

    rubric = load()
    assert judge_of(ledger, **settings).held_back() == Judgement(
        outcome,  # pyright: ignore[reportArgumentType]
        None,
        detail,
        rubric.label,
        rubric.hash,
    )


def test_a_judge_that_may_be_asked_is_not_held_back(ledger: Ledger) -> None:
    """
    Four failures, and the money of another session, hold nobody back.
    """
    fill(ledger, 4, session_id="s2")

    assert judge_of(ledger, usd_per_session="1", usd_per_day="5").held_back() is None


def test_without_a_ledger_nobody_is_held_back(ledger: Ledger) -> None:
    """
    A ledger that is not there, or cannot be read, never changes the answer.
    """
    ledger.database.close()

    assert judge_of(None, usd_per_day="0.01").held_back() is None
    assert judge_of(ledger, usd_per_day="0.01").held_back() is None


HEAVY = ("anthropic", "httpx", "httpx2", "pydantic", "tenacity", "asyncio", "genai_prices", "dataclasses", "http")

ASK_BEFOREHAND = f"""
import sys
from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.judge.connect import connect
from turngate.judge.context import CallContext
from turngate.judge.settings import JudgeSettings
with open_database(sys.argv[1]) as database:
    judge = connect(JudgeSettings(), {{"ANTHROPIC_API_KEY": "k1"}}, Ledger(database), CallContext(), deadline_at=0.0)
    print(judge.held_back(), [name for name in {HEAVY!r} if name in sys.modules])
"""


def test_asking_beforehand_imports_nothing_heavy(ledger: Ledger) -> None:
    """
    Neither SDK nor event loop nor price table is loaded to learn that nobody is held back.
    """
    folder = ledger.database.path.rpartition("/")[0]

    done = subprocess.run([sys.executable, "-c", ASK_BEFOREHAND, folder], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "None []"
