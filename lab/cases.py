"""
The cases: turns with labels, one JSON object a line.

A case's turn is that of `POST /v1/judge`, so that a recorded or harvested turn is a case without any change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..costing.screen import one_line
from ..judge.service.wire import WireTurn
from ..rubric.library import load
from ..rubric.turn import Turn, as_json
from .errors import LabError

LONGEST_LINE: Final = 4_000_000
"""In bytes: a turn has some 300,000 characters at most."""

STRICT: Final = ConfigDict(strict=True, extra="forbid", frozen=True)
"""One field more, one less or one of another type is an error."""

_Text = Annotated[str, Field(max_length=10_000)]
_Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\s]+$")]
_Fault = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]


_Model = TypeVar("_Model", bound=BaseModel)


class Case(BaseModel):
    """
    A turn, and what people say of it.
    """

    model_config = STRICT

    id: _Name
    wire_turn: WireTurn = Field(alias="turn")
    labels: list[_Fault] | None = None
    """The faults that the reply shows, empty where it is clean; None where nobody has said yet."""
    confidence: Literal["high", "medium", "low"] = "high"
    disputed: bool = False
    """Two people saw it differently before they agreed on the labels."""
    rationale: _Text = ""
    source: _Text = ""
    licence: _Text = ""
    client_version: _Text = ""
    model: _Text = ""
    """The model that wrote the reply."""
    session: _Text = ""
    """Turns of one session resemble each other: intervals are worked out over sessions. Empty: a session of its own."""
    tags: list[_Text] = []
    split: Literal["dev", "test"] = "dev"
    sample: Literal["picked", "random"] = "picked"
    """`random` where the turn was drawn blindly: from such turns base rates can be told."""

    @model_validator(mode="after")
    def _labels_once(self) -> Case:
        if self.labels is not None and len(set(self.labels)) != len(self.labels):
            raise ValueError("labels: a fault stands there twice")
        return self

    @property
    def turn(self) -> Turn:
        """
        The turn as a rubric takes it.
        """
        return self.wire_turn.turn()

    @property
    def cluster(self) -> str:
        """
        What the case is resampled with.
        """
        return self.session or self.id

    @property
    def is_sure(self) -> bool:
        """
        Whether the labels are neither disputed nor of low confidence.
        """
        return not self.disputed and self.confidence != "low"


class Problem(NamedTuple):
    """
    What is wrong with a line.
    """

    line: int
    text: str


def new_case(case_id: str, turn: Turn, **fields: Any) -> Case:
    """
    Make a case of a turn. Raises `LabError` where a field does not fit.
    """
    try:
        return Case.model_validate({"id": case_id, "turn": json.loads(as_json(turn)), **fields})
    except ValidationError as error:
        raise LabError(f"case {case_id}: {_told(error)}") from None


def case_line(case: Case) -> str:
    """
    Write a case as one line of JSON, with its end.
    """
    fields = case.model_dump(exclude={"wire_turn"})
    turn = json.loads(as_json(case.turn))
    return json.dumps({"id": fields.pop("id"), "turn": turn, **fields}, ensure_ascii=False) + "\n"


def read_cases(path: Path, *, faults: Collection[str] = ()) -> list[Case]:
    """
    Read a file of cases, at least one, with ids that differ and labels out of `faults` (the shipped rubric's where empty).

    Raises `LabError` with the first problem; hand-labelled turns of the form of `labelled` are read too.
    """
    cases, problems = check_cases(path, faults=faults)
    if problems:
        more = f" (and {len(problems) - 1} more: `turngate lab check`)" if len(problems) > 1 else ""
        raise LabError(f"{path}: line {problems[0].line}: {problems[0].text}{more}")
    if not cases:
        raise LabError(f"{path}: no case in it")
    return cases


def check_cases(path: Path, *, faults: Collection[str] = ()) -> tuple[list[Case], list[Problem]]:
    """
    Read what can be read of a file of cases, and tell what is wrong with each of the other lines.

    Raises `LabError` where the file cannot be read at all.
    """
    known = frozenset(faults or load().faults)
    cases: list[Case] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for number, line in _lines(path):
        try:
            case = read_case(line)
        except LabError as error:
            problems.append(Problem(number, str(error)))
            continue
        unknown = [fault for fault in case.labels or () if fault not in known]
        if unknown:
            problems.append(
                Problem(number, f"labels: unknown fault {unknown[0]!r}: expected {', '.join(sorted(known))}")
            )
        elif case.id in seen:
            problems.append(Problem(number, f"id: {case.id!r} stands on line {seen[case.id]} already"))
        else:
            seen[case.id] = number
            cases.append(case)
    return cases, problems


def read_case(line: bytes) -> Case:
    """
    Read one line. Raises `LabError` with a line that names the key.
    """
    from .labelled import is_labelled_line, labelled_case

    fields = json_object(line)
    if is_labelled_line(fields):
        return labelled_case(fields)
    try:
        return Case.model_validate(fields)
    except ValidationError as error:
        raise LabError(_told(error)) from None


def read_strict(model: type[_Model], data: bytes) -> _Model:
    """
    Read a JSON object into a model. Raises `LabError` with a line that names the key.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise LabError(_told(error)) from None


def json_object(line: bytes) -> dict[str, Any]:
    """
    Read a line that must be a JSON object. Raises `LabError`.
    """
    try:
        found: object = json.loads(line.decode("utf-8-sig").rstrip())
    except UnicodeDecodeError:
        raise LabError("not UTF-8") from None
    except json.JSONDecodeError as error:
        raise LabError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except (RecursionError, ValueError):
        raise LabError("not JSON that can be read: nested too deeply, or a number of too many digits") from None
    if not isinstance(found, dict):
        raise LabError("expected a JSON object")
    return cast("dict[str, Any]", found)


def write_cases(path: Path, cases: Iterable[Case]) -> int:
    """
    Write a file of cases for its owner alone, all or nothing, and give their number. Raises `LabError`.
    """
    from .files import write_whole

    lines = [case_line(case) for case in cases]
    write_whole(path, "".join(lines))
    return len(lines)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), start=1):
                if len(line) > LONGEST_LINE:
                    raise LabError(f"{path}: line {number}: longer than {LONGEST_LINE:,} bytes")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise LabError(f"{path}: not readable: {error.strerror}") from error


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    facts: Mapping[str, Any] = first.get("ctx", {})
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]).removeprefix(".")
    words = {"missing": "missing", "extra_forbidden": "unknown key"}
    what = str(facts["error"]) if first["type"] == "value_error" else words.get(first["type"], first["msg"])
    return one_line(f"{place}: {what}" if place else what)[:300]
