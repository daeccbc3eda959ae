"""
How long the hook's whole process takes, with and without a model call, beside a Python that does nothing.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.stopgate.played_client import PlayedClient

ROUNDS = 15
BARE = "python_nothing"
HOOK = Path(sysconfig.get_path("scripts"), "turngate-hook")
STARTS = {"script": [str(HOOK)], "python_i": [sys.executable, "-I", str(HOOK)]}
"""How the hook is started: by its first line, and by `python -I`, as the settings snippet has it."""

OUTCOMES = {
    "background": "block_background",
    "empty_reply": "pass_empty_reply",
    "cap_spent": "pass_cap_spent",
    "no_judge": "pass_no_judge",
    "model_call": "pass_clean",
}
"""The stops that are timed, and what the ledger must show of each. A guarded hook leaves nothing there."""

SET = {
    "guard": {"TURNGATE_GUARD": "1"},
    "cap_spent": {"TURNGATE_GATE_CONTINUATIONS": "1"},
    "model_call": {"ANTHROPIC_API_KEY": "not-a-key-of-a-benchmark"},
}
"""What a case sets in the environment."""


class Process(NamedTuple):
    """
    One process to be timed.
    """

    command: list[str]
    environ: Mapping[str, str]
    given: bytes = b""


def run(scratch: Path) -> dict[str, float]:
    """
    The figures: medians of the whole process in ms, and each as a ratio to `python -I -S -c pass` in the same rounds.
    """
    with ScriptedMessagesApi(otherwise={"findings": []}) as api:
        hooks = _Hooks(scratch, api.url)
        times = _interleaved_ms({**_without_hook(hooks.environ), **hooks.processes()})
        hooks.check()

    medians = {name: median(taken) for name, taken in times.items()}
    figures: dict[str, float] = {"rounds": ROUNDS}
    figures |= {f"{name}_ms": round(taken, 2) for name, taken in medians.items()}
    figures |= {f"{name}_ratio": round(taken / medians[BARE], 2) for name, taken in medians.items() if name != BARE}
    return figures


def _interleaved_ms(processes: Mapping[str, Callable[[], Process]]) -> dict[str, list[float]]:
    """
    Time all processes by turns: what else the machine does hits all alike. The first round only warms up.
    """
    times: dict[str, list[float]] = {name: [] for name in processes}
    for _ in range(1 + ROUNDS):
        for name, process in processes.items():
            times[name].append(_ms(process()))
    return {name: taken[1:] for name, taken in times.items()}


def _ms(process: Process) -> float:
    begun = time.perf_counter()
    subprocess.run(process.command, input=process.given, env=dict(process.environ), capture_output=True, check=True)
    return (time.perf_counter() - begun) * 1000


def _without_hook(environ: Mapping[str, str]) -> dict[str, Callable[[], Process]]:
    programs = {
        BARE: ["-I", "-S", "-c", "pass"],
        "python_with_site": ["-I", "-c", "pass"],
        "import_of_the_sdk": ["-I", "-c", "import anthropic"],
    }
    processes = {name: Process([sys.executable, *options], environ) for name, options in programs.items()}
    return {name: (lambda process=process: process) for name, process in processes.items()}


class _Hooks:
    """
    Stops of as many sessions as it takes: each run of the hook meets the state that its case is about.
    """

    def __init__(self, scratch: Path, api_url: str) -> None:
        self._scratch = scratch
        self._state = scratch / "state"
        self._transcript = scratch / "session.jsonl"
        self._numbers = itertools.count()
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(scratch),
            "TURNGATE_STATE_DIR": str(self._state),
            "TURNGATE_SERVICE_AUTOSTART": "off",
            "TURNGATE_JUDGE_BASE_URL": api_url,
            "TURNGATE_JUDGE_DEADLINE_S": "60",
        }
        client = PlayedClient(scratch, self._transcript, str(HOOK), self.environ)
        client.prompt("Write retry.ts: one line.")
        client.writes("retry.ts", "export const times = 3;\n")

    def processes(self) -> dict[str, Callable[[], Process]]:
        """
        One process for each case and way to start the hook.
        """
        for start in STARTS:
            _ms(Process(STARTS["script"], self.environ, self._event(f"cap_spent-{start}", "It is running.", ["b1"])))
        cases = ("guard", *OUTCOMES)
        return {
            f"{case}_{start}": (lambda case=case, start=start: self._process(case, start))
            for case in cases
            for start in STARTS
        }

    def check(self) -> None:
        """
        Fail where a hook did something else than its case says.
        """
        with open_database(str(self._state)) as database:
            seen = {(d.line.session_id.partition("-")[0], d.line.outcome) for d in Ledger(database).decisions()}
        if seen != {*OUTCOMES.items(), ("cap_spent", "block_background")}:
            raise AssertionError(f"the hooks took other ways than meant: {sorted(seen)}")

    def _process(self, case: str, start: str) -> Process:
        session = f"cap_spent-{start}" if case == "cap_spent" else f"{case}-{next(self._numbers)}"
        running = ["b1"] if case == "background" else []
        reply = "" if case == "empty_reply" else "Wrote retry.ts. I ran no tests."
        return Process(STARTS[start], {**self.environ, **SET.get(case, {})}, self._event(session, reply, running))

    def _event(self, session: str, reply: str, running: list[str]) -> bytes:
        event = {
            "hook_event_name": "Stop",
            "session_id": session,
            "transcript_path": str(self._transcript),
            "cwd": str(self._scratch),
            "prompt_id": "demo-prompt-1",
            "last_assistant_message": reply,
            "background_tasks": [
                {"id": task, "type": "shell", "status": "running", "description": "Build"} for task in running
            ],
        }
        return json.dumps(event).encode() + b"\n"
