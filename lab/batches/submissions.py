"""
The submissions of a run: which questions went into which batch, and whether its answers were collected.

`batches.jsonl` in the run's folder has a line before each submission, one with the batch's id after it, and one at the end. A submission
without an id may have arrived all the same: its batch is known by its questions' ids, which no other submission has.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, Field  # noqa: TID253 - its lines are checked as a run's are

from ...costing.stamps import moment, new_id, stamp
from ..cases import STRICT, json_object, read_strict
from ..errors import LabError
from ..files import append_line, read_whole
from ..runs import Asked

BATCHES: Final = "batches.jsonl"


class Item(NamedTuple):
    """
    One question of a submission.
    """

    case: str
    repeat: int
    hash: str
    call: str
    """The id of its line in the ledger."""


class Submission(BaseModel):
    """
    What is about to be submitted.
    """

    model_config = STRICT

    did: Literal["submit"] = "submit"
    key: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    submitted_at: str
    endpoint: str
    """Host, port and path."""
    payer: str
    """A short hash by which another API key is told from this one."""
    model: str
    items: list[tuple[str, int, str, str]]
    """The fields of each `Item`."""

    @property
    def at(self) -> datetime:
        """
        When it was submitted.
        """
        return moment(self.submitted_at)

    @property
    def questions(self) -> dict[str, Item]:
        """
        Its questions by their ids in the batch: at most 64 letters, digits and hyphens.
        """
        return {
            f"{item[2]}-r{item[1]}-{self.key}-{place}": Item(*item)  # two cases of one turn have one hash
            for place, item in enumerate(self.items)
        }


class _Created(BaseModel):
    model_config = STRICT

    did: Literal["create"] = "create"
    key: str
    batch: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,200}$")]


class _Ended(BaseModel):
    model_config = STRICT

    did: Literal["end"] = "end"
    key: str
    how: Literal["collected", "not created"]


class Open(NamedTuple):
    """
    A submission whose answers were not collected yet.
    """

    submission: Submission
    batch: str
    """Empty where its id never arrived."""


class Submissions:
    """
    The submissions of a run's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.path: Final = folder / BATCHES

    def begin(self, asked: Sequence[Asked], *, at: datetime, endpoint: str, api_key: str, model: str) -> Submission:
        """
        Write down that questions are about to be submitted.
        """
        key = secrets.token_hex(4)
        submission = Submission(
            key=key,
            submitted_at=stamp(at),
            endpoint=endpoint,
            payer=payer(key, api_key),
            model=model,
            items=[
                # Ids of one millisecond differ by chance alone, and there may be 100,000 of them.
                (one.case.id, one.repeat, one.hash, new_id(at + timedelta(milliseconds=place)))
                for place, one in enumerate(asked)
            ],
        )
        append_line(self.path, submission.model_dump_json())
        return submission

    def created(self, submission: Submission, batch: str) -> None:
        """
        Write down the id of a submission's batch.
        """
        append_line(self.path, _Created(key=submission.key, batch=batch).model_dump_json())

    def ended(self, submission: Submission, how: Literal["collected", "not created"]) -> None:
        """
        Write down that nothing more comes of a submission.
        """
        append_line(self.path, _Ended(key=submission.key, how=how).model_dump_json())

    def read(self) -> tuple[list[Open], frozenset[str]]:
        """
        Give the submissions that are open, and the ids of all batches of this run. Raises `LabError`.
        """
        found: dict[str, Open] = {}
        batches: set[str] = set()
        for line in self._lines():
            if isinstance(line, Submission):
                found[line.key] = Open(line, "")
            elif isinstance(line, _Ended):
                found.pop(line.key, None)
            else:
                batches.add(line.batch)
                if line.key in found:
                    found[line.key] = found[line.key]._replace(batch=line.batch)
        return list(found.values()), frozenset(batches)

    def _lines(self) -> list[Submission | _Created | _Ended]:
        found: list[Submission | _Created | _Ended] = []
        for number, line in enumerate((read_whole(self.path) or b"").splitlines(), start=1):
            try:
                found.append(_read(line))
            except LabError as error:
                if not line.rstrip().endswith(b"}"):
                    continue  # cut off by a crash: of a submission, it was not sent yet; of an id, the batch is looked for
                raise LabError(f"{self.path}: line {number}: {error}") from None
        return found


def payer(key: str, api_key: str) -> str:
    """
    Give the short hash of an API key, another one for each submission.
    """
    return sha256(f"{key} {api_key}".encode()).hexdigest()[:8]


class _Line(BaseModel):
    line: Annotated[Submission | _Created | _Ended, Field(discriminator="did")]


def _read(line: bytes) -> Submission | _Created | _Ended:
    json_object(line)  # which takes no key twice
    return read_strict(_Line, b'{"line": ' + line + b"}").line
