from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from turngate.costing.database import Database, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.outcomes import Outcome
from turngate.costing.records import DecisionLine
from turngate.stopgate.recent_decisions import lately, shadow_week
from turngate.stopgate.settings import Settings

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(name="store")
def make_store(tmp_path: Path) -> Iterator[Database]:
    with open_database(tmp_path) as database:
        yield database


def decide(store: Database, outcome: Outcome, times: int = 1, *, ago: timedelta = DAY) -> list[str]:
    line = DecisionLine(NOW - ago, "Stop", outcome)
    return [Ledger(store).record_decision(line) for _ in range(times)]


def lines(store: Database | None, tmp_path: Path, mode: str = "shadow") -> dict[str, str]:
    return dict(lately(store, Settings(gate_mode=mode), str(tmp_path), NOW))


def test_status_says_when_the_gate_last_decided(store: Database, tmp_path: Path) -> None:
    """
    What is no stop does not count; silence shows.
    """
    assert "none was decided yet" in lines(store, tmp_path)["last stop"]

    decide(store, "pass_clean", ago=2 * DAY)
    decide(store, "pass_not_a_turn")
    decide(store, "jobs_deny")

    assert lines(store, tmp_path)["last stop"] == "2026-11-28 12:00 UTC: pass_clean"


def test_a_quiet_week_of_shadow_suggests_to_block(store: Database, tmp_path: Path) -> None:
    """
    Enough stops of a whole week, of which few would have been held and none was called wrong.
    """
    decide(store, "pass_clean", ago=8 * DAY)
    decide(store, "pass_clean", 18)
    decide(store, "shadow_verdict", 2)

    assert "2 of 20 judged stops would have been held" in lines(store, tmp_path)["suggestion"]
    assert "suggestion" not in lines(store, tmp_path, mode="block")


def test_a_hold_that_was_called_wrong_suggests_nothing(store: Database, tmp_path: Path) -> None:
    """
    One word of the person weighs more than the figures.
    """
    decide(store, "pass_clean", ago=8 * DAY)
    decide(store, "pass_clean", 30)
    (held,) = decide(store, "shadow_verdict")
    Ledger(store).label(held, "wrong", NOW)

    assert "suggestion" not in lines(store, tmp_path)


@pytest.mark.parametrize(
    "week",
    [
        pytest.param([("pass_clean", 30, DAY)], id="not a whole week"),
        pytest.param([("pass_clean", 1, 8 * DAY), ("pass_clean", 19, DAY)], id="too few"),
        pytest.param(
            [("pass_clean", 1, 8 * DAY), ("pass_clean", 20, DAY), ("shadow_verdict", 9, DAY)], id="too many holds"
        ),
        pytest.param(
            [("pass_clean", 1, 8 * DAY), ("pass_clean", 30, DAY), ("block_verdict", 1, DAY)], id="not all shadow"
        ),
    ],
)
def test_any_other_week_suggests_nothing(
    week: list[tuple[Outcome, int, timedelta]], store: Database, tmp_path: Path
) -> None:
    """
    A week that proves nothing is not spoken of.
    """
    for outcome, times, ago in week:
        decide(store, outcome, times, ago=ago)

    assert "suggestion" not in lines(store, tmp_path)


def test_the_figures_of_a_week(store: Database) -> None:
    """
    Judged are the stops with a verdict; background work that would have been waited for is held without one.
    """
    decide(store, "pass_clean", ago=8 * DAY)
    decide(store, "pass_clean", 3)
    decide(store, "pass_judge_error", 2)
    decide(store, "shadow_background")
    decide(store, "shadow_verdict")

    week = shadow_week(store, NOW)
    assert week is not None
    assert (week.judged, week.would_hold, week.called_wrong) == (4, 2, 0)
