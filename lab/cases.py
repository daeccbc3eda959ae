"""
The cases: turns with labels, one JSON object a line.

A case's turn is that of `POST /v1/judge`, so that a recorded or harvested turn is a case without any change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..costing.screen import one_line
from ..judge.service.wire import WireTurn
from ..rubric.library import load
from ..rubric.turn import Turn, as_json
from .errors import LabError

LONGEST_LINE: Final = 4_000_000
"""In bytes: a turn has some 300,000 characters at most."""

STRICT: Final = ConfigDict(strict=True, extra="forbid", frozen=True)
"""One field more, one less or one of another type is an error."""


def _printable(text: str) -> str:
    if not text.isprintable() or " " in text:
        raise ValueError("expected printable characters without white space")
    return text


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
"""Of a case or a person: it can be shown as it is."""
Fault = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]

_Text = Annotated[str, Field(max_length=10_000)]
_Model = TypeVar("_Model", bound=BaseModel)


class Case(BaseModel):
    """
    A turn, and what people say of it.
    """

    model_config = STRICT

    id: Name
    wire_turn: WireTurn = Field(alias="turn")
    labels: list[Fault] | None = None
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
    def turn_hash(self) -> str:
        """
        The hash of the turn, 16 hex digits: labels are of these words, whatever the id.
        """
        return sha256(as_json(self.turn).encode("utf-8", "replace")).hexdigest()[:16]

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
        raise LabError(f"case {one_line(case_id)[:200]}: {_told(error)}") from None


def case_line(case: Case) -> str:
    """
    Write a case as one line of JSON, with its end.
    """
    fields = case.model_dump(exclude={"wire_turn"})
    turn = json.loads(as_json(case.turn))
    return json.dumps({"id": fields.pop("id"), "turn": turn, **fields}, ensure_ascii=False) + "\n"


def read_cases(path: Path, *, faults: Collection[str] = ()) -> list[Case]:
    """
    Read a file of cases, at least one, with ids that differ, no turn in both splits, and labels out of `faults` (the shipped rubric's
    where empty).

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
    turns: dict[str, Case] = {}
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
        elif (same := turns.setdefault(case.turn_hash, case)).split != case.split:
            told = f"turn: is that of {same.id!r} on line {seen[same.id]}, which is of the other split, {same.split}"
            problems.append(Problem(number, told))
        else:
            seen[case.id] = number
            cases.append(case)
    return cases, problems


def read_case(line: bytes) -> Case:
    """
    Read one line. Raises `LabError` with a line that names the key.
    """
    from .labelled import is_labelled_line, labelled_case

    if len(line) > LONGEST_LINE:
        raise LabError(f"longer than {LONGEST_LINE:,} bytes")
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
        found: object = json.loads(line.decode("utf-8-sig").rstrip(), object_pairs_hook=_without_duplicates)
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
    """
    Each line with its number; of one that is too long, a beginning that is too long still.
    """
    try:
        if path.exists() and not path.is_file():  # to open a FIFO would wait for its writer
            raise LabError(f"{path}: not readable: no regular file")
        with path.open("rb") as file:
            for number in count(1):
                line = rest = file.readline(LONGEST_LINE + 1)
                while len(rest) > LONGEST_LINE and not rest.endswith(b"\n"):
                    rest = file.readline(LONGEST_LINE + 1)
                if not line:
                    return
                if line.strip():
                    yield number, line
    except OSError as error:
        raise LabError(f"{path}: not readable: {error.strerror}") from error


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise LabError(f"{one_line(name)[:60]}: stands twice in one object")
        found[name] = value
    return found


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    facts: Mapping[str, Any] = first.get("ctx", {})
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]).removeprefix(".")
    words = {"missing": "missing", "extra_forbidden": "unknown key"}
    what = str(facts["error"]) if first["type"] == "value_error" else words.get(first["type"], first["msg"])
    return one_line(f"{place}: {what}" if place else what)[:300]
