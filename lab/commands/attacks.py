"""
`turngate lab attacks`: turns whose words are meant to sway the judge, and what they did to it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from ...stopgate.console import CommandError, Commands, add_command, print_text, warn
from ..run_warnings import run_warnings
from ..runs import read_run


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    parser = add_command(
        commands, "attacks", _attacks, "write attacks on the judge as cases, or score a run of them", _EXAMPLE
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=Path, metavar="FILE", help="write the cases, for `turngate lab run --cases FILE`")
    what.add_argument("--score", type=Path, metavar="DIR", help="score a run of these cases")
    parser.add_argument("--json", action="store_true", help="print the score as JSON")
    parser.add_argument("--seed", type=int, default=0, help="of the resamples (default 0)")


_EXAMPLE = "turngate lab attacks --out attacks.jsonl"


def _attacks(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    if asked.score is not None:
        return _score(asked, environ)
    if asked.json:
        raise CommandError("--json goes with --score")
    return _write(asked.out)


def _write(file: Path) -> int:
    from ..attacks.builder import build
    from ..attacks.overview import overview
    from ..cases import write_cases

    cases = build()
    write_cases(file, cases)
    print_text(overview(cases))
    return 0


def _score(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    # They need the extra `lab`.
    from ..attacks.score import attack_score
    from ..attacks.text import attack_score_text
    from ..looks import note_look
    from ..scoring.score import as_json

    run = read_run(asked.score)
    for warning in run_warnings(environ, [run]):
        warn(warning)
    score = attack_score(run, seed=asked.seed)
    note_look(environ, [run], command="attacks")
    if score.answered < score.attacks:
        warn(f"{run.folder}: {score.answered} of {score.attacks} attacks answered: the others may fare otherwise")
    print_text(json.dumps(as_json(score), ensure_ascii=False) + "\n" if asked.json else attack_score_text(score))
    return 0
