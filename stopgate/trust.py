"""
The environment, as far as it can be trusted: without what the project has put into it.

The client gives its hooks the variables that a project's own client settings name under `env`. A cloned repository could so redirect
text and keys: by `TURNGATE_*` and `ANTHROPIC_*`, and by `HOME`, `XDG_*` or a proxy, which lead to other settings or another host.
Only the client's own `CLAUDE_*` stay, without its token.

The client takes project settings from the folder that it was started in, and its `settings.local.json` also from the root of the git
repository above, and from the main checkout of a worktree (measured on client 2.1.328).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from .small_files import TooLarge, read_small

_LONGEST_PATH: Final = 4096
"""The system takes no longer one (PATH_MAX of Linux)."""

_MOST_STEPS: Final = 400
"""Names on the way to a file; links that lead round have no end."""

_SECRETS: Final = frozenset(("CLAUDE_CODE_OAUTH_TOKEN",))
"""Of the client's own variables those that a judge pays with."""

CLIENT_FILES: Final = (".claude/settings.json", ".claude/settings.local.json")
"""Both lie in the project; the second is meant to stay out of the repository, but nothing makes sure of it."""


class Trusted(NamedTuple):
    """
    What is left of an environment.
    """

    environ: Mapping[str, str]
    taken: frozenset[str] = frozenset()
    """The names of the variables that were taken out."""
    notices: tuple[str, ...] = ()
    """What was taken out and would have mattered, one line each."""


def trusted(environ: Mapping[str, str], project_folders: Sequence[str]) -> Trusted:
    """
    Give the part of the environment that no project has set. `project_folders` are those that the client was started in.
    """
    taken: set[str] = set()
    notices: list[str] = []
    folders = dict.fromkeys(above for folder in project_folders for above in _up_to_the_root(folder))
    for path in (os.path.join(folder, name) for folder in folders for name in CLIENT_FILES):
        for variable in sorted(_set_by(path, environ)):
            if not variable.startswith("CLAUDE") or variable in _SECRETS:
                taken.add(variable)
                if variable.startswith(("TURNGATE_", "ANTHROPIC_")) or variable in _SECRETS:
                    notices.append(f"{path}: env.{variable} is ignored: a project may not set it")
    kept = {name: value for name, value in environ.items() if name not in taken}
    return Trusted(kept, frozenset(taken), tuple(notices))


def _set_by(path: str, environ: Mapping[str, str]) -> set[str]:
    """
    Give the variables that the file sets, or may set: the client may read what we cannot.
    """
    if _is_anothers(path):
        return set(environ)
    try:
        content = read_small(path)
    except TooLarge:
        return set(environ)
    except OSError:
        return set()
    # The client reads UTF-16 too (measured on client 2.1.328).
    encoding = "utf-16" if (content or b"")[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = (content or b"{}").decode(encoding, "replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return set(environ) if "\\u" in text else {name for name in environ if name in text}
    variables = cast("dict[str, object]", document).get("env") if isinstance(document, dict) else None
    return set(environ).intersection(cast("dict[str, object]", variables)) if isinstance(variables, dict) else set()


def _is_anothers(path: str) -> bool:
    """
    Say whether a link leads to the file through `/proc` or `/dev`, where one name is another file for each process.
    """
    if not (os.path.islink(path) or os.path.islink(os.path.dirname(path))):  # noqa: PTH114
        return False
    at, ahead = "", os.path.abspath(path).split("/")  # noqa: PTH100
    for _ in range(_MOST_STEPS):
        if not ahead:
            return False
        name, ahead = ahead[0], ahead[1:]
        if name in ("", "."):
            continue
        if name == "..":
            at = at.rpartition("/")[0]
            continue
        step = f"{at}/{name}"
        if step in ("/proc", "/dev"):
            return True
        try:
            target = os.readlink(step)  # noqa: PTH115
        except OSError:
            at = step
            continue
        at, ahead = "" if target.startswith("/") else at, target.split("/") + ahead
    return True


def _up_to_the_root(folder: str) -> list[str]:
    """
    Give the folder and those above it up to the root of its git repository, and the main checkout where that is a worktree.

    The user's own home is left out: what lies in its `.claude` is the user's.
    """
    if len(folder) > _LONGEST_PATH:
        return []
    try:
        folder = os.path.realpath(folder)
    except OSError:  # a place below `/proc` that nobody may look into
        return []
    found: list[str] = []
    while True:
        found.append(folder)
        git = os.path.join(folder, ".git")
        if os.path.lexists(git):
            found += _main_checkout(git)
            break
        above = os.path.dirname(folder)
        if above == folder:
            # No repository: the client looks into the folder alone.
            found = found[:1]
            break
        folder = above
    home = _home()
    return [place for place in found if os.path.realpath(place) != home]


def _main_checkout(git: str) -> list[str]:
    """
    Give the main checkout of a worktree, whose `.git` is a file that leads to it.
    """
    try:
        pointer = (read_small(git) or b"").decode("utf-8", "replace")
        folder = os.path.join(os.path.dirname(git), pointer.partition("gitdir:")[2].strip())
        common = (read_small(os.path.join(folder, "commondir")) or b"").decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return []
    return [os.path.dirname(os.path.realpath(os.path.join(folder, common)))] if common else []


def _home() -> str:
    # Not `HOME`: a project may have set it.
    try:
        import pwd

        return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):
        return ""
