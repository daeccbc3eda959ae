"""
The labels that people gave: one line of JSON for each, in a file beside the cases, to which lines are only ever added.

The newest label of a labeller for a case counts; one that was undone was never said. Differences between labellers are decided by a line
of their own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, Field

from ..cases import STRICT, Case, Fault, Name, json_object, read_strict
from ..errors import LabError
from ..files import append_line, is_json, read_whole

Confidence = Literal["high", "medium", "low"]
CONFIDENCES: Final[tuple[Confidence, ...]] = ("low", "medium", "high")
"""Lowest first."""

LONGEST_NOTE: Final = 2_000

_Note = Annotated[str, Field(max_length=LONGEST_NOTE)]


class Label(BaseModel):
    """
    What one person says of one case.
    """

    model_config = STRICT

    case: Name
    turn: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    """The hash of the turn that was labelled: under the same id there may stand another one day."""
    labeller: Name
    labels: list[Fault]
    """Empty where the reply is clean."""
    confidence: Confidence = "high"
    note: _Note = ""
    at: str
    adjudicates: bool = False
    """It decides where labellers differed."""
    undone: bool = False
    """It takes back what this labeller said last of this case."""


class Answer(BaseModel):
    """
    A label as a script gives it.
    """

    model_config = STRICT

    case: Name
    labels: list[Fault]
    confidence: Confidence = "high"
    note: _Note = ""


class Settled(NamedTuple):
    """
    What is known of a case when all labels are put together.
    """

    labels: list[str] | None
    """None where labellers differ and nobody decided."""
    confidence: Confidence
    """The lowest that was given."""
    disputed: bool
    note: str
    labellers: int


class Found(NamedTuple):
    """
    What a file of labels holds.
    """

    labels: Labels
    warnings: tuple[str, ...] = ()
    """What of it does not count, each in one line."""


class _Said(NamedTuple):
    number: int
    label: Label


class Labels:
    """
    What stands of all that was said.
    """

    def __init__(self, said: Iterable[Label] = ()) -> None:
        self._of_case: Final[dict[str, list[_Said]]] = {}
        """Without what was undone, in the order in which it was said."""
        for number, label in enumerate(said):
            self._add(_Said(number, label))

    @property
    def labellers(self) -> list[str]:
        """
        Who labelled, in the order of their first label that stands; to decide a difference is no labelling.
        """
        return list(dict.fromkeys(label.labeller for label in self._standing() if not label.adjudicates))

    @property
    def cases(self) -> list[str]:
        """
        The ids of the cases of which anything stands.
        """
        return [case for case, labels in self._of_case.items() if labels]

    def by(self, labeller: str, *, adjudicates: bool = False) -> list[Label]:
        """
        The newest of a person for each case, in the order in which they were said.
        """
        own = [label for label in self._standing() if (label.labeller, label.adjudicates) == (labeller, adjudicates)]
        newest = {label.case: label for label in own}
        return [label for label in own if newest[label.case] is label]

    def given(self, case: str) -> dict[str, Label]:
        """
        What each labeller says of a case.
        """
        return {label.labeller: label for label in self._said_of(case) if not label.adjudicates}

    def decision(self, case: str) -> Label | None:
        """
        The newest decision of a difference; None as long as there is none, or where somebody labelled the case after it.
        """
        newest = self._said_of(case)[-1:]
        return newest[0] if newest and newest[0].adjudicates else None

    def differ(self, case: str) -> bool:
        """
        Whether labellers say different things of a case.
        """
        return not _are_one(self.given(case).values())

    def settled(self, case: str) -> Settled | None:
        """
        Put together what was said of a case; None where nobody labelled it.
        """
        given, decision = list(self.given(case).values()), self.decision(case)
        if not given:
            return None
        agreed = None if self.differ(case) else given[0]
        final = decision or agreed
        everybody = [*given, decision] if decision else given
        notes = [decision] if decision and decision.note else given
        return Settled(
            labels=list(final.labels) if final else None,
            confidence=min(everybody, key=lambda label: CONFIDENCES.index(label.confidence)).confidence,
            disputed=self._ever_differed(case),
            note="; ".join(dict.fromkeys(label.note for label in notes if label.note)),
            labellers=len(given),
        )

    def _ever_differed(self, case: str) -> bool:
        newest: dict[str, Label] = {}
        for label in self._said_of(case):
            if label.adjudicates:
                continue
            newest[label.labeller] = label
            if not _are_one(newest.values()):
                return True
        return False

    def _said_of(self, case: str) -> list[Label]:
        return [said.label for said in self._of_case.get(case, ())]

    def _standing(self) -> list[Label]:
        return [said.label for said in sorted(said for every in self._of_case.values() for said in every)]

    def _add(self, said: _Said) -> None:
        every, label = self._of_case.setdefault(said.label.case, []), said.label
        if not label.undone:
            every.append(said)
            return
        for place in reversed(range(len(every))):
            known = every[place].label
            if (known.labeller, known.adjudicates) == (label.labeller, label.adjudicates):
                del every[place]
                return


def labels_file(cases: Path) -> Path:
    """
    Where the labels of a file of cases lie.
    """
    return cases.with_name(f"{cases.name}.labels.jsonl")


def read_labels(path: Path, *, faults: Collection[str], turns: Mapping[str, str]) -> Found:
    """
    Read what was said so far; nothing where there is no such file. `turns` are the hashes of the cases' turns, by id.

    Labels of another turn do not count, nor does a line that a crash cut off. Raises `LabError` that names file and line.
    """
    said: list[Label] = []
    others: list[Label] = []
    warnings: list[str] = []
    for number, line in _lines(path):
        if not is_json(line):
            warnings.append(f"{path}: line {number}: no JSON, as a crash leaves it: passed over")
            continue
        try:
            json_object(line)  # says in plain words why it is none
            label = read_strict(Label, line)
            _check_faults(label.labels, faults)
        except LabError as error:
            raise LabError(f"{path}: line {number}: {error}") from None
        (said if turns.get(label.case, label.turn) == label.turn else others).append(label)
    other = Labels(others)
    if count := sum(len(other.given(case)) for case in other.cases):
        warnings.append(f"{path}: labels of other words under the same id, which do not count: {count}")
    return Found(Labels(said), tuple(warnings))


def add_labels(path: Path, labels: Sequence[Label]) -> None:
    """
    Add what was said; it is on the disk when this returns. Raises `LabError`.
    """
    if labels:
        append_line(path, "\n".join(map(_line, labels)))


def read_answers(
    lines: Iterable[bytes], source: str, *, known: Collection[str], faults: Collection[str]
) -> list[Answer]:
    """
    Read labels that a script gives, each for one of the cases that are `known`. Raises `LabError` for the first that is none.
    """
    found: dict[str, tuple[int, Answer]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            json_object(line)  # says in plain words why it is none
            answer = read_strict(Answer, line)
            _check_faults(answer.labels, faults)
            if answer.case not in known:
                raise LabError(f"case: {answer.case!r} is none of the cases asked for")
            if answer.case in found:
                raise LabError(f"case: {answer.case!r} stands on line {found[answer.case][0]} already")
        except LabError as error:
            raise LabError(f"{source}: line {number}: {error}; no label of it was kept") from None
        found[answer.case] = number, answer
    return [answer for _, answer in found.values()]


def settle(case: Case, settled: Settled | None) -> Case:
    """
    Give the case with its final labels; as it was where nobody labelled it.
    """
    if settled is None:
        return case
    return case.model_copy(
        update={
            "labels": settled.labels,
            "confidence": settled.confidence,
            "disputed": settled.disputed,
            "rationale": settled.note[:10_000] or case.rationale,
        }
    )


def _line(label: Label) -> str:
    fields = label.model_dump()
    rare = {name for name in ("adjudicates", "undone") if not fields[name]}
    return json.dumps({name: value for name, value in fields.items() if name not in rare}, ensure_ascii=False)


def _are_one(labels: Iterable[Label]) -> bool:
    return len({frozenset(label.labels) for label in labels}) <= 1


def _check_faults(labels: Sequence[str], faults: Collection[str]) -> None:
    if unknown := [fault for fault in labels if fault not in faults]:
        raise LabError(f"labels: unknown fault {unknown[0]!r}: expected {', '.join(faults)}")
    if len(set(labels)) != len(labels):
        raise LabError("labels: a fault stands there twice")


def _lines(path: Path) -> list[tuple[int, bytes]]:
    lines = (read_whole(path) or b"").splitlines()
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
