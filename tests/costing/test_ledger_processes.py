"""
What one ledger is to several processes, killed and locked ones among them.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import Call, DecisionLine, Spent
from turngate.costing.store import StoreError

from .ledger_lines import NOW, a_start
from .places import Place


def test_a_try_has_its_line_before_it_is_sent(ledger: Ledger, place: Place) -> None:
    """
    An opened call is seen by other processes at once, without outcome, tokens or cost.
    """
    call_id = ledger.open_call(a_start())

    with place.open() as beside:
        assert Ledger(beside).calls() == [Call(call_id, a_start(), None)]
        assert Ledger(beside).spent_usd(NOW) == Spent(Decimal(0), 1)


OPEN_AND_HANG = """
import sys, datetime, time
from turngate.costing.opening import open_ledger_store
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallStart
ledger = Ledger(open_ledger_store(sys.argv[1], sys.argv[2]))
print(ledger.open_call(CallStart(datetime.datetime.now(datetime.timezone.utc), "anthropic", "m")), flush=True)
time.sleep(60)
"""


def test_a_killed_call_stays_in_the_ledger_as_unknown(ledger: Ledger, place: Place) -> None:
    """
    After `kill -9` in the middle of a call its line is there, its cost counts as unknown, and the ledger works.
    """
    caller = subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_HANG, place.folder, place.url], stdout=subprocess.PIPE, text=True
    )
    assert caller.stdout is not None
    call_id = caller.stdout.readline().strip()
    caller.send_signal(signal.SIGKILL)
    caller.communicate()

    assert [(call.id, call.end) for call in ledger.calls()] == [(call_id, None)]
    assert ledger.spent_usd(datetime(2026, 1, 1, tzinfo=UTC)).unknown == 1
    ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean"))


RECORD_FIFTY = """
import sys, datetime
from turngate.costing.opening import open_ledger_store
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart, DecisionLine
from turngate.costing.stamps import new_id
ledger = Ledger(open_ledger_store(sys.argv[1], sys.argv[2], busy_timeout_s=30))
for number in range(50):
    now = datetime.datetime.now(datetime.timezone.utc)
    decision = new_id(now)
    start = CallStart(now, "anthropic", "m", decision_id=decision)
    ledger.settle_call(ledger.open_call(start), start, CallEnd("answered"))
    ledger.record_decision(DecisionLine(now, "Stop", "pass_clean", id=decision, session_id=sys.argv[3]))
"""


def test_many_processes_write_one_ledger(ledger: Ledger, place: Place) -> None:
    """
    Eight processes write 50 decisions with a call each at the same time, and every line is there.
    """
    workers = [
        subprocess.Popen([sys.executable, "-c", RECORD_FIFTY, place.folder, place.url, str(name)]) for name in range(8)
    ]

    assert [worker.wait() for worker in workers] == [0] * 8
    assert [len(ledger.decisions(session_id=str(name))) for name in range(8)] == [50] * 8
    assert all(len(decision.calls) == 1 for decision in ledger.decisions())


def test_a_locked_ledger_is_a_store_error(tmp_path: Path) -> None:
    """
    While somebody else writes for longer than the busy timeout, nothing but StoreError comes out.
    """
    with open_database(tmp_path) as holder, open_database(tmp_path, busy_timeout_s=0.01) as database:
        ledger = Ledger(database)
        with holder.write():
            with pytest.raises(StoreError, match="locked"):
                ledger.open_call(a_start())
            with pytest.raises(StoreError, match="locked"):
                ledger.record_decision(DecisionLine(NOW, "Stop", "pass_clean"))
            with pytest.raises(StoreError, match="locked"):
                ledger.claim_judgement("stop", NOW, started_at=NOW)
        ledger.open_call(a_start())


def test_a_locked_store_can_be_waited_for_less(tmp_path: Path) -> None:
    """
    A shorter wait is of that write only.
    """
    with open_database(tmp_path) as holder, open_database(tmp_path, busy_timeout_s=30) as database:
        with holder.write(), pytest.raises(StoreError, match="locked"):
            Ledger(database).open_call(a_start(), wait_s=0.01)

        assert database.rows("PRAGMA busy_timeout") == [(30_000,)]
