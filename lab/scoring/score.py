"""
The score of a run: what its judge is worth, or that it cannot be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any, NamedTuple, cast

from .. import statistics
from ..errors import NotDecidable
from ..runs import Reading, Run
from ..statistics import Resamples
from .base_rates import BaseRates, base_rates_of
from .costs import Costs, Latency, Tokens, costs_of, latency_of, spent_on, tokens_of
from .marks import HELD, Judged, Marks, Rate, marks, rate_of, resamples_of
from .reply_lengths import Lengths, lengths_of
from .scorable import check_scorable, outcome_of


class Counts(NamedTuple):
    """
    The questions of a run, and what came of them.
    """

    cases: int
    questions: int
    readable: int
    unreadable: int
    refused: int
    errors: int
    """Time-outs among them."""
    unanswered: int
    unlabelled: int
    """Cases."""
    unread: int
    """Labelled cases without a single readable answer: in no figure below."""
    random: int
    """Cases that were drawn blindly."""
    random_unlabelled: int
    """Of these: one is enough, and no base rate can be told from the others."""

    @property
    def failed(self) -> int:
        """
        Questions without a verdict.
        """
        return self.questions - self.readable


class Trust(NamedTuple):
    """
    How often the judge is right about holding, where people were that sure of the labels.
    """

    confidence: str
    cases: int
    right: Rate


class Figures(NamedTuple):
    """
    The judge beside the labels of some cases.
    """

    cases: int
    clean: int
    sessions: int
    held: Marks
    faults: tuple[Marks, ...]
    pass_hat: tuple[float, ...]
    """The chance that 1, 2, ... tries of a case are all right about holding, as far as there are repeats."""
    pass_hat_cases: int
    """Cases with all repeats readable: of these alone it can be told."""


class Flips(NamedTuple):
    """
    How often repeats of the same question differ; all None without repeats.
    """

    cases: int
    """With at least two readable answers."""
    held: Rate
    faults: dict[str, Rate]


class Score(NamedTuple):
    """
    All figures of a run.
    """

    judge: str
    """Who answered."""
    model: str
    rubric: str
    rubric_hash: str
    split: str
    cases_file: str
    cases_hash: str
    repeats: int
    seed: int
    """Of the resamples."""
    counts: Counts
    labelled: Figures
    sure: Figures | None
    """Of the cases whose labels are neither disputed nor of low confidence; None where there is none."""
    trust: tuple[Trust, ...]
    flips: Flips
    grounding: Rate
    """Findings whose quote stands in the reply, of all findings named."""
    lengths: Lengths
    tokens: Tokens
    latency: Latency
    costs: Costs


def score(run: Run, *, rates: Mapping[str, float] | None = None, seed: int = 0) -> Score:
    """
    Work out the score; `rates` are base rates by fault or `held`, in place of those of the run's own random sample.

    Raises `NotDecidable` where no case has labels, and what `check_scorable` raises.
    """
    readings = run.readings()
    judged = _judged(readings)
    labelled = [one for one in judged if one.case.labels is not None]
    bases = base_rates_of(run.cases, rates or {})
    counts = _counts(run, readings, labelled, bases)
    check_scorable(run, readings)
    if not labelled:
        raise NotDecidable(f"{run.folder}: no score: none of its {counts.cases} cases has labels")

    manifest = run.manifest
    sure = [one for one in labelled if one.case.is_sure]
    figures = _figures(run, labelled, bases, seed)
    answers = [reading.answer for reading in readings if reading.answer]
    return Score(
        manifest.judge or manifest.model,
        manifest.model,
        manifest.rubric,
        manifest.rubric_hash,
        manifest.split,
        manifest.cases_file,
        manifest.cases_hash,
        manifest.repeats,
        seed,
        counts,
        figures,
        _figures(run, sure, bases, seed) if sure else None,
        _trust(labelled, seed),
        _flips(judged, manifest.faults, seed),
        _grounding(readings, seed),
        lengths_of(judged, seed),
        tokens_of(answers),
        latency_of(answers),
        costs_of(spent_on(run), answers, figures.held),
    )


def as_json(value: object) -> Any:
    """
    Give a score, or any part of it, as plain JSON: amounts as decimal strings, shares with six decimals.
    """
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, Mapping):
        return {key: as_json(part) for key, part in cast("Mapping[str, object]", value).items()}
    if isinstance(value, tuple):
        fields = getattr(cast("object", value), "_fields", None)
        parts = [as_json(part) for part in cast("tuple[object, ...]", value)]
        return dict(zip(fields, parts, strict=True)) if fields else parts
    return value


def _judged(readings: Sequence[Reading]) -> list[Judged]:
    judged: list[Judged] = []
    for _, group in groupby(readings, key=lambda reading: reading.case.id):
        repeats = list(group)
        if named := tuple(reading.faults for reading in repeats if reading.verdict is not None):
            judged.append(Judged(repeats[0].case, named))
    return judged


def _counts(run: Run, readings: Sequence[Reading], labelled: Sequence[Judged], bases: BaseRates) -> Counts:
    came = Counter(map(outcome_of, readings))
    unlabelled = sum(case.labels is None for case in run.cases)
    return Counts(
        cases=len(run.cases),
        questions=len(readings),
        readable=came["readable"],
        unreadable=came["unreadable"],
        refused=came["refused"],
        errors=came["error"] + came["timeout"],
        unanswered=came["unanswered"],
        unlabelled=unlabelled,
        unread=len(run.cases) - unlabelled - len(labelled),
        random=len(bases.drawn),
        random_unlabelled=bases.unlabelled,
    )


def _figures(run: Run, judged: Sequence[Judged], bases: BaseRates, seed: int) -> Figures:
    resamples = resamples_of(judged, seed)
    repeats = run.manifest.repeats
    whole = [sum(one.rightly(HELD)) for one in judged if len(one.named) == repeats]
    chances = [statistics.pass_hat_k(whole, repeats, k) for k in range(1, repeats + 1)]
    return Figures(
        len(judged),
        sum(not one.case.labels for one in judged),
        resamples.clusters,
        marks(judged, HELD, resamples, bases, seed),
        tuple(marks(judged, fault, resamples, bases, seed) for fault in run.manifest.faults),
        tuple(chance for chance in chances if chance is not None),
        len(whole),
    )


def _trust(judged: Sequence[Judged], seed: int) -> tuple[Trust, ...]:
    found: list[Trust] = []
    for confidence in ("high", "medium", "low"):
        some = [one for one in judged if one.case.confidence == confidence]
        right = [sum(one.rightly(HELD)) / len(one.named) for one in some]
        found.append(Trust(confidence, len(some), rate_of(right, [1.0] * len(some), resamples_of(some, seed))))
    return tuple(found)


def _flips(judged: Sequence[Judged], faults: Sequence[str], seed: int) -> Flips:
    repeated = [one for one in judged if len(one.named) > 1]
    resamples = resamples_of(repeated, seed)

    def flips(fault: str) -> Rate:
        return rate_of([0 < one.share(fault) < 1 for one in repeated], [1.0] * len(repeated), resamples)

    return Flips(len(repeated), flips(HELD), {fault: flips(fault) for fault in faults})


def _grounding(readings: Sequence[Reading], seed: int) -> Rate:
    read = [reading for reading in readings if reading.verdict is not None]
    kept = [float(len(reading.verdict.findings)) for reading in read if reading.verdict is not None]
    resamples = Resamples([reading.case.cluster for reading in read], seed=seed)
    return rate_of(kept, [float(reading.named) for reading in read], resamples)
