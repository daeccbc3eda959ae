"""
Why the last service that a hook started could not serve: kept in the state directory, for who starts the next and for `turngate status`.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final

FILE_NAME: Final = "turngate.service.failed"

RETRY_AFTER_S: Final = 60.0
"""Until then hooks decide by themselves: each start in vain costs its stop up to a second."""

_LONGEST: Final = 500


def remember_failure(folder: str, reason: str) -> None:
    """
    Leave a line. Where that is not possible, the next hook tries in vain too.

    Nothing is left in a directory of another user, who could not take it away again.
    """
    with suppress(OSError):
        if hasattr(os, "geteuid") and os.stat(folder).st_uid != os.geteuid():  # noqa: PTH116
            return
        descriptor = os.open(_path(folder), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(" ".join(reason.split())[:_LONGEST] + "\n")


def forget_failure(folder: str) -> None:
    """
    A service runs.
    """
    with suppress(OSError):
        os.unlink(_path(folder))  # noqa: PTH108


def last_failure(folder: str) -> str:
    """
    Give the reason, empty where the last start went well or nobody started one.
    """
    try:
        with open(_path(folder), encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST).strip()
    except OSError:
        return ""


def has_failed_lately(folder: str) -> bool:
    """
    Say whether it is too early for another try.
    """
    try:
        return 0 <= time.time() - os.stat(_path(folder)).st_mtime < RETRY_AFTER_S  # noqa: PTH116
    except OSError:
        return False


def _path(folder: str) -> str:
    return os.path.join(folder, FILE_NAME)
