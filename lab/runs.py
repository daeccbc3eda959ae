"""
A run: cases, a rubric and a judge, and all that was answered, in a folder of its own.

`run.json` says what was asked of whom, `cases.jsonl` holds the cases, `answers.jsonl` grows by one line for each answer, and
`turngate.db` is the ledger of what the run paid. An answer is kept by the hash of its request: what was answered is never asked again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, Field

from ..judge.settings import JudgeSettings
from ..rubric.library import Rubric
from ..rubric.render import CeilingTooLow, Request, render
from ..rubric.turn import Turn, as_json
from ..rubric.verdict import UnreadableVerdict, Verdict, ground, parse_verdict
from .cases import STRICT, Case, read_cases, read_strict, write_cases
from .errors import LabError
from .files import append_line, write_whole

MANIFEST: Final = "run.json"
CASES: Final = "cases.jsonl"
ANSWERS: Final = "answers.jsonl"
FORMAT: Final = 1

AnswerOutcome = Literal["answered", "timeout", "error", "refused"]
Via = Literal["run", "batch", "import"]


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
    """Of ids, turns and labels, in any order: two runs with the same hash are of the same cases."""
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
    cost_usd: Decimal | None = None
    """Of all its tries; None where any of them is unknown."""
    price_source: str = ""
    latency_ms: int | None = None
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
    """By case id and repeat; the newest that was answered, else the newest failure."""

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
    The hash of a set of cases, whatever their order.
    """
    lines = sorted(json.dumps([case.id, as_json(case.turn), sorted(case.labels or ()), case.split]) for case in cases)
    return sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()[:16]


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
    Begin a run, or go on with the one in the folder: more repeats are taken, other cases, words or models are refused (`LabError`).
    """
    from importlib.metadata import version

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
    )
    if (folder / MANIFEST).exists():
        before = read_run(folder)
        _check_same(folder, before.manifest, manifest)
        manifest = before.manifest.model_copy(update={"repeats": max(repeats, before.manifest.repeats)})
    else:
        write_cases(folder / CASES, cases)
    write_whole(folder / MANIFEST, manifest.model_dump_json(indent=2) + "\n")
    return read_run(folder)


def read_run(folder: Path) -> Run:
    """
    Read a run. Raises `LabError`, naming file, line and key.
    """
    manifest = _manifest(folder / MANIFEST)
    cases = read_cases(folder / CASES, faults=manifest.faults)
    return Run(folder, manifest, cases, _answers(folder / ANSWERS))


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


_FIXED: Final = ("cases_hash", "rubric_hash", "model", "max_tokens", "max_input_tokens", "effort", "judge")


def _check_same(folder: Path, before: Manifest, now: Manifest) -> None:
    for key in _FIXED:
        old, new = getattr(before, key), getattr(now, key)
        if old != new:
            raise LabError(
                f"{folder}: holds another run: {key} is {old!r}, asked for is {new!r}; choose another folder"
            )


def _manifest(path: Path) -> Manifest:
    try:
        return read_strict(Manifest, path.read_bytes())
    except FileNotFoundError:
        raise LabError(f"{path.parent}: no run in it ({MANIFEST} is missing)") from None
    except OSError as error:
        raise LabError(f"{path}: not readable: {error.strerror}") from error
    except LabError as error:
        raise LabError(f"{path}: {error}") from None


def _answers(path: Path) -> dict[tuple[str, int], Answered]:
    found: dict[tuple[str, int], Answered] = {}
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return found
    except OSError as error:
        raise LabError(f"{path}: not readable: {error.strerror}") from error
    for number, line in enumerate(lines, start=1):
        try:
            answered = read_strict(Answered, line)
        except LabError as error:
            if not line.rstrip().endswith(b"}"):
                continue  # empty, or cut off by a crash: the question is asked again
            raise LabError(f"{path}: line {number}: {error}") from None
        key = answered.case, answered.repeat
        before = found.get(key)
        if before is None or not _outweighs(before, answered):
            found[key] = answered
    return found


def _outweighs(before: Answered, now: Answered) -> bool:
    # An answer to other words counts no more once the question was asked in these.
    return before.outcome == "answered" and now.outcome != "answered" and before.hash == now.hash
