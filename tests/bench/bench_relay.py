"""
How long a hook takes that relays its stop to a running service, installed from a wheel, beside a Python that does nothing and beside curl.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.stopgate.relay import VERSION

from .installed import installed, serving

ROUNDS = 40
BARE = "python_nothing"
CURL = "curl"

AT_MOST = {"hook_file_ratio": 2.0}
EVENT = json.dumps({"hook_event_name": "Stop", "session_id": "bench", "last_assistant_message": " "}).encode()


def run(scratch: Path) -> dict[str, float]:
    """
    The figures: medians of the whole process in ms, each as a ratio to `python -I -S -c pass`, and the hook's to curl's.
    """
    python = installed(scratch)
    state = scratch / "s"
    environ = {"PATH": os.environ["PATH"], "HOME": str(scratch), "TURNGATE_STATE_DIR": str(state)}
    with serving(sys.executable, state, environ):  # this environment has the libraries
        times = _interleaved_ms(_commands(python, state), environ)
    hooks = len(times.keys() - {BARE, CURL})
    # curl sends one and the same decision each time, and the ledger has it once.
    _check(state, stops=(1 + ROUNDS) * hooks + (CURL in times))

    medians = {name: median(taken) for name, taken in times.items()}
    figures: dict[str, float] = {"rounds": ROUNDS}
    figures |= {f"{name}_ms": round(taken, 2) for name, taken in medians.items()}
    figures |= {f"{name}_ratio": round(taken / medians[BARE], 2) for name, taken in medians.items() if name != BARE}
    if CURL in medians:
        figures["hook_file_to_curl_ratio"] = round(medians["hook_file"] / medians[CURL], 2)
    return figures


def _commands(python: Path, state: Path) -> Mapping[str, Sequence[str]]:
    hook = next(python.parents[1].glob("lib/python3*/site-packages/turngate/stopgate/__main__.py"))
    commands = {
        BARE: [str(python), "-I", "-S", "-c", "pass"],
        "hook_file": [str(python), "-I", "-S", str(hook)],
        "hook_script": [str(python), "-I", str(python.with_name("turngate-hook"))],
    }
    if curl := shutil.which(CURL):
        sent = {
            "content-type": "application/json",
            "turngate-version": VERSION,
            "turngate-decision": "01jd0000000000a",
            "turngate-started-ms": "1",
            "turngate-deadline-s": "8",
            "turngate-environ": f"TURNGATE_STATE_DIR={state}",
        }
        headers = [word for name, value in sent.items() for word in ("-H", f"{name}: {value}")]
        address = ["--unix-socket", str(state / "turngate.sock"), "http://turngate/v1/hook/claude-code"]
        commands[CURL] = [curl, "-sS", "--fail", *headers, "--data-binary", "@-", *address]
    return commands


def _interleaved_ms(commands: Mapping[str, Sequence[str]], environ: Mapping[str, str]) -> dict[str, list[float]]:
    """
    Time all by turns: what else the machine does hits all alike. The first round only warms up.
    """
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(1 + ROUNDS):
        for name, command in commands.items():
            begun = time.perf_counter()
            subprocess.run(command, input=EVENT, env=dict(environ), capture_output=True, check=True)
            times[name].append((time.perf_counter() - begun) * 1000)
    return {name: taken[1:] for name, taken in times.items()}


def _check(state: Path, *, stops: int) -> None:
    """
    Fail where a stop was not answered by the service: a hook on its own would start another, or say so in the ledger.
    """
    with open_database(str(state)) as database:
        outcomes = [decision.line.outcome for decision in Ledger(database).decisions(limit=2 * stops)]
    if outcomes != ["pass_empty_reply"] * stops:
        raise AssertionError(f"{len(outcomes)} stops of {stops}: {sorted(set(outcomes))}")
    if (state / "turngate.starting.lock").exists():
        raise AssertionError("a hook did not find the service")
