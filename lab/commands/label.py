"""
`turngate lab label FILE`: what do people say of these turns, and do they agree?
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...costing.screen import one_line
from ...costing.stamps import stamp
from ...rubric.library import BadRubric, Rubric, UnknownRubric, load
from ...stopgate.console import Commands, add_command, print_text, warn
from ...stopgate.places import config_dir
from ..cases import Case, check_cases, read_cases, write_cases
from ..errors import LabError
from ..files import read_there
from ..labelling.labels import Answer, Label, Labels, add_labels, labels_file, read_answers, read_labels, settle
from ..labelling.session import Labelling, Task, differences, fault_keys, safe_note, tasks

_STDIN: Final = "-"
_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    example = "turngate lab label cases.jsonl --labeller anna"
    parser = add_command(commands, "label", _label, "label turns by hand, and see how far two people agree", example)
    parser.add_argument("file", type=Path, metavar="FILE", help="cases; the labels go to FILE.labels.jsonl")
    parser.add_argument("--labeller", metavar="NAME", help="who labels (default: the user's name)")
    parser.add_argument(
        "--blind", action="store_true", help="hide what the file says; whoever is not the first is blind"
    )
    parser.add_argument(
        "--answers", metavar="FILE", help='take {"case", "labels", "confidence", "note"} lines; - for stdin'
    )
    parser.add_argument("--rubric", default="turn_end", metavar="NAME", help="whose faults (default: turn_end)")
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--agreement", action="store_true", help="tell how far the labellers agree")
    does.add_argument("--adjudicate", action="store_true", help="decide the cases that labellers see differently")
    does.add_argument("--write", type=Path, metavar="OUT", help="write the cases with their final labels")


def _label(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    rubric = _rubric(asked.rubric, environ)
    if asked.answers is not None and (asked.agreement or asked.write):
        raise LabError("--answers gives labels: neither --agreement nor --write goes with it")
    cases = read_cases(asked.file, faults=rubric.faults)
    turns = {case.id: case.turn_hash for case in cases}
    labels, warnings = read_labels(labels_file(asked.file), faults=rubric.faults, turns=turns)
    for warning in warnings:
        warn(warning)
    if asked.agreement:
        return _agreement(labels, cases, rubric)
    if asked.write:
        _check_replaceable(asked.write, asked.file, rubric)
        return _write(asked.write, cases, labels)
    labeller = _labeller(asked, environ)
    todo = _todo(asked, cases, labels, labeller)
    if asked.answers is not None:
        return _take_answers(asked, todo, labels, labeller, rubric)
    return _on_terminal(asked, todo, labels, labeller, rubric, environ)


def _agreement(labels: Labels, cases: Sequence[Case], rubric: Rubric) -> int:
    from ..labelling.agreement import agreement_text, agreements

    print_text(agreement_text(agreements(labels, [case.id for case in cases], rubric.faults)))
    return 0


def _check_replaceable(out: Path, source: Path, rubric: Rubric) -> None:
    """
    See that nothing is lost but cases that can be written again. Raises `LabError`.
    """
    for kept, what in ((source, "the file of cases itself"), (labels_file(source), "the file of the labels")):
        is_there = os.path.exists(out) and os.path.exists(kept)
        if os.path.realpath(out) == os.path.realpath(kept) or (is_there and out.samefile(kept)):
            raise LabError(f"{out}: is {what}: name another")
    if os.path.exists(out) and (problems := check_cases(out, faults=rubric.faults)[1]):
        line, text = problems[0]
        raise LabError(f"{out}: exists, and is no file of cases (line {line}: {text}): name another")


def _write(out: Path, cases: Sequence[Case], labels: Labels) -> int:
    settled = [labels.settled(case.id) for case in cases]
    write_cases(out, [settle(case, found) for case, found in zip(cases, settled, strict=True)])
    labelled = [found for found in settled if found]
    known = {case.id for case in cases}
    counts = {
        "written": len(cases),
        "  labelled by two or more": sum(found.labellers > 1 for found in labelled),
        "  labelled by one alone": sum(found.labellers == 1 for found in labelled),
        "  labelled by nobody, left as they were": len(cases) - len(labelled),
        "disputed and decided": sum(found.disputed and found.labels is not None for found in labelled),
        "disputed and not decided, without labels": sum(found.labels is None for found in labelled),
        "labels of cases that are not in the file": sum(case not in known for case in labels.cases),
    }
    print_text("".join(f"{what}: {count}\n" for what, count in counts.items()))
    return 0


def _take_answers(
    asked: argparse.Namespace, todo: Sequence[Task], labels: Labels, labeller: str, rubric: Rubric
) -> int:
    turns = {task.case.id: task.case.turn_hash for task in todo}
    lines, source = _answer_lines(asked.answers)
    answers = read_answers(lines, source, known=turns, faults=rubric.faults)
    path = labels_file(asked.file)
    add_labels(path, [_as_label(answer, turns[answer.case], labeller, asked.adjudicate) for answer in answers])
    done = {answer.case for answer in answers} | {
        label.case for label in labels.by(labeller, adjudicates=asked.adjudicate)
    }
    _tell(path, len(answers), labeller, len(turns.keys() - done))
    return 0


def _answer_lines(source: str) -> tuple[list[bytes], str]:
    if source == _STDIN:
        return sys.stdin.buffer.read().splitlines(), "stdin"
    return read_there(Path(source)).splitlines(), source


def _as_label(answer: Answer, turn: str, labeller: str, adjudicates: bool) -> Label:
    return Label(
        case=answer.case,
        turn=turn,
        labeller=labeller,
        labels=answer.labels,
        confidence=answer.confidence,
        note=safe_note(answer.note),
        at=_now(),
        adjudicates=adjudicates,
    )


def _on_terminal(
    asked: argparse.Namespace,
    todo: Sequence[Task],
    labels: Labels,
    labeller: str,
    rubric: Rubric,
    environ: Mapping[str, str],
) -> int:
    from ..labelling.screen import help_lines, label_on_terminal

    path = labels_file(asked.file)
    todo, said = _undecided(todo, labels, labeller) if asked.adjudicate else (todo, labels.by(labeller))
    labelling = Labelling(
        todo,
        said,
        labeller,
        keys=fault_keys(rubric.faults),
        save=lambda label: add_labels(path, [label]),
        now=_now,
        adjudicates=asked.adjudicate,
    )
    moves = environ.get("TERM", "dumb") != "dumb"
    definitions = help_lines(rubric.system, rubric.faults)
    label_on_terminal(labelling, definitions, styled=moves and not environ.get("NO_COLOR"), moves=moves)
    _tell(path, labelling.saved, labeller, labelling.left, labelling.taken_back)
    return 0


def _undecided(todo: Sequence[Task], labels: Labels, labeller: str) -> tuple[list[Task], list[Label]]:
    """
    Give the differences that nobody else has decided, and the decisions that this person may take back.
    """
    decisions = {task.case.id: labels.decision(task.case.id) for task in todo}
    own = [label for label in labels.by(labeller, adjudicates=True) if decisions.get(label.case) is label]
    free = [task for task in todo if (decision := decisions[task.case.id]) is None or decision.labeller == labeller]
    return free, own


def _todo(asked: argparse.Namespace, cases: Sequence[Case], labels: Labels, labeller: str) -> list[Task]:
    if asked.adjudicate:
        return _differences(asked.file, cases, labels)
    return tasks(cases, labels, labeller, blind=asked.blind)


def _differences(file: Path, cases: Sequence[Case], labels: Labels) -> list[Task]:
    if len(labels.labellers) < 2:
        raise LabError(f"{file}: nothing to decide: {len(labels.labellers)} labeller so far, two are needed")
    if not (found := differences(cases, labels)):
        raise LabError(f"{file}: nothing to decide: the labellers agree on each case that more than one labelled")
    return found


def _tell(path: Path, saved: int, labeller: str, left: int, taken_back: int = 0) -> None:
    undone = f", {taken_back} of before taken back" if taken_back else ""
    print_text(f"{saved} kept of {one_line(labeller)}{undone}, {left} left: {path}\n")


def _rubric(name: str, environ: Mapping[str, str]) -> Rubric:
    config = config_dir(environ)
    try:
        return load(name, Path(config, "rubrics") if config else None)
    except (UnknownRubric, BadRubric) as error:
        raise LabError(str(error)) from None


def _labeller(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    name = asked.labeller or environ.get("USER") or environ.get("LOGNAME") or environ.get("USERNAME") or ""
    if not name:
        raise LabError("who labels? Say so with --labeller NAME")
    if not _NAME.fullmatch(name):
        raise LabError(f"--labeller {name!r}: a name is one word of at most 200 characters")
    return name


def _now() -> str:
    return stamp(datetime.now(UTC))
