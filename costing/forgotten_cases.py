"""
The cases that `turngate wrong` and `right` made of decisions which are forgotten: they hold the turn's text, and go with it.

Knows of a case what its line says of where it comes from, and leaves every other line as it is, byte for byte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple, cast

from .store import Store, StoreError, one_line
from .whole_file import read_file, whole_file

FILE_NAME: Final = "lab-cases.jsonl"
"""In the state directory; also the word by which its writers keep each other out."""

_OF_A_DECISION: Final = ("wrong-", "right-")
"""How the id of a case begins; the decision's follows."""


class CaseOrigin(NamedTuple):
    """
    Where a case comes from; empty where it does not say.
    """

    decision_id: str
    session_id: str


def forget_cases(store: Store, folder: str, is_forgotten: Callable[[Sequence[CaseOrigin]], Sequence[bool]]) -> int:
    """
    Take the cases of forgotten decisions out of the file, and give their number. Raises StoreError.
    """
    path = os.path.join(folder, FILE_NAME)
    # As `wrong` does: nobody writes the file meanwhile.
    with store.write(alone=FILE_NAME):
        lines = _lines(path)
        forgotten = is_forgotten([_origin(line) for line in lines])
        kept = [line for line, goes in zip(lines, forgotten, strict=True) if not goes]
        if len(kept) < len(lines):
            _replace(path, b"".join(kept))
    return len(lines) - len(kept)


def count_cases(folder: str, is_forgotten: Callable[[Sequence[CaseOrigin]], Sequence[bool]]) -> int:
    """
    Give the number of cases that `forget_cases` would take out. Raises StoreError.
    """
    return sum(is_forgotten([_origin(line) for line in _lines(os.path.join(folder, FILE_NAME))]))


def _lines(path: str) -> list[bytes]:
    try:
        return list(BytesIO(read_file(Path(path)) or b""))
    except OSError as error:
        raise StoreError(f"{one_line(path)}: not readable: {error.strerror}") from error


def _origin(line: bytes) -> CaseOrigin:
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return CaseOrigin("", "")
    if not isinstance(found, dict):
        return CaseOrigin("", "")

    case = cast("dict[str, object]", found)
    case_id, session_id = case.get("id"), case.get("session")
    is_of_one = isinstance(case_id, str) and case_id.startswith(_OF_A_DECISION)
    return CaseOrigin(
        str(case_id).partition("-")[2] if is_of_one else "", session_id if isinstance(session_id, str) else ""
    )


def _replace(path: str, content: bytes) -> None:
    try:
        with whole_file(Path(path)) as file:
            file.write(content)
    except OSError as error:
        raise StoreError(f"{one_line(path)}: not written: {error.strerror}") from error
