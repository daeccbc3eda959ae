"""
What `turngate cost` takes as a process on a ledger of a million calls, beside an interpreter that does nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from turngate.costing.database import FILE_NAME, open_database

from ..costing.million_calls import fill, plain_sum

AT_MOST = {"overview_ms": 300.0, "by_project_ms": 300.0, "ratio_to_plain_sum": 1.0, "write_with_sums_ratio": 1.5}

RUNS = 5


def run(scratch: Path) -> dict[str, float]:
    """
    The figures, in milliseconds: the first report adds all days up, later ones find them kept.
    """
    folder = scratch / "state"
    now = datetime.now(UTC)
    with open_database(folder):
        pass
    built_s = _timed(lambda: fill(folder / FILE_NAME, now))
    environ = {**os.environ, "TURNGATE_STATE_DIR": str(folder), "TZ": "Europe/Berlin"}
    command = shutil.which("turngate", path=sysconfig.get_path("scripts"))
    assert command is not None

    def report(*arguments: str) -> float:
        return _process_ms([command, "cost", *arguments], environ)

    first_ms = report()
    plain_ms = _timed(lambda: plain_sum(folder / FILE_NAME)) * 1000
    overview_ms = median(report() for _ in range(RUNS))
    return {
        "built_s": built_s,
        "first_report_ms": first_ms,
        "overview_ms": overview_ms,
        "by_project_ms": median(report("--by", "project") for _ in range(RUNS)),
        "last_7d_ms": median(report("--since", "7d") for _ in range(RUNS)),
        "by_session_ms": median(report("--by", "session", "--since", "7d") for _ in range(RUNS)),
        "bare_interpreter_ms": median(
            _process_ms([sys.executable, "-I", "-S", "-c", "pass"], environ) for _ in range(RUNS)
        ),
        "version_ms": median(_process_ms([command, "version"], environ) for _ in range(RUNS)),
        "plain_sum_ms": plain_ms,
        "ratio_to_plain_sum": overview_ms / plain_ms,
        "write_with_sums_ratio": _write_ratio(folder / FILE_NAME, now),
    }


def _timed(work: object) -> float:
    assert callable(work)
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _process_ms(command: Sequence[str], environ: Mapping[str, str]) -> float:
    def work() -> None:
        subprocess.run(command, env=dict(environ), check=True, stdout=subprocess.DEVNULL)

    return _timed(work) * 1000


def _write_ratio(file: Path, now: datetime) -> float:
    """
    What writing a call costs with the triggers, by what it costs without them.
    """
    with_sums = median(_write_s(file, now) for _ in range(3))
    with sqlite3.connect(file) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
    return with_sums / median(_write_s(file, now) for _ in range(3))


def _write_s(file: Path, now: datetime) -> float:
    from turngate.costing.ledger import Ledger
    from turngate.costing.records import CallEnd, CallStart

    start = CallStart(now, "anthropic", "claude-sonnet-5-5")
    with open_database(file.parent) as database:
        ledger = Ledger(database)

        def work() -> None:
            for _ in range(500):
                ledger.settle_call(ledger.open_call(start), start, CallEnd("answered", 1))

        return _timed(work)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder)), indent=1))
