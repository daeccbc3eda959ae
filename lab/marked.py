"""
What a person says of a decision: noted in the ledger, and kept as a case for the lab where there was a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from ..costing.ledger import Ledger
from ..costing.outcomes import HOLDS
from ..costing.records import DecisionLine, LabelLine
from ..costing.screen import one_line
from ..rubric.turn import Turn
from ..stopgate.console import CommandError
from ..stopgate.places import state_dir
from ..stopgate.settings import Settings, read_settings
from .cases import Case
from .errors import LabError
from .labelling.session import safe_note
from .wrong import (
    FILE_NAME,
    TurnNotFound,
    Word,
    found_labels,
    judged_turn,
    keep_case,
    kept_cases,
    labelled_case,
    was_judged,
)

CLEAN: Final = "none"
"""The label of a reply without a fault. That of a hold which was wrong."""

_SHOWN: Final = 80
"""Characters of a quote."""


def chosen(ledger: Ledger, prefix: str, folders: Sequence[str]) -> DecisionLine:
    """
    Give the decision whose id begins so; without any, the last hold of the first of these folders that has one.

    Of several that begin so, the only hold is meant: a person is told the beginning of a hold's id. Raises `CommandError`.
    """
    if not prefix:
        return _last_hold(ledger, folders)
    ids = ledger.ids_starting(prefix)
    lines = [found.line for known in ([prefix] if prefix in ids else ids) if (found := ledger.decision(known))]
    if not lines:
        raise CommandError(f"no decision {prefix!r}: `turngate log` lists the latest")
    holds = [line for line in lines if line.outcome in HOLDS]
    if len(lines) > 1 and len(holds) != 1:
        raise CommandError(f"{prefix!r} begins more than one id: {', '.join(ids)}")
    return lines[0] if len(lines) == 1 else holds[0]


def project_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """
    Give the folders that may be this project's, the likeliest first.
    """
    if project := environ.get("CLAUDE_PROJECT_DIR"):
        return (project,)
    try:
        here = Path.cwd()
    except OSError:
        return ()
    return tuple(map(str, (here, *here.parents)))


def settings_of(line: DecisionLine, environ: Mapping[str, str]) -> Settings:
    """
    Give the settings of a decision's project. Raises `BadSetting`.
    """
    return read_settings(environ, project_folders=(line.project,) if line.project else ()).settings


def about(line: DecisionLine) -> str:
    """
    Say in one line which decision it is, and what it held.
    """
    told = [f"{finding.fault} {one_line(finding.quote)[:_SHOWN]!r}" for finding in line.findings]
    what = ", ".join(told) or ("work that still ran" if is_waiting(line) else "no fault")
    return f"{line.id}, {line.at:%Y-%m-%d %H:%M} UTC, {line.outcome}: {one_line(what)}"


class Marking:
    """
    Marks decisions of a ledger, and keeps their cases in the state directory.
    """

    def __init__(self, ledger: Ledger, environ: Mapping[str, str]) -> None:
        self._ledger: Final = ledger
        self._environ: Final = environ
        self._file: Final = Path(state_dir(environ) or ".", FILE_NAME)

    def mark(self, line: DecisionLine, word: Word, labels: Sequence[str], note: str) -> str:
        """
        Note that a verdict was wrong or right, and keep its turn with the reply's labels as a case; give the sentence that says so.
        """
        label = LabelLine(line.id, ",".join(labels) or CLEAN, datetime.now(UTC), safe_note(note))
        # The label first: what is killed in between is collected later.
        self._ledger.label(line.id, label.label, label.at, label.note)
        try:
            self._keep(line, label)
        except (TurnNotFound, LabError) as reason:
            return f"{line.id} is noted as {word} (labels: {label.label}), but is no case: {reason}\n"
        return f"{line.id} is noted as {word}, and is a case now (labels: {label.label}): {self._file}\n"

    def mark_waiting(self, line: DecisionLine, word: Word, note: str) -> str:
        """
        Mark a hold for work that still ran, which no verdict made, so that it is no case.
        """
        if word == "right":
            self._ledger.unlabel(line.id)
            return f"{line.id} counts as right: it was held for work that still ran\n"
        self._ledger.label(line.id, CLEAN, datetime.now(UTC), safe_note(note))
        hint = "`background.exempt_commands` names what is not waited for"
        return f"{line.id} is noted as wrong; it was held for work that still ran, and is no case: {hint}\n"

    def collect(self, *, without: str = "") -> Collected:
        """
        Make the cases of labels that were written elsewhere, and take out those whose label was taken back. Raises `LabError`.

        Done twice it changes nothing more. A decision that the ledger has forgotten keeps its case.
        """
        kept, labels = kept_cases(self._file), {label.decision_id: label for label in self._ledger.labels()}
        made: list[str] = []
        left: list[tuple[str, str]] = []
        for decision_id, label in labels.items():
            if decision_id == without or _says(kept.get(decision_id), label):
                continue
            try:
                if self._collected(label):
                    made.append(decision_id)
            except (TurnNotFound, LabError) as reason:
                left.append((decision_id, str(reason)))
        taken_out = [known for known in kept if known not in labels and self._ledger.decision(known)]
        for decision_id in taken_out:
            self._write(decision_id, None)
        return Collected(tuple(made), tuple(taken_out), tuple(left))

    def _collected(self, label: LabelLine) -> bool:
        found = self._ledger.decision(label.decision_id)
        if not found:
            raise TurnNotFound("the ledger has no such decision any more")
        if was_judged(found.line):
            self._keep(found.line, label)
        return was_judged(found.line)

    def _keep(self, line: DecisionLine, label: LabelLine) -> None:
        labels = _faults(label)
        word: Word = "right" if set(labels) == set(found_labels(line)) else "wrong"
        self._write(line.id, labelled_case(line, self._turn(line), labels, safe_note(label.note), word))

    def _turn(self, line: DecisionLine) -> Turn:
        """
        Give the turn again; where it is gone, that of the case which was made of it before.
        """
        try:
            return judged_turn(self._ledger, line, settings_of(line, self._environ).evidence_checks)
        except TurnNotFound:
            if case := kept_cases(self._file).get(line.id):
                return case.turn
            raise

    def _write(self, decision_id: str, case: Case | None) -> None:
        # Of two people who say so at once, the second finds the case of the first.
        with self._ledger.database.write(alone=FILE_NAME):
            keep_case(self._file, decision_id, case)


class Collected(NamedTuple):
    """
    The decisions whose cases were made or taken out, and those whose label is no case, with the reason.
    """

    made: tuple[str, ...] = ()
    taken_out: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()


def is_waiting(line: DecisionLine) -> bool:
    """
    Say whether the turn was held for work that still ran.
    """
    return line.outcome in ("block_background", "shadow_background")


def _last_hold(ledger: Ledger, folders: Sequence[str]) -> DecisionLine:
    for folder in folders:
        if found := ledger.decisions(1, project=folder, outcomes=HOLDS):
            return found[0].line
    where = folders[0] if folders else "this project"
    raise CommandError(f"no stop of {where} was held: name a decision, as `turngate log` lists them")


def _says(case: Case | None, label: LabelLine) -> bool:
    return case is not None and set(case.labels or ()) == set(_faults(label))


def _faults(label: LabelLine) -> list[str]:
    return [] if label.label == CLEAN else list(dict.fromkeys(filter(None, map(str.strip, label.label.split(",")))))
