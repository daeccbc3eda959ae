"""
How fast the service decides, starts and works for many at once, and what memory it keeps; installed from a wheel.

The clients are a process of their own, on the same machine: at full speed the two share its processors.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.stopgate.played_client import PlayedClient
from turngate.stopgate.transcript import read

from .installed import ROOT, cpu_s, ended, installed, lend_libraries, rss_mb, serving, started
from .load import HEALTHZ, Client, Load, Took, loaded

DECISIONS = 1000
STARTS = 10
CLIENTS = 8
PORTIONS = 10
PORTION = 10_000
"""Stops after which the memory is read."""
DELAY_S = 1
JUDGED = {50: 10, 200: 5}
"""Clients, and the stops of each."""

FLAT_MB = 5.0
"""What memory may grow after the first portion: noise."""

AT_MOST = {
    "empty_reply_p99_ms": 5.0,
    "no_judge_p99_ms": 5.0,
    "no_judge_real_p99_ms": 5.0,
    "first_answer_ms": 300.0,
    "first_answer_p95_ms": 300.0,
    "judged_50_call_p95_ms": 1100.0,
    "judged_200_call_p95_ms": 1100.0,
    f"rss_after_{PORTIONS * PORTION}_mb": 120.0,
    "rss_growth_after_first_portion_mb": FLAT_MB,
}
AT_LEAST = {"empty_reply_per_s": 500.0, "no_judge_per_s": 500.0}

OUTCOMES = {"empty_reply": "pass_empty_reply", "no_judge": "pass_no_judge", "no_judge_real": "pass_no_judge"}
"""What the ledger must show of each kind of stop; of judged ones `pass_clean`."""

REAL_BYTES = 50_000


def run(scratch: Path) -> dict[str, float]:
    """
    The figures: times in ms, memory in MB.
    """
    python = installed(scratch)
    lend_libraries(python)
    bench = _Bench(str(python), scratch)
    parts = (bench.decisions, bench.starts, bench.throughput, bench.judged)
    return {name: round(value, 2) for part in parts for name, value in part().items()}


class _Bench:
    """
    Each part has a service and a state directory of its own.
    """

    def __init__(self, python: str, scratch: Path) -> None:
        self._python: Final = python
        self._scratch: Final = scratch
        self._stops: Final = {"empty_reply": _stop(" "), "no_judge": _played_stop(scratch)}

    def decisions(self) -> dict[str, float]:
        """
        One client, one connection: what a stop takes beside a look at the service's health.
        """
        stops = self._stops | _real_stop()
        with self._serving("decisions") as (_, environ):
            load = _load(environ, {HEALTHZ: None, **stops})
            loaded(load._replace(rounds=50))
            took = loaded(load._replace(rounds=DECISIONS))
        _check(environ, dict.fromkeys(stops, 50 + DECISIONS))

        medians = {name: median(ms) for name, ms in took.ms.items()}
        figures: dict[str, float] = {}
        for name, ms in took.ms.items():
            figures |= {f"{name}_p50_ms": medians[name], f"{name}_p99_ms": _percentile(ms, 99)}
        return figures | {f"{name}_to_healthz_ratio": medians[name] / medians[HEALTHZ] for name in stops}

    def starts(self) -> dict[str, float]:
        """
        From the start of the process to its first answer, beside that of a Python that imports asyncio.
        """
        environ = self._environ("starts")
        bare = [self._python, "-I", "-c", "import asyncio"]
        times: list[float] = []
        bare_times: list[float] = []
        for _ in range(1 + STARTS):
            begun = time.perf_counter()
            subprocess.run(bare, env=environ, check=True)
            bare_times.append((time.perf_counter() - begun) * 1000)
            times.append(self._first_answer_ms(environ))
        # The first one made the state directory.
        figures = {"first_answer_ms": median(times[1:]), "first_answer_p95_ms": _percentile(times[1:], 95)}
        bare_ms = median(bare_times[1:])
        ratio = figures["first_answer_ms"] / bare_ms
        return {**figures, "first_answer_ever_ms": times[0], "asyncio_ms": bare_ms, "first_answer_ratio": ratio}

    def throughput(self) -> dict[str, float]:
        """
        Clients at full speed, in portions of one kind of stop each; and the memory after each portion.
        """
        per_s: dict[str, list[float]] = {name: [] for name in self._stops}
        names = [list(self._stops)[number % len(self._stops)] for number in range(PORTIONS)]
        with self._serving("throughput") as (pid, environ):
            memory = [rss_mb(pid)]
            for name in names:
                took = loaded(_load(environ, {name: self._stops[name]}, clients=CLIENTS, rounds=PORTION // CLIENTS))
                per_s[name].append(PORTION / took.whole_s)
                memory.append(rss_mb(pid))
        _check(environ, {name: times * PORTION for name, times in Counter(names).items()})

        return {f"{name}_per_s": median(rates) for name, rates in per_s.items()} | {
            "rss_at_start_mb": memory[0],
            f"rss_after_{PORTION}_mb": memory[1],
            f"rss_after_{PORTIONS * PORTION}_mb": memory[-1],
            "rss_growth_mb": memory[-1] - memory[0],
            "rss_growth_after_first_portion_mb": memory[-1] - memory[1],
        }

    def judged(self) -> dict[str, float]:
        """
        Many judge calls in flight: all clients stop at once, and again as soon as they are answered, which is the worst case.
        """
        figures: dict[str, float] = {}
        with _slow_api() as url, self._serving("judged") as (pid, environ):
            environ |= {
                "ANTHROPIC_API_KEY": "not-a-key-of-a-benchmark",
                "TURNGATE_JUDGE_BASE_URL": url,
                "TURNGATE_JUDGE_DEADLINE_S": "60",
            }
            loaded(self._judged_load(environ, "warm", clients=10, rounds=1))
            for clients, rounds in JUDGED.items():
                name = f"judged_{clients}"
                before_s = cpu_s(pid)
                took = loaded(self._judged_load(environ, name, clients=clients, rounds=rounds))
                cpu_ms = (cpu_s(pid) - before_s) * 1000
                figures |= _judged_figures(name, took, _call_ms(environ, name), cpu_ms)
        _check(environ, {"warm": 10} | {f"judged_{clients}": clients * rounds for clients, rounds in JUDGED.items()})
        return figures

    def _judged_load(self, environ: Mapping[str, str], name: str, *, clients: int, rounds: int) -> Load:
        # Each stop is of a session of its own: stops that are the same share one call.
        load = _load(environ, {name: self._stops["no_judge"]}, clients=clients, rounds=rounds)
        return load._replace(sessions=clients * rounds)

    def _first_answer_ms(self, environ: Mapping[str, str]) -> float:
        begun = time.perf_counter()
        service = started(self._python, environ)
        try:
            Client(_address(environ), environ).stops({**self._stops["empty_reply"], "session_id": "empty_reply-first"})
            return (time.perf_counter() - begun) * 1000
        finally:
            ended(service)

    def _environ(self, part: str) -> dict[str, str]:
        state = self._scratch / part
        return {"PATH": os.environ["PATH"], "HOME": str(self._scratch), "TURNGATE_STATE_DIR": str(state)}

    @contextmanager
    def _serving(self, part: str) -> Generator[tuple[int, dict[str, str]]]:
        environ = self._environ(part)
        with serving(self._python, Path(environ["TURNGATE_STATE_DIR"]), environ) as pid:
            yield pid, environ


@contextmanager
def _slow_api() -> Generator[str]:
    command = [sys.executable, "-m", f"{__package__}.slow_api", str(DELAY_S)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as api:
        assert api.stdout
        try:
            yield f"http://127.0.0.1:{int(api.stdout.readline())}"
        finally:
            api.terminate()


def _judged_figures(name: str, took: Took, call_ms: list[int], cpu_ms: float) -> dict[str, float]:
    ms = took.ms[name]
    return {
        f"{name}_call_p50_ms": median(call_ms),
        f"{name}_call_p95_ms": _percentile(call_ms, 95),
        f"{name}_stop_p50_ms": median(ms),
        f"{name}_stop_p95_ms": _percentile(ms, 95),
        f"{name}_per_s": len(ms) / took.whole_s,
        f"{name}_cpu_ms_per_stop": cpu_ms / len(ms),
    }


def _call_ms(environ: Mapping[str, str], name: str) -> list[int]:
    """
    What each judge call took by the ledger.
    """
    with open_database(environ["TURNGATE_STATE_DIR"]) as database:
        calls = [call for call in Ledger(database).calls() if call.start.session_id.startswith(f"{name}-")]
    return [call.end.latency_ms for call in calls if call.end is not None and call.end.latency_ms is not None]


def _load(
    environ: Mapping[str, str], events: Mapping[str, Mapping[str, object] | None], *, clients: int = 1, rounds: int = 1
) -> Load:
    return Load(_address(environ), environ, events, clients, rounds)


def _address(environ: Mapping[str, str]) -> str:
    return f"{environ['TURNGATE_STATE_DIR']}/turngate.sock"


def _stop(reply: str, transcript: Path | None = None) -> dict[str, object]:
    return {
        "hook_event_name": "Stop",
        "transcript_path": str(transcript or ""),
        "last_assistant_message": reply,
        "background_tasks": [],
    }


def _played_stop(scratch: Path) -> dict[str, object]:
    """
    A stop at the end of a short session whose transcript has the reply.
    """
    transcript, reply = scratch / "session.jsonl", "Wrote retry.ts. I ran no tests."
    client = PlayedClient(scratch, transcript, "true", {"PATH": os.environ["PATH"]})
    client.prompt("Write retry.ts: one line.")
    client.writes("retry.ts", "export const times = 3;\n")
    client.stops(reply)
    return _stop(reply, transcript)


def _real_stop() -> dict[str, dict[str, object]]:
    """
    The stop at the end of a small one of the shared real sessions, where they are there.
    """
    shared = Path(os.environ.get("TURNGATE_SHARED") or ROOT.parent / "shared")
    files = sorted(shared.glob("data/transcripts/*/*.jsonl"), key=lambda file: abs(file.stat().st_size - REAL_BYTES))
    replies = ((file, read(str(file)).final_reply) for file in files)
    return next(({"no_judge_real": _stop(reply, file)} for file, reply in replies if reply.strip()), {})


def _percentile(values: list[float] | list[int], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _check(environ: Mapping[str, str], stops: Mapping[str, int]) -> None:
    """
    Fail where a stop was decided otherwise than meant, or not written down.
    """
    with open_database(environ["TURNGATE_STATE_DIR"]) as database:
        found = database.rows(
            "SELECT substr(session_id, 1, instr(session_id, '-') - 1) AS kind, outcome, COUNT(*)"
            " FROM decisions GROUP BY kind, outcome"
        )
    if sorted(found) != sorted((kind, OUTCOMES.get(kind, "pass_clean"), times) for kind, times in stops.items()):
        raise AssertionError(f"the stops went other ways than meant: {found}")
