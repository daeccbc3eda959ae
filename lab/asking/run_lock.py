"""
One process at a time asks for a run: two would pay for each question twice.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..errors import LabError
from ..runs import check_folder

LOCK: Final = "run.lock"


@contextmanager
def alone(folder: Path) -> Generator[None]:
    """
    Hold a run's folder while the block is open. The lock of a process that was killed is gone with it. Raises `LabError`.
    """
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A file of its own, for the others may be written anew.
        held = os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise LabError(f"{folder / LOCK}: cannot be written: {error.strerror}") from error
    try:
        _take(held, folder)
        yield
    finally:
        os.close(held)


def _take(held: int, folder: Path) -> None:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise LabError(f"{folder}: another process asks for this run already") from None
