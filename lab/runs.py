"""
A run: cases, a rubric and a judge, and all that was answered, in a folder of its own.

`run.json` says what was asked of whom, `cases.jsonl` holds the cases, `answers.jsonl` grows by one line for each answer, and
`turngate.db` is the ledger of what the run paid. An answer is kept by the hash of its request: what was answered is never asked again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, Field

from ..judge.settings import JudgeSettings
from ..rubric.library import Rubric
from ..rubric.render import CeilingTooLow, Request, render
from ..rubric.turn import Turn, as_json
from ..rubric.verdict import UnreadableVerdict, Verdict, ground, parse_verdict
from .cases import STRICT, Case, json_object, read_cases, read_strict, write_cases
from .errors import LabError
from .files import append_line, is_json, read_whole, write_whole

MANIFEST: Final = "run.json"
CASES: Final = "cases.jsonl"
ANSWERS: Final = "answers.jsonl"
FORMAT: Final = 1

AnswerOutcome = Literal["answered", "timeout", "error", "refused"]
Via = Literal["run", "batch", "import"]


def _amount(usd: Decimal) -> Decimal:
    # One of a million digits would be written out in full.
    if not 0 <= usd <= 1_000_000 or usd.adjusted() < -40:
        raise ValueError("expected an amount in US dollars from 0 up")
    return usd


class Manifest(BaseModel):
    """
    What was asked of whom.
    """

    model_config = STRICT

    format: Literal[1] = FORMAT
    created_at: str
    cases_file: str
    """The name of the file that the cases came from, without its folder."""
    cases_hash: str
    """Of the cases in any order, with their labels: two runs with the same hash are of the same cases, and mean the same by them."""
    split: Literal["dev", "test"]
    """`test` where any case is of the test split."""
    rubric: str
    rubric_hash: str
    faults: tuple[str, ...]
    model: str
    backend: str
    repeats: Annotated[int, Field(ge=1)]
    max_tokens: int
    max_input_tokens: int
    effort: str
    judge: str = ""
    """Who answered, in words, where that is not the model itself."""
    turngate: str = ""
    """The version."""
    hashes: dict[str, str] = {}
    """Of each case's question, by case id; empty in a run that was begun before they were noted."""


class Asked(NamedTuple):
    """
    One question of a run.
    """

    case: Case
    repeat: int
    """From 0."""
    request: Request
    hash: str
    """Of the request and the model's settings, 32 hex digits; the same for every repeat."""


class Answered(BaseModel):
    """
    What came of one question. A failure is kept too, and asked again by the next `lab run`.
    """

    model_config = STRICT

    case: str
    repeat: Annotated[int, Field(ge=0)]
    hash: str
    outcome: AnswerOutcome
    text: str = ""
    """What the model said, free of secrets; empty unless the outcome is `answered`."""
    detail: str = ""
    model_answered: str = ""
    raw_usage: dict[str, Any] | None = None
    cost_usd: Annotated[Decimal, AfterValidator(_amount)] | None = None
    """Of all its tries; None where any of them is unknown."""
    price_source: str = ""
    latency_ms: Annotated[int, Field(ge=0, le=10**9)] | None = None
    """Of the whole judgement, all tries together; None in a batch, and where somebody else answered."""
    calls: tuple[str, ...] = ()
    """Ids in the run's ledger."""
    via: Via = "run"
    at: str = ""


class Reading(NamedTuple):
    """
    A question with its answer, as a gate would read it.
    """

    case: Case
    repeat: int
    answer: Answered | None
    """None where nobody has answered yet."""
    verdict: Verdict | None
    """Grounded: `dropped` counts findings whose quote is not in the reply, or whose fault is unknown. None without a readable answer."""
    named: int = 0
    """Findings of the answer before any was dropped."""

    @property
    def faults(self) -> frozenset[str]:
        """
        The faults that the gate would name; empty without a verdict too: look at `verdict` first.
        """
        return frozenset(finding.fault for finding in self.verdict.findings) if self.verdict else frozenset()


