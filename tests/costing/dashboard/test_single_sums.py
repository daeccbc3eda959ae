"""
Pages that are asked for at once: none waits for another's years, and the same sum is added up once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Any

import pytest

from turngate.costing.dashboard.pooled_store import PooledStore
from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store

from .a_ledger import DAY, NOW, a_call, a_dashboard, a_decision

PATIENCE_S = 20.0
LONG_AGO = (NOW - 300 * DAY).isoformat()[:10]


class SlowStore(PooledStore):
    """
    A real store in which adding up a day of long ago takes until it is let go.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(lambda: open_ledger_store(folder))
        self.is_held = Event()
        self.let_go = Event()
        self.statements: list[str] = []
        self.asked = 0
        self.all_asked = Event()
        self._counting = Lock()

    @property
    def path(self) -> str:
        with self._counting:
            self.asked += 1
            if self.asked == 3:
                self.all_asked.set()
        return super().path

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if "GROUP BY" in sql:
            self.statements.append(sql)
            if values and str(values[0]).startswith(LONG_AGO):
                self.is_held.set()
                assert self.let_go.wait(PATIENCE_S)
        return super().rows(sql, values)


@pytest.fixture(name="slow")
def _slow(tmp_path: Path) -> Iterator[SlowStore]:
    with SlowStore(tmp_path) as store:
        assert store.reopen() == ""
        ledger = Ledger(store)
        for number, at in enumerate((NOW, NOW - DAY, *(NOW - days * DAY for days in range(291, 301)))):
            a_decision(ledger, number, at=at)
            a_call(ledger, number, "0.01", at=at)
        yield store
        store.let_go.set()


@pytest.mark.parametrize("way", ["overview", "live", "turn", "zone"])
def test_no_page_waits_for_the_years_of_another(slow: SlowStore, way: str) -> None:
    """
    While all time is added up, every other page is shown.
    """
    dashboard = a_dashboard(Ledger(slow))
    with ThreadPoolExecutor(1) as other:
        years = other.submit(dashboard.overview, "span=all")
        assert slow.is_held.wait(PATIENCE_S)
        page = {
            "overview": lambda: dashboard.overview(""),
            "live": lambda: dashboard.live(""),
            "turn": lambda: dashboard.turn("d1", "x"),
            "zone": lambda: dashboard.overview("tz=Asia/Tokyo"),
        }[way]()
        was_done = years.done()
        slow.let_go.set()
        shown = years.result(PATIENCE_S)

    assert page
    assert not was_done
    assert "$0.1200" in shown


def test_the_same_sum_is_added_up_once(slow: SlowStore) -> None:
    """
    Three tabs of the same years cost what one does.
    """
    dashboard = a_dashboard(Ledger(slow))
    with ThreadPoolExecutor(3) as tabs:
        pages = [tabs.submit(dashboard.overview, "span=all") for _ in range(3)]
        assert slow.is_held.wait(PATIENCE_S)
        assert slow.all_asked.wait(PATIENCE_S)
        slow.let_go.set()
        shown = {page.result(PATIENCE_S) for page in pages}
    by_three = len(slow.statements)
    slow.statements.clear()
    with slow.write() as transaction:
        transaction.execute("DELETE FROM day_sums")
    dashboard.overview("span=all")

    assert len(shown) == 1
    assert by_three == len(slow.statements)


def test_a_sum_that_fails_fails_for_all_who_wait_and_is_tried_again(slow: SlowStore, tmp_path: Path) -> None:
    """
    What went wrong is told on each page, and the next one asks anew.
    """
    slow.let_go.set()
    dashboard = a_dashboard(Ledger(slow))
    broken = a_dashboard(Ledger(PooledStore(lambda: open_ledger_store(tmp_path / "file"))))
    (tmp_path / "file").write_text("no folder")

    assert "The ledger cannot be read" in broken.overview("")
    assert "The ledger cannot be read" in broken.overview("")
    assert "$0.0200" in dashboard.overview("")
