"""
`turngate lab run --batch` in a process of its own that is killed: what was submitted is collected, and nothing is paid for twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from turngate.judge.scripted_api import Hangs, Raw, Received, ScriptedMessagesApi
from turngate.lab.commands import run
from turngate.lab.runs import read_run

from .batched import asks_for_state, creates, fetches_results
from .trials import CLEAN, KEY, command, ledger_calls, write_turns

PROGRAM = """
import os, sys
from turngate.lab.commands import run
from turngate.stopgate.console import Parser
parser = Parser(prog="turngate lab")
run.add(parser.add_subparsers())
print(os.getpid(), flush=True)
asked = parser.parse_args(sys.argv[1:])
sys.exit(asked.command(asked, dict(os.environ)))
"""


def words(api: ScriptedMessagesApi, folder: Path) -> tuple[object, ...]:
    return ("run", "--batch", "--cases", folder / "cases.jsonl", "--base-url", api.url, "--out", folder / "run")


@pytest.mark.parametrize("moment", [creates, asks_for_state, fetches_results], ids=["submitting", "waiting", "reading"])
def test_a_killed_run_goes_on_without_paying_twice(tmp_path: Path, moment: Callable[[Received], bool]) -> None:
    """
    SIGKILL comes once the endpoint has done its part, and before anybody hears of it.
    """
    write_turns(tmp_path / "cases.jsonl", 5)
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        killed = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, words(api, tmp_path))],
            env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "ANTHROPIC_API_KEY": KEY},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert killed.stdout is not None
        process = int(killed.stdout.readline())

        def kill(received: Received) -> Raw | None:
            if not moment(received):
                return None
            os.kill(process, signal.SIGKILL)
            return Hangs()

        api.batches.after = kill
        killed.communicate(timeout=30)
        assert killed.returncode == -signal.SIGKILL
        assert read_run(tmp_path / "run").answers == {}
        assert [call.end for call in ledger_calls(tmp_path / "run")] == [None] * 5

        api.batches.after = lambda _: None
        assert command(run.add, *words(api, tmp_path)) == 0
        assert command(run.add, *words(api, tmp_path)) == 0

    assert len(api.batches.batches) == 1
    assert len(api.requests) == 5
    assert {answer.outcome for answer in read_run(tmp_path / "run").answers.values()} == {"answered"}
    assert all(call.end and call.end.cost_usd for call in ledger_calls(tmp_path / "run"))
