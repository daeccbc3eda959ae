"""
Who judges a stop that several ask about, and who gets that answer.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from turngate.costing.ledger import Ledger

from .ledger_lines import MINUTE, NOW
from .places import Place


def test_one_of_many_claims_a_judgement_and_the_others_get_its_answer(ledger: Ledger) -> None:
    """
    The first who asks about a stop judges it; the answer is there for all once it is published.
    """
    assert [ledger.claim_judgement("stop", NOW, started_at=NOW) for _ in range(3)] == [True, False, False]
    assert ledger.claim_judgement("other stop", NOW, started_at=NOW)
    assert ledger.published_judgement("stop") is None

    ledger.publish_judgement("stop", "clean", NOW)

    assert ledger.published_judgement("stop") == "clean"
    assert ledger.published_judgement("other stop") is None
    assert not ledger.claim_judgement("stop", NOW + MINUTE, started_at=NOW)


@pytest.mark.parametrize("later", [timedelta(seconds=61), timedelta(hours=-1)], ids=["owner-died", "clock-set-back"])
def test_a_stale_claim_can_be_taken_over(ledger: Ledger, later: timedelta) -> None:
    """
    After a minute, or when the clock went back, the next who asks judges anew.
    """
    ledger.claim_judgement("stop", NOW, started_at=NOW)
    ledger.publish_judgement("stop", "old", NOW)

    assert ledger.claim_judgement("stop", NOW + later, started_at=NOW)
    assert ledger.published_judgement("stop") is None


def test_shared_answers_older_than_a_minute_are_deleted(ledger: Ledger) -> None:
    """
    The next answer takes them away, as the next claim does; it never takes itself away, however long it took.
    """
    ledger.claim_judgement("slow", NOW, started_at=NOW)
    ledger.claim_judgement("old", NOW, started_at=NOW)
    ledger.publish_judgement("old", "clean", NOW)

    ledger.publish_judgement("slow", "late", NOW + timedelta(seconds=61))

    assert ledger.database.rows("SELECT stop, answer FROM shared_judgements") == [("slow", "late")]
    ledger.claim_judgement("next", NOW + timedelta(seconds=62), started_at=NOW)
    assert ledger.database.rows("SELECT stop, answer FROM shared_judgements") == [("next", None)]


CLAIM = """
import sys, datetime
from turngate.costing.opening import open_ledger_store
from turngate.costing.ledger import Ledger
ledger = Ledger(open_ledger_store(sys.argv[1], sys.argv[2], busy_timeout_s=30))
now = datetime.datetime.now(datetime.timezone.utc)
print(sum(ledger.claim_judgement(str(n), now, started_at=now) for n in range(50)))
"""


def test_of_many_processes_one_claims_each_judgement(place: Place) -> None:
    """
    Four processes that claim the same 50 stops at once get 50 claims between them.
    """
    workers = [
        subprocess.Popen([sys.executable, "-c", CLAIM, place.folder, place.url], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]

    assert sum(int(worker.communicate()[0]) for worker in workers) == 50
