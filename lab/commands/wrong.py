"""
`turngate wrong ID`: the verdict of this decision was wrong; the turn becomes a labelled case.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ...costing.ledger import Ledger
from ...costing.records import DecisionLine
from ...costing.store import StoreError
from ...rubric.library import BadRubric, UnknownRubric, load
from ...stopgate.cli import find_decision, ledger_store
from ...stopgate.console import CommandError, Parser, print_text, warn
from ...stopgate.places import config_dir, state_dir
from ...stopgate.settings import BadSetting, Settings, read_settings
from ..cases import Case
from ..errors import LabError
from ..labelling.session import safe_note


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """
    Run the command, and give the exit code: 0 where the verdict is noted, 2 where it cannot be.
    """
    try:
        asked = _parser().parse_args(arguments)
        print_text(_wrong(asked, environ))
    except (LabError, CommandError, StoreError, BadSetting) as exc:
        warn(str(exc))
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="turngate wrong",
        description="Say that a verdict was wrong; the turn becomes a labelled case for the lab.",
        epilog="example: turngate wrong 1m8pt7f1s --note 'the tests ran in the other window'",
    )
    parser.add_argument("id", metavar="ID", help="the decision's id, or the beginning of it")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="F",
        help="of what the verdict is wrong: a fault that it found and that is not there, or one that it missed"
        " (default: all that it found); may be given more than once",
    )
    parser.add_argument("--note", default="", metavar="TEXT", help="why")
    return parser


def _wrong(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    with ledger_store(environ) as database:
        ledger = Ledger(database) if database else None
        decision = find_decision(ledger, asked.id) if ledger else None
        if ledger is None or decision is None:
            raise CommandError(f"no decision {asked.id!r}: `turngate log` lists the latest")
        return _note(ledger, decision.line, asked, environ)


def _note(ledger: Ledger, line: DecisionLine, asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    from ..wrong import TurnNotFound, judged_turn, right_labels, wrong_case

    settings = _settings(environ, line.project)
    labels = right_labels(line, asked.fault, _faults(settings, environ))
    note, label = safe_note(asked.note), ",".join(labels) or "none"
    try:
        turn = judged_turn(ledger, line, settings.evidence_checks)
    except TurnNotFound as reason:
        ledger.label(line.id, label, datetime.now(UTC), note)
        return f"{line.id} is noted as wrong (labels: {label}), but is no case: {reason}\n"
    file = _keep(ledger, wrong_case(line, turn, labels, note), environ)
    ledger.label(line.id, label, datetime.now(UTC), note)
    return f"{line.id} is noted as wrong, and is a case now (labels: {label}): {file}\n"


def _keep(ledger: Ledger, case: Case, environ: Mapping[str, str]) -> Path:
    from ..wrong import FILE_NAME, keep_case

    file = Path(state_dir(environ) or ".", FILE_NAME)
    # Of two people who say so at once, the second finds the case of the first.
    with ledger.database.write(alone=FILE_NAME):
        keep_case(file, case)
    return file


def _settings(environ: Mapping[str, str], project: str) -> Settings:
    return read_settings(environ, project_folders=(project,) if project else ()).settings


def _faults(settings: Settings, environ: Mapping[str, str]) -> tuple[str, ...]:
    config = config_dir(environ)
    try:
        return load(settings.judge.rubric_name, Path(config, "rubrics") if config else None).faults
    except (UnknownRubric, BadRubric) as error:
        raise LabError(str(error)) from None
