"""
What a settings file was before turngate came into it, so that uninstalling can give it back byte for byte.

The file's own backup lies beside it; which backup belongs to which content is remembered in the state directory.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast

from ..replaced_file import replace_file
from ..small_files import read_small
from .client_settings import BACKUP, ClientFile

FILE_NAME: Final = "turngate.installs.json"


class Before(NamedTuple):
    """
    The content of a file before the first install; None: there was no file.
    """

    content: bytes | None


def remember(folder: str, file: ClientFile, after: bytes) -> None:
    """
    Remember that the file becomes `after`.
    """
    known = _read(folder)
    before = known.get(file.target)
    is_ours_already = isinstance(before, dict) and cast("dict[str, str]", before).get("after") == _hash(file.content)
    first = cast("dict[str, str]", before)["before"] if is_ours_already else _hash(file.content)
    known[file.target] = {"before": first, "after": _hash(after)}
    _write(folder, known)


def has_original(folder: str, file: ClientFile) -> bool:
    """
    Say whether the backup beside the file is that of what was there before turngate, and nothing else was changed since.
    """
    return before(folder, file) is not None


def before(folder: str, file: ClientFile) -> Before | None:
    """
    Give what the file was, where nobody else has changed it since; None where that is not known.
    """
    entry = _read(folder).get(file.target)
    if not isinstance(entry, dict) or cast("dict[str, str]", entry).get("after") != _hash(file.content):
        return None
    wanted = cast("dict[str, str]", entry).get("before")
    if wanted == _hash(None):
        return Before(None)
    with suppress(OSError):
        content = read_small(file.target + BACKUP)
        return Before(content) if content is not None and _hash(content) == wanted else None
    return None


def forget(folder: str, file: ClientFile) -> None:
    """
    Forget the file, and remove the backup beside it.
    """
    known = _read(folder)
    if known.pop(file.target, None) is None:
        return
    with suppress(OSError):
        os.unlink(file.target + BACKUP)  # noqa: PTH108
    _write(folder, known)


def _hash(content: bytes | None) -> str:
    return "" if content is None else hashlib.sha256(content).hexdigest()


def _read(folder: str) -> dict[str, Any]:
    with suppress(OSError, ValueError, RecursionError):
        found: object = json.loads(read_small(os.path.join(folder, FILE_NAME)) or b"{}")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    return {}


def _write(folder: str, known: dict[str, Any]) -> None:
    path = os.path.join(folder, FILE_NAME)
    # What cannot be remembered is taken out by hand, hook by hook.
    with suppress(OSError):
        if known:
            replace_file(path, json.dumps(known, indent=1).encode() + b"\n", mode=0o600)
        else:
            os.unlink(path)  # noqa: PTH108
