"""
Which transcripts are meant by the files and folders that a person names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from stat import S_ISDIR
from typing import Final, NamedTuple

from ...costing.screen import one_line
from ...stopgate.console import warn
from ...stopgate.places import expand_home
from ..errors import LabError

_MOST_NAMED: Final = 3
_LONGEST_NAMED: Final = 200


class Transcripts(NamedTuple):
    """
    What was found.
    """

    files: list[Path]
    """Each once, links resolved, in a fixed order. One that cannot be read is among them."""
    unreadable: list[str]
    """One line for each folder that cannot be looked into."""


def transcripts_under(paths: Sequence[Path]) -> Transcripts:
    """
    Find the transcripts (`*.jsonl`) in files and folders. Raises `LabError` where there is none.
    """
    found: dict[object, Path] = {}
    unreadable: list[str] = []
    for path in paths:
        for file in _in_folder(path, unreadable) if _is_folder(path) else [path]:
            found.setdefault(*_resolved(file))
    if not found:
        raise LabError(_told(unreadable) if unreadable else f"no transcript (*.jsonl) in {', '.join(map(str, paths))}")
    return Transcripts(list(found.values()), unreadable)


def clients_own(environ: Mapping[str, str]) -> Path:
    """
    Give the folder in which the client keeps its transcripts.
    """
    return Path(expand_home(environ.get("CLAUDE_CONFIG_DIR") or "~/.claude", environ), "projects")


def tell_unreadable(unreadable: Sequence[str], *, read: int) -> None:
    """
    Say how many files and folders could not be read, and name the first. Raises `LabError` where no other was read.
    """
    if unreadable and not read:
        raise LabError(_told(unreadable))
    if unreadable:
        warn(_told(unreadable))


def _told(unreadable: Sequence[str]) -> str:
    count = len(unreadable)
    more = f", and {count - _MOST_NAMED:,} more" if count > _MOST_NAMED else ""
    named = "; ".join(one_line(line)[:_LONGEST_NAMED] for line in unreadable[:_MOST_NAMED])
    return f"{count:,} {'file or folder' if count == 1 else 'files or folders'} could not be read: {named}{more}"


def _is_folder(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        raise LabError(f"{path}: no such file or folder; name one that holds transcripts") from None
    except OSError:
        return False
    try:
        return S_ISDIR(path.stat().st_mode)
    except OSError:  # reading it will tell why
        return False


def _in_folder(folder: Path, unreadable: list[str]) -> list[Path]:
    def note(error: OSError) -> None:
        # A folder that cannot be looked into must not pass for an empty one.
        unreadable.append(f"{error.filename}: {error.strerror}")

    files = (
        Path(place, name)
        for place, _, names in os.walk(folder, onerror=note)
        for name in names
        if name.endswith(".jsonl")
    )
    return sorted(files)


def _resolved(file: Path) -> tuple[object, Path]:
    """
    Give what a file is known by, whatever its names, and where it lies.
    """
    try:
        stat = file.stat()
    except OSError:
        return file, file
    return (stat.st_dev, stat.st_ino), Path(os.path.realpath(file))
