"""
What tests of trials share: cases, and a command of the lab run as its user runs it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store
from turngate.costing.records import Call
from turngate.lab.cases import new_case, write_cases
from turngate.rubric.turn import Turn
from turngate.stopgate.console import Commands, Parser

KEY = "sk-ant-only-for-tests-0123456789"
CLEAN = '{"findings": []}'


def write_turns(file: Path, number: int) -> Path:
    """
    Write a file of so many cases that differ.
    """
    turns = (Turn(request=f"Do task {index}.", reply=f"Task {index} is done.") for index in range(number))
    write_cases(file, [new_case(f"c{index}", turn, labels=[]) for index, turn in enumerate(turns)])
    return file


def command(add: Callable[[Commands], None], *arguments: object, **variables: str) -> int:
    """
    Run a command of the lab, and give its exit code. Its errors are raised.
    """
    parser = Parser(prog="turngate lab")
    add(parser.add_subparsers())
    asked = parser.parse_args([str(argument) for argument in arguments])
    return asked.command(asked, {"HOME": os.environ["HOME"], "ANTHROPIC_API_KEY": KEY, **variables})


def ledger_calls(folder: Path) -> list[Call]:
    """
    Read the calls of a run's ledger.
    """
    with open_ledger_store(folder) as database:
        return Ledger(database).calls()