class Run(NamedTuple):
    """
    A run as its folder has it.
    """

    folder: Path
    manifest: Manifest
    cases: list[Case]
    answers: dict[tuple[str, int], Answered]
    """By case id and repeat; the newest that was answered, else the newest failure; one to other words only where no other is."""
    damaged: tuple[int, ...] = ()
    """The numbers of the lines of answers that are no JSON, as a crash leaves them."""
    relabelled: int = 0
    """Cases of which `open_run` was told something else than the run had."""

    def readings(self) -> list[Reading]:
        """
        All questions of the run in the order of its cases, repeats last.
        """
        return [
            _read(case, repeat, self.answers.get((case.id, repeat)), self.manifest.faults)
            for case in self.cases
            for repeat in range(self.manifest.repeats)
        ]


def questions(cases: Sequence[Case], rubric: Rubric, settings: JudgeSettings, repeats: int) -> list[Asked]:
    """
    Render each case as the gate would. The tag that fences its parts is the turn's own, so that the same question is the same request.

    Raises `LabError` where the rubric leaves no room for a turn.
    """
    asked: list[Asked] = []
    for case in cases:
        try:
            request = render(rubric, case.turn, max_input_tokens=settings.max_input_tokens, tag=tag_of(case.turn))
        except CeilingTooLow as error:
            raise LabError(f"judge.{error}") from None
        digest = request_hash(request, settings)
        asked += [Asked(case, repeat, request, digest) for repeat in range(repeats)]
    return asked


def tag_of(turn: Turn) -> str:
    """
    The tag of a turn: no author of a turn can have known it, for it depends on every word.
    """
    return sha256(as_json(turn).encode("utf-8", "replace")).hexdigest()[:8]


def request_hash(request: Request, settings: JudgeSettings) -> str:
    """
    The hash by which an answer is kept: of all that the model gets, and how it is to answer.
    """
    whole = [request.system, request.user, request.schema, settings.model, settings.effort, settings.max_tokens]
    return sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]


def cases_hash(cases: Iterable[Case]) -> str:
    """
    The hash of a set of cases, whatever their order: of their turns, and of all that figures are worked out from.
    """
    return sha256("\n".join(sorted(map(_meaning, cases))).encode()).hexdigest()[:16]


def _meaning(case: Case) -> str:
    labels = None if case.labels is None else sorted(case.labels)
    said = labels, case.confidence, case.disputed, case.sample, case.session, case.split
    return json.dumps([case.id, case.turn_hash, *said])


