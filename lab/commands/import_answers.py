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
    from ..run_warnings import labels_taken
    from ..runs import open_run

    found = read_questions(asked, environ)
    questions = found.asked()
    answers = read_answers(asked.answers, questions)
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
    for warning in labels_taken(run):
        warn(warning)
    done = keep_answers(run, questions, answers, path=asked.answers)

    again = f", {done.known} kept before" if done.known else ""
    print_text(f"{done.kept} answers kept in {asked.run}{again}\nnext: turngate lab score {asked.run}\n")
    if done.missing:
        warn(f"{asked.answers}: {done.missing} of {len(questions)} questions have no answer yet")
    return 2 if done.missing and not asked.partial else 0
