"""
`turngate lab compare A B`: is the second run better than the first, on the same cases?

Exit codes: 0 better or equal within the margin, 1 worse, 2 not decidable.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ...stopgate.console import Commands, add_command, print_text, warn
from ..runs import Run, read_run

MOST_MARGIN: Final = 0.2
"""A judge that may be wrong on one case in five more is not the same within any margin."""

_EXIT: Final = {"better": 0, "equal within the margin": 0, "worse": 1, "not decidable": 2}


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    does = "compare two runs of the same cases: exit code 0 better or equal, 1 worse, 2 not decidable"
    parser = add_command(
        commands, "compare", _compare, does, "turngate lab compare runs/before runs/after --margin 0.02"
    )
    parser.add_argument("a", type=Path, metavar="A", help="the folder of the run that is the baseline")
    parser.add_argument("b", type=Path, metavar="B", help="the folder of the other run")
    parser.add_argument(
        "--margin",
        type=margin,
        default=0.0,
        metavar="M",
        help="loss that does not matter, also of recall and of clean turns let through (0)",
    )
    parser.add_argument("--sure-only", action="store_true", help="leave out disputed and low-confidence labels")
    parser.add_argument("--look-again", action="store_true", help="show test cases that were looked at before")
    parser.add_argument("--json", action="store_true", help="print the comparison as JSON")


def _compare(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from ..comparing.compare import as_json, compare
    from ..comparing.pairing import match
    from ..comparing.text import compare_text
    from ..run_warnings import run_warnings

    a, b = read_run(asked.a), read_run(asked.b)
    for warning in run_warnings(environ, (a, b)):
        warn(warning)
    match(a, b, sure_only=asked.sure_only)  # what cannot be compared is not looked at
    look = _look(environ, (a, b), again=asked.look_again)
    found = compare(a, b, margin=asked.margin, sure_only=asked.sure_only)

    if asked.json:
        print_text(json.dumps({**as_json(found), "look": look}, indent=2) + "\n")
    else:
        print_text(compare_text(found, styled=sys.stdout.isatty()))
    return _EXIT[found.verdict]


def _look(environ: Mapping[str, str], runs: Sequence[Run], *, again: bool) -> int:
    from ..looks import looks_before, note_look, refuse_looked_at

    if not again:
        refuse_looked_at(environ, runs)
    before = looks_before(environ, runs)
    number = note_look(environ, runs, command="compare")
    if before:
        warn(f"look number {number}: the interval no longer means what it says")
    return number


def margin(text: str) -> float:
    """
    Read a margin.
    """
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= MOST_MARGIN:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to {MOST_MARGIN:g}")
    return abs(share)  # -0 is 0
