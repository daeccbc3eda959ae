"""
`turngate lab import-answers ANSWERS`: what somebody answered to exported questions becomes a run.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from ...stopgate.console import Commands, add_command, print_text, warn
from ..asking.question_options import STAND_IN, add_question_options


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    parser = add_command(
        commands,
        "import-answers",
        _import,
        "take in the answers to exported requests; give the options of the export again",
        "turngate lab import-answers answers.jsonl --cases cases.jsonl --run runs/mine --judge 'two colleagues'",
    )
    parser.add_argument("answers", type=Path, metavar="ANSWERS", help='lines of {"id", "text"}, or {"id", "answer"}')
    add_question_options(parser, model=STAND_IN)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="the run's folder, new or begun")
    parser.add_argument("--judge", required=True, metavar="WORDS", help="who answered, in words")
    parser.add_argument("--partial", action="store_true", help="more answers follow: missing ones are no failure")


def _import(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from ..asking.exchange import keep_answers, read_answers
    from ..asking.question_options import read_questions
    from ..asking.run_lock import alone
    from ..run_warnings import opening_warnings
    from ..runs import open_run

    found = read_questions(asked, environ)
    questions = found.asked()
    answers = read_answers(asked.answers, questions)
    with alone(asked.run):
        run = open_run(
            asked.run,
            found.cases,
            found.cases_file,
            found.rubric,
            found.settings,
            found.repeats,
            judge=asked.judge,
            backend="import",
        )
        for warning in opening_warnings(run):
            warn(warning)
        done = keep_answers(run, questions, answers, path=asked.answers)

    again = f", {done.known} kept before" if done.known else ""
    print_text(f"{done.kept} answers kept in {asked.run}{again}\n")
    if done.missing:
        more = ", ..." if len(done.missing) > 1 else ""
        warn(
            f"{asked.run}: {len(done.missing)} of {len(questions)} questions have no answer yet ({done.missing[0]}{more}): "
            "import those too, with the same options"
        )
        return 0 if asked.partial else 2
    print_text(f"next: turngate lab score {asked.run}\n")
    return 0
