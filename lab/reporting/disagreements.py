"""
Where judges and labels disagree: the turn, what people say of it, and what each judge said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..cases import Case
from ..runs import Reading, Run
from ..scoring.marks import Judged
from .shown_text import ShownTurn, plain, shown, shown_turn

FALSE_ALARM: Final = "false alarm"
MISS: Final = "miss"
GAINED: Final = "gained"
LOST: Final = "lost"
KINDS: Final = (FALSE_ALARM, MISS, GAINED, LOST)


class Mark(NamedTuple):
    """
    One fault over which an arm and the labels disagree, or in which an arm is righter or less right than the baseline.
    """

    arm: str
    kind: str
    fault: str
    share: float
    """Of the readable repeats."""


class Said(NamedTuple):
    """
    A finding that the gate would name.
    """

    fault: str
    quote: str
    reason: str
    repeats: tuple[int, ...]
    """From 1."""


class Opinion(NamedTuple):
    """
    What an arm said of a turn.
    """

    arm: str
    asked: int
    readable: int
    said: tuple[Said, ...]
    dropped: int
    """Findings left out, mostly because their quote is not in the reply."""
    answers: tuple[str, ...]
    """The readable answers as they came, each once."""


class Disagreement(NamedTuple):
    """
    A case with labels that at least one arm names otherwise.
    """

    case: str
    session: str
    labels: tuple[str, ...]
    confidence: str
    disputed: bool
    rationale: str
    source: str
    licence: str
    model: str
    """The one that wrote the reply."""
    client_version: str
    split: str
    sample: str
    tags: tuple[str, ...]
    marks: tuple[Mark, ...]
    opinions: tuple[Opinion, ...]
    turn: ShownTurn


def readings_by_case(run: Run) -> dict[str, list[Reading]]:
    """
    Give the questions of each case, in the order of the cases.
    """
    found: dict[str, list[Reading]] = {case.id: [] for case in run.cases}
    for reading in run.readings():
        found[reading.case.id].append(reading)
    return found


def judged_of(readings: Sequence[Reading]) -> Judged | None:
    """
    Give what was named in the readable repeats of a case; None where there is none, or no label.
    """
    named = tuple(reading.faults for reading in readings if reading.verdict is not None)
    return Judged(readings[0].case, named) if named and readings[0].case.labels is not None else None


def disagreements(runs: Mapping[str, Run]) -> list[Disagreement]:
    """
    Give each disagreement of these runs of the same cases, by the letters of the arms; the first is the baseline.
    """
    asked = {arm: readings_by_case(run) for arm, run in runs.items()}
    faults = list(dict.fromkeys(fault for run in runs.values() for fault in run.manifest.faults))
    found: list[Disagreement] = []
    cases = next(iter(runs.values())).cases if runs else []
    for case in cases:
        of_case = {arm: readings[case.id] for arm, readings in asked.items()}
        marks = _marks({arm: judged_of(readings) for arm, readings in of_case.items()}, faults)
        if marks:
            found.append(_disagreement(case, marks, of_case))
    return found


def _marks(judged: Mapping[str, Judged | None], faults: Sequence[str]) -> list[Mark]:
    baseline = next(iter(judged.values()))
    marks: list[Mark] = []
    for arm, one in judged.items():
        if one is None:
            continue
        for fault in faults:
            marks += _against_labels(arm, one, fault)
            marks += _against_baseline(arm, one, baseline, fault)
    return marks


def _against_labels(arm: str, one: Judged, fault: str) -> list[Mark]:
    wrong = _wrong(one, fault)
    return [Mark(arm, MISS if one.has(fault) else FALSE_ALARM, fault, wrong)] if wrong else []


def _against_baseline(arm: str, one: Judged, baseline: Judged | None, fault: str) -> list[Mark]:
    if baseline is None or baseline is one:
        return []
    gain = _wrong(baseline, fault) - _wrong(one, fault)
    return [Mark(arm, GAINED if gain > 0 else LOST, fault, abs(gain))] if gain else []


def _wrong(one: Judged, fault: str) -> float:
    return 1 - one.share(fault) if one.has(fault) else one.share(fault)


def _disagreement(case: Case, marks: Sequence[Mark], of_case: Mapping[str, list[Reading]]) -> Disagreement:
    return Disagreement(
        case.id,
        plain(case.session),
        tuple(case.labels or ()),
        case.confidence,
        case.disputed,
        shown(case.rationale),
        plain(case.source),
        plain(case.licence),
        plain(case.model),
        plain(case.client_version),
        case.split,
        case.sample,
        tuple(plain(tag) for tag in case.tags),
        tuple(marks),
        tuple(_opinion(arm, readings) for arm, readings in of_case.items()),
        shown_turn(case.turn),
    )


def _opinion(arm: str, readings: Sequence[Reading]) -> Opinion:
    repeats: dict[tuple[str, str, str], list[int]] = {}
    dropped = 0
    answers: dict[str, None] = {}
    readable = [reading for reading in readings if reading.verdict is not None]
    for reading in readable:
        findings = reading.verdict.findings if reading.verdict else ()
        dropped += reading.verdict.dropped if reading.verdict else 0
        for fault, quote, reason in findings:
            told = repeats.setdefault((fault, shown(quote), shown(reason)), [])
            if reading.repeat + 1 not in told:
                told.append(reading.repeat + 1)
        answers[shown(_laid_out(reading.answer.text if reading.answer else ""))] = None
    said = tuple(Said(*what, tuple(when)) for what, when in repeats.items())
    return Opinion(arm, len(readings), len(readable), said, dropped, tuple(answers))


def _laid_out(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
