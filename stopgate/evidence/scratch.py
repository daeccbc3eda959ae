"""
Whether a file is scratch: temporary, or the client's own, and so no part of the work.
"""

from __future__ import annotations

import os
from posixpath import join, normpath


def is_scratch(file: str, cwd: str) -> bool:
    """
    Whether a file lies in a folder of temporary files or of the client's own; what lies under *cwd* is always work.
    """
    file, cwd = _absolute(file, cwd), _absolute(cwd, "") if cwd else ""
    if cwd and _is_under(file, cwd):
        return False
    folders = ["/tmp", "/var/folders", "$TMPDIR", "${TMPDIR}", "~/.claude"]  # noqa: S108
    folders.append(os.path.expanduser("~/.claude"))  # noqa: PTH111 - without a home it raises nothing
    if temporary := os.environ.get("TMPDIR"):
        folders.append(_absolute(temporary, ""))
    return "/.claude/plans/" in file or any(_is_under(file, folder) for folder in folders)


def _is_under(file: str, folder: str) -> bool:
    return file.startswith(folder.rstrip("/") + "/")


def _absolute(path: str, cwd: str) -> str:
    path = normpath(path if path.startswith(("~", "$")) else join(cwd, path))
    # Of macOS, where `/tmp` and `/var` are links.
    return path.removeprefix("/private") if path.startswith(("/private/tmp", "/private/var")) else path
