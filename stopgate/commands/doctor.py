"""
`turngate doctor`: whether the gate works here, proved, and what to do where it does not.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime

from ...costing.screen import one_line
from ...rubric.masking import clean, mask
from ..console import CommandDone, CommandError, Commands, add_command, print_text


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(commands, "doctor", doctor, "prove that the gate works here", "turngate doctor --live")
    parser.add_argument("--live", action="store_true", help="ask the judge once too, for the price of one call")
    parser.add_argument("--json", action="store_true", help="the same as one JSON object")


def doctor(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Print one line for each thing that was looked at. Raises `CommandDone` with 1 for warnings, 2 for what does not work.
    """
    from ..doctor.examination import CHECKS, LIVE, examine, exit_code
    from ..doctor.finding import Finding
    from ..doctor.scene import look_at

    try:
        project = os.path.realpath(os.getcwd())  # noqa: PTH109
    except OSError as error:
        raise CommandError(f"the working directory is gone: {error.strerror}") from error
    found: list[Finding] = []
    checks = (*CHECKS, LIVE) if asked.live else CHECKS
    for finding in examine(look_at(environ, project, datetime.now(UTC)), checks):
        shown = Finding(finding.level, finding.check, _shown(finding.text), _shown(finding.fix))
        found.append(shown)
        if not asked.json:
            print_text(
                f"{shown.level:<5} {shown.check}: {shown.text}\n" + (f"      fix: {shown.fix}\n" if shown.fix else "")
            )
    code = exit_code(found)
    if asked.json:
        print_text(json.dumps({"exit_code": code, "findings": [finding._asdict() for finding in found]}) + "\n")
    if code:
        raise CommandDone(code)
    return ""


def _shown(text: str) -> str:
    return one_line(mask(clean(text)))
