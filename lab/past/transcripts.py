"""
Which transcripts are meant by the files and folders that a person names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...stopgate.places import expand_home
from ..errors import LabError


def transcripts_under(paths: Sequence[Path]) -> list[Path]:
    """
    Find the transcripts (`*.jsonl`) in files and folders, each once, in a fixed order. Raises `LabError` where there is none.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        if not os.path.lexists(path):
            raise LabError(f"{path}: no such file or folder")
        for file in _in_folder(path) if path.is_dir() else [path]:
            found.setdefault(Path(os.path.realpath(file)), file)
    if not found:
        raise LabError(f"{', '.join(map(str, paths))}: no transcript (*.jsonl) in it")
    return list(found.values())


def clients_own(environ: Mapping[str, str]) -> Path:
    """
    Give the folder in which the client keeps its transcripts.
    """
    folder = environ.get("CLAUDE_CONFIG_DIR") or expand_home("~/.claude", environ)
    return Path(folder, "projects")


def _in_folder(folder: Path) -> list[Path]:
    def refuse(error: OSError) -> None:
        # A folder that cannot be looked into must not pass for an empty one.
        raise LabError(f"{error.filename}: not readable: {error.strerror}") from error

    files = (
        Path(place, name)
        for place, _, names in os.walk(folder, onerror=refuse)
        for name in names
        if name.endswith(".jsonl")
    )
    return sorted(files)
