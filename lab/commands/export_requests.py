"""
`turngate lab export-requests`: the questions of a run as plain JSON Lines, for anybody to answer.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from ...stopgate.console import Commands, add_command, print_text, warn
from ..asking.question_options import STAND_IN, add_question_options


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    parser = add_command(
        commands,
        "export-requests",
        _export,
        "write what a judge would be asked, for any model or person to answer",
        "turngate lab export-requests --cases cases.jsonl --out requests.jsonl",
    )
    add_question_options(parser, model=STAND_IN)
    parser.add_argument("--out", required=True, metavar="FILE", help="where to; - prints the lines")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the lines (default: 0)")


def _export(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from pathlib import Path

    from ..asking.exchange import request_lines
    from ..asking.question_options import read_questions
    from ..files import check_apart, write_whole

    out = None if asked.out == "-" else Path(asked.out)
    if out:
        check_apart(out, asked.cases)
    found = read_questions(asked, environ)
    lines = request_lines(found.asked(), max_tokens=found.settings.max_tokens, seed=asked.seed)
    if out:
        write_whole(out, "".join(lines))
    else:
        print_text("".join(lines))
    warn(f"{len(lines)} requests of {len(found.cases)} cases; answers go back by `turngate lab import-answers`")
    return 0
