"""
A trial whose process is ended in the middle: nothing that was answered is paid for twice.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from turngate.judge.scripted_api import Received, Says, ScriptedMessagesApi
from turngate.lab.commands import run
from turngate.lab.runs import read_run

from .trials import CLEAN, KEY, command, ledger_calls, write_turns

PROGRAM = """
import os, sys
from turngate.lab.commands import run
from turngate.stopgate.console import Parser
parser = Parser()
run.add(parser.add_subparsers())
asked = parser.parse_args()
sys.exit(asked.command(asked, os.environ))
"""


class _Signals:
    """
    Answers, and sends the asking process a signal as one request of a number arrives.
    """

    def __init__(self, number: int, sent: signal.Signals) -> None:
        self._number = number
        self._sent = sent
        self._asker: subprocess.Popen[str] | None = None
        self._is_known = threading.Event()
        self._count = 0

    def known(self, asker: subprocess.Popen[str]) -> None:
        self._asker = asker
        self._is_known.set()

    def __call__(self, _: Received) -> Says:
        self._count += 1
        if self._count == self._number:
            assert self._is_known.wait(10)
            assert self._asker is not None
            self._asker.send_signal(self._sent)
        return Says(CLEAN)


def words(api: ScriptedMessagesApi, folder: Path) -> tuple[object, ...]:
    return ("run", "--cases", folder / "cases.jsonl", "--base-url", api.url, "--out", folder / "run", "--repeats", 2)


def start(api: ScriptedMessagesApi, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, words(api, folder))],
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "ANTHROPIC_API_KEY": KEY},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [1, 25])
def test_a_killed_run_goes_on_without_paying_twice(tmp_path: Path, number: int) -> None:
    """
    Asked again is only what was on its way when SIGKILL came, and the ledger has an open line for each of it.
    """
    write_turns(tmp_path / "cases.jsonl", 20)
    signals = _Signals(number, signal.SIGKILL)
    with ScriptedMessagesApi(otherwise=signals) as api:
        killed = start(api, tmp_path)
        signals.known(killed)
        killed.communicate(timeout=30)
        assert killed.returncode == -signal.SIGKILL
    # Counted after the server is closed: what was still in a pipe comes to nobody.
    received = len(api.requests)
    kept = sum(answer.outcome == "answered" for answer in read_run(tmp_path / "run").answers.values())
    lines = ledger_calls(tmp_path / "run")

    with ScriptedMessagesApi(otherwise=CLEAN) as again:
        assert command(run.add, *words(again, tmp_path)) == 0
    assert len(again.requests) == 40 - kept

    unended = sum(call.end is None for call in lines)
    assert 0 < received - kept <= unended <= 8
    assert len(read_run(tmp_path / "run").answers) == 40


def test_ctrl_c_lets_what_is_on_its_way_arrive(tmp_path: Path) -> None:
    """
    Exit code 130, one line and what it cost; each request that was sent has its answer kept, and running again asks for the rest.
    """
    write_turns(tmp_path / "cases.jsonl", 20)
    signals = _Signals(12, signal.SIGINT)
    with ScriptedMessagesApi(otherwise=signals) as api:
        asker = start(api, tmp_path)
        signals.known(asker)
        out, err = asker.communicate(timeout=30)
        received = len(api.requests)

        assert asker.returncode == 130
        assert err == f"turngate: {received} of 40 answered; run again to go on\n"
        assert re.search(r"^cost: \$0\.0[0-9]+$", out, re.MULTILINE)
        assert 12 <= received < 40
        assert len(read_run(tmp_path / "run").answers) == received

        assert command(run.add, *words(api, tmp_path)) == 0
        assert len(api.requests) == 40