def open_run(
    folder: Path,
    cases: Sequence[Case],
    cases_file: Path,
    rubric: Rubric,
    settings: JudgeSettings,
    repeats: int,
    *,
    judge: str = "",
    backend: str = "",
) -> Run:
    """
    Begin a run, or go on with the one in the folder: more repeats and other labels are taken, other turns, words or models are refused.

    Raises `LabError`, also where the folder holds somebody's files and no run.
    """
    from importlib.metadata import version

    check_folder(folder)
    manifest = Manifest(
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        cases_file=cases_file.name,
        cases_hash=cases_hash(cases),
        split="test" if any(case.split == "test" for case in cases) else "dev",
        rubric=rubric.label,
        rubric_hash=rubric.hash,
        faults=rubric.faults,
        model=settings.model,
        backend=backend or settings.backend,
        repeats=repeats,
        max_tokens=settings.max_tokens,
        max_input_tokens=settings.max_input_tokens,
        effort=settings.effort,
        judge=judge,
        turngate=version("turngate"),
        hashes={asked.case.id: asked.hash for asked in questions(cases, rubric, settings, 1)},
    )
    relabelled = 0
    if (folder / MANIFEST).exists():
        before = _manifest(folder / MANIFEST)
        _check_same(folder, before, manifest)
        relabelled = _relabelled(folder, before, cases)
        kept = {"created_at": before.created_at, "backend": before.backend, "turngate": before.turngate}
        manifest = manifest.model_copy(update={**kept, "repeats": max(repeats, before.repeats)})
    # In this order: cases alone would be somebody's file.
    write_whole(folder / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
    write_cases(folder / CASES, cases)
    return read_run(folder)._replace(relabelled=relabelled)


def check_folder(folder: Path) -> None:
    """
    Look whether a run may be begun or gone on with there: its files are never written over somebody's own. Raises `LabError`.
    """
    if os.path.lexists(folder / MANIFEST):
        return
    if folder == Path():
        raise LabError("the run's folder has no name, or is the one you are in: name one for the run alone")
    if os.path.lexists(folder) and not folder.is_dir():
        raise LabError(f"{folder}: is no folder")
    for name in (CASES, ANSWERS, "batches.jsonl", "turngate.db"):
        if os.path.lexists(folder / name):
            raise LabError(f"{folder}: holds {name} and no run ({MANIFEST} is missing): choose another folder")


def read_run(folder: Path) -> Run:
    """
    Read a run. Raises `LabError`, naming file, line and key, and where its cases are not those of its manifest any more.
    """
    manifest = _manifest(folder / MANIFEST)
    cases = read_cases(folder / CASES, faults=manifest.faults)
    if cases_hash(cases) != manifest.cases_hash:
        raise LabError(f"{folder / CASES}: was changed since: go on with the run, which takes the cases anew")
    answers, damaged = _answers(folder / ANSWERS, manifest.hashes)
    return Run(folder, manifest, cases, answers, damaged)


def keep(folder: Path, answered: Answered) -> None:
    """
    Keep an answer: it is on the disk when this returns. Raises `LabError`.
    """
    append_line(folder / ANSWERS, answered.model_dump_json())


def _read(case: Case, repeat: int, answer: Answered | None, faults: tuple[str, ...]) -> Reading:
    if answer is None or answer.outcome != "answered":
        return Reading(case, repeat, answer, None)
    try:
        verdict = parse_verdict(answer.text, faults)
    except UnreadableVerdict:
        return Reading(case, repeat, answer, None)
    named = len(verdict.findings) + verdict.dropped
    return Reading(case, repeat, answer, ground(verdict, (case.turn.reply,)), named)


_FIXED: Final = ("rubric_hash", "model", "max_tokens", "max_input_tokens", "effort", "judge")


def _check_same(folder: Path, before: Manifest, now: Manifest) -> None:
    for key in _FIXED:
        old, new = getattr(before, key), getattr(now, key)
        if old != new:
            raise LabError(
                f"{folder}: holds another run: {key} is {old!r}, asked for is {new!r}; choose another folder"
            )


def _relabelled(folder: Path, before: Manifest, cases: Sequence[Case]) -> int:
    """
    Count the cases of a run of which something else is said now. Raises `LabError` where their turns are others.
    """
    if not (folder / CASES).exists() and before.cases_hash == cases_hash(cases):
        return 0  # it was killed before they were written
    had = read_cases(folder / CASES, faults=before.faults)
    if {case.id: case.turn_hash for case in had} != {case.id: case.turn_hash for case in cases}:
        raise LabError(f"{folder}: holds another run: its cases have other ids or turns; choose another folder")
    return len(set(map(_meaning, cases)) - set(map(_meaning, had)))


def _manifest(path: Path) -> Manifest:
    data = read_whole(path)
    if data is None:
        raise LabError(f"{path.parent}: no run in it ({MANIFEST} is missing)")
    try:
        json_object(data)
        return read_strict(Manifest, data)
    except LabError as error:
        raise LabError(f"{path}: {error}") from None


def _answers(path: Path, hashes: Mapping[str, str]) -> tuple[dict[tuple[str, int], Answered], tuple[int, ...]]:
    """
    Give the answers, and which lines are damaged: their questions are asked again.
    """
    found: dict[tuple[str, int], Answered] = {}
    damaged: list[int] = []
    for number, line in enumerate((read_whole(path) or b"").splitlines(), start=1):
        if not is_json(line):
            damaged += [number] if line.strip() else []
            continue
        try:
            json_object(line)  # which takes no key twice
            answered = read_strict(Answered, line)
        except LabError as error:
            raise LabError(f"{path}: line {number}: {error}") from None
        key = answered.case, answered.repeat
        before = found.get(key)
        if before is None or not _outweighs(before, answered, hashes.get(answered.case)):
            found[key] = answered
    return found, tuple(damaged)


def _outweighs(before: Answered, now: Answered, asked: str | None) -> bool:
    # An answer to other words counts no more once the question was asked in these; nor does it take the place of one to these.
    if before.hash != now.hash:
        return before.hash == asked
    return before.outcome == "answered" and now.outcome != "answered"
