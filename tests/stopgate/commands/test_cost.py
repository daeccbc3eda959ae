from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart, DecisionLine
from turngate.costing.usage import Usage
from turngate.stopgate.cli import main

RAW = {"input_tokens": 1000, "output_tokens": 100}
"""1000 x 2 + 100 x 10 = 3000 millionths of a dollar by claude-sonnet-5-5."""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    state = {"TURNGATE_STATE_DIR": str(tmp_path / "state"), "TURNGATE_CONFIG": str(tmp_path / "config.toml")}
    return {**os.environ, **state, "TZ": "UTC"}


@pytest.fixture
def filled(environ: dict[str, str]) -> dict[str, str]:
    """
    A hold and its call now, and another of unknown cost two days ago.
    """
    now = datetime.now(UTC)
    with open_database(environ["TURNGATE_STATE_DIR"]) as database:
        ledger = Ledger(database)
        for at, cost in ((now, Decimal("0.5")), (now - timedelta(days=2), None)):
            decision = ledger.record_decision(DecisionLine(at, "Stop", "block_verdict", session_id="s1", project="/p"))
            start = CallStart(
                at, "anthropic", "claude-sonnet-5-5", decision_id=decision, event="Stop", session_id="s1", project="/p"
            )
            usage = Usage(1000, 100)
            ledger.settle_call("", start, CallEnd("answered", 1500, usage=usage, raw_usage=RAW, cost_usd=cost))
    return environ


def run(
    arguments: list[str], environ: dict[str, str], capsys: pytest.CaptureFixture[str], code: int = 0
) -> tuple[str, str]:
    assert main(arguments, environ) == code
    said = capsys.readouterr()
    return said.out, said.err


def test_without_options_there_is_an_overview(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    Today, seven days and the month side by side, the unknown counted, the budget used, then each day.
    """
    Path(filled["TURNGATE_CONFIG"]).write_text("[budget]\nusd_per_day = 2\n")

    out, err = run(["cost"], filled, capsys)

    assert err == ""
    lines = {line.split("  ")[0]: line.split() for line in out.splitlines()}
    assert lines["spent"][1:3] == ["$0.5000", "$0.5000"]
    assert lines["calls of unknown cost"][4:6] == ["0", "1"]
    assert lines["held"][1:3] == ["1", "2"]
    assert lines["cost per upheld block"][4:6] == ["$0.5000", "$0.2500"]
    assert lines["judge's time, median"][3:7] == ["1.50", "s", "1.50", "s"]
    assert "budget: $0.5000 of $2.0000 used today in UTC (25%)" in out
    assert "Costs leave out the calls whose cost is unknown." in out
    assert out.splitlines()[-1].split()[:4] == ["total", "2", "2", "2"]
    assert "day (UTC)" in out


def test_json_has_the_overview_beside_the_days(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    The keys that were there before stay; what is unknown is null with a count.
    """
    found: dict[str, Any] = json.loads(run(["cost", "--json"], filled, capsys)[0])

    assert (found["by"], found["zone"], found["since"], found["until"]) == ("day", "UTC", None, None)
    assert [(row["cost_usd"], row["unknown_costs"]) for row in found["rows"]] == [(None, 1), ("0.5", 0)]
    assert found["total"]["cost_usd"] == "0.5"
    overview = found["overview"]
    assert (overview["today"]["cost_usd"], overview["last_7_days"]["unknown_costs"]) == ("0.5", 1)
    assert (overview["today"]["latency_p95_ms"], overview["budget"]) == (1500, None)


@pytest.mark.parametrize("by", ["day", "model", "project", "event", "outcome", "session"])
@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]], ids=["text", "json", "csv"])
def test_every_way_has_every_form(
    filled: dict[str, str], capsys: pytest.CaptureFixture[str], by: str, form: list[str]
) -> None:
    """
    The name of the way stands at its column.
    """
    out, _ = run(["cost", "--by", by, *form], filled, capsys)

    assert by in out
    assert "0.5" in out


