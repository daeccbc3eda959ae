"""
`turngate wrong [ID]`: the verdict of this decision was wrong; the turn becomes a labelled case.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ...costing.ledger import Ledger
from ...costing.records import DecisionLine
from ...costing.store import StoreError
from ...rubric.library import BadRubric, UnknownRubric, load
from ...stopgate.cli import ledger_store
from ...stopgate.console import CommandError, Parser, print_text, warn
from ...stopgate.places import config_dir
from ...stopgate.settings import BadSetting
from ..errors import LabError
from ..marked import Collected, Marking, about, chosen, is_waiting, project_folders, settings_of
from ..wrong import Word, right_labels

Labels = Callable[[DecisionLine, argparse.Namespace, Mapping[str, str]], Sequence[str]]
"""Gives the faults of a decision's reply, as the person sees them."""


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """
    Run the command, and give the exit code: 0 where the verdict is noted, 2 where it cannot be.
    """
    return run_marking(parser(), arguments, environ, "wrong", _labels)


def parser() -> Parser:
    """
    Give the command's parser.
    """
    wrong = marking_parser("wrong", "that a verdict was wrong")
    wrong.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="F",
        help="of what the verdict is wrong: a fault that it found and that is not there, or one that it missed"
        " (default: all that it found); may be given more than once",
    )
    wrong.add_argument(
        "--collect", action="store_true", help="only make cases of what was marked elsewhere, and say what is none"
    )
    return wrong


def marking_parser(word: Word, what: str) -> Parser:
    """
    Give the parser of a command that marks a decision.
    """
    parser = Parser(
        prog=f"turngate {word}",
        description=f"Say {what}; the turn becomes a labelled case for the lab.",
        epilog=f"example: turngate {word} 1m8pt7f1s --note 'the tests ran in the other window'",
    )
    parser.add_argument(
        "id",
        metavar="ID",
        nargs="?",
        default="",
        help="the decision's id, or the beginning of it (default: the last hold of this project)",
    )
    parser.add_argument("--note", default="", metavar="TEXT", help="why")
    return parser


def run_marking(
    parser: Parser, arguments: Sequence[str], environ: Mapping[str, str], word: Word, labels: Labels
) -> int:
    """
    Mark a decision as asked, and give the exit code.
    """
    try:
        print_text(_marked(parser.parse_args(arguments), environ, word, labels))
    except (LabError, CommandError, StoreError, BadSetting) as exc:
        warn(str(exc))
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _marked(asked: argparse.Namespace, environ: Mapping[str, str], word: Word, labels: Labels) -> str:
    only_collect = vars(asked).get("collect", False)
    if only_collect and (asked.id or asked.note or asked.fault):
        raise CommandError("--collect is of all decisions: it goes with nothing else")
    with ledger_store(environ) as database:
        ledger = Ledger(database) if database else None
        if ledger is None:
            raise CommandError("nothing is recorded yet: the first stop that the hook sees will be the first decision")
        marking = Marking(ledger, environ)
        if only_collect:
            return _collected(marking.collect())
        line = chosen(ledger, asked.id, project_folders(environ))
        which = "" if asked.id else f"The last hold of this project: {about(line)}\n"
        if is_waiting(line) and not vars(asked).get("fault"):
            return which + marking.mark_waiting(line, word, asked.note)
        said = marking.mark(line, word, labels(line, asked, environ), asked.note)
        return which + said + _also(marking.collect(without=line.id))


def _also(collected: Collected) -> str:
    """
    Say what was found beside it, as far as something was done.
    """
    return _collected(collected._replace(left=())) if collected.made or collected.taken_out else ""


def _collected(collected: Collected) -> str:
    lines = [f"{known}, marked elsewhere, is a case now" for known in collected.made]
    lines += [f"{known} is no case any more: what was said of it was taken back" for known in collected.taken_out]
    lines += [f"{known} is no case: {reason}" for known, reason in collected.left]
    return "".join(f"{line}\n" for line in lines) or "Every decision that was marked is a case already.\n"


def _labels(line: DecisionLine, asked: argparse.Namespace, environ: Mapping[str, str]) -> Sequence[str]:
    config, name = config_dir(environ), settings_of(line, environ).judge.rubric_name
    try:
        known = load(name, Path(config, "rubrics") if config else None).faults
    except (UnknownRubric, BadRubric) as error:
        raise LabError(str(error)) from None
    return right_labels(line, asked.fault, known)