@pytest.mark.parametrize(
    ("window", "calls"),
    [
        (["--since", "24h"], 1),
        (["--since", "7d"], 2),
        (["--until", "24h"], 1),
        (["--since", "3d", "--until", "24h", "--by", "session"], 1),
        (["--since", "1h", "--by", "event"], 1),
        (["--until", "2026-01-01"], 0),
    ],
    ids=["day", "week", "until", "between", "hour", "long-ago"],
)
def test_a_window_limits_the_report(
    filled: dict[str, str], capsys: pytest.CaptureFixture[str], window: list[str], calls: int
) -> None:
    """
    Days, times and how long ago.
    """
    found = json.loads(run(["cost", *window, "--json"], filled, capsys)[0])

    assert found["total"]["calls"] == calls
    assert "overview" not in found


def test_the_zone_is_told(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    Whose days these are stands with them: those of `--tz`, else the machine's.
    """
    assert "day (Asia/Tokyo)" in run(["cost", "--tz", "Asia/Tokyo"], filled, capsys)[0]
    assert "day (Europe/Berlin)" in run(["cost", "--by", "day"], {**filled, "TZ": "Europe/Berlin"}, capsys)[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tz", "Mars"], "--tz: 'Mars' is no time zone that this machine knows: write it like Europe/Berlin"),
        (["--since", "x"], "--since: 'x' is no time: write it like 2026-11-30, 2026-11-30T14:00, 24h or 7d"),
        (["--until", "x"], "--until: 'x' is no time: write it like 2026-11-30, 2026-11-30T14:00, 24h or 7d"),
        (["--since", "1h", "--until", "2h"], "--since 1h is not before --until 2h"),
        (["reprice", "--since", "x"], "--since: 'x' is no time: write it like 2026-11-30, 2026-11-30T14:00, 24h or 7d"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_read_is_one_line(
    filled: dict[str, str], capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """
    Exit code 2, and what would be right.
    """
    assert run(["cost", *arguments], filled, capsys, code=2) == ("", f"turngate: {said}\n")


def test_reprice_says_what_changed(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    A trial writes nothing; the real thing makes the unknown known, and reports have it at once.
    """
    run(["cost"], filled, capsys)
    text = "sum before: $0.5, unknown costs: 1\nsum after:  $0.006\n"

    trial, _ = run(["cost", "reprice", "--dry-run"], filled, capsys)
    done, _ = run(["cost", "reprice"], filled, capsys)
    again, _ = run(["cost", "reprice", "--since", "24h"], filled, capsys)

    assert trial == f"calls looked at: 2, would change: 2\n{text}"
    assert done == f"calls looked at: 2, changed: 2\n{text}"
    assert again.startswith("calls looked at: 1, changed: 0\n")
    assert json.loads(run(["cost", "--json"], filled, capsys)[0])["total"]["cost_usd"] == "0.006"


def test_reprice_takes_the_users_prices_or_none(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    A file of prices that cannot be read ends it before anything is written.
    """
    prices = Path(filled["TURNGATE_CONFIG"]).with_name("prices.toml")
    prices.write_text('[[price]]\nmodel = "claude-sonnet-5-5"\ninput = -1\noutput = 1\n')
    out, err = run(["cost", "reprice"], filled, capsys, code=2)
    assert (out, "is no price" in err) == ("", True)

    prices.write_text('[[price]]\nmodel = "claude-sonnet-5-5"\ninput = 1\noutput = 1\n')
    assert "sum after:  $0.0022\n" in run(["cost", "reprice"], filled, capsys)[0]


def test_repricing_nothing_is_said(environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    Without a ledger there is nothing to do, and no file is made.
    """
    assert run(["cost", "reprice"], environ, capsys) == ("nothing is recorded yet\n", "")
    assert not Path(environ["TURNGATE_STATE_DIR"]).exists()
