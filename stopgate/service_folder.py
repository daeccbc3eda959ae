"""
The state directory whose service this hook may speak to, found without a costly import where that is safe.

The environment may have been set by the project: a cloned repository could send the user's key to a socket of its own. So the files
that `trust` reads are looked through for the name of the variable that decides; only where it stands there, or might, are they
read in full. `json` and `typing`, which that needs, cost twice as much as a Python that does nothing.
"""

from __future__ import annotations

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Final

_CLIENT_FILES: Final = (b"/.claude/settings.json", b"/.claude/settings.local.json")
_LONGEST_PATH: Final = 4096
_LONGEST_FILE: Final = 100_000
"""In bytes; settings have some thousands."""


def service_folder(environ: Mapping[bytes, bytes]) -> bytes | None:
    """
    Give the state directory, by the same rules as `places` and `trust`; None where there is none.
    """
    variable, folder = _named(environ)
    if folder and not _may_be_the_projects(variable, environ):
        return folder
    import os

    from .places import state_dir
    from .process_environ import trusted_environ

    found = state_dir(trusted_environ())
    return os.fsencode(found) if found else None


def _named(environ: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
    """
    Give the variable that decides, and the directory; none where it takes all the rules to tell.
    """
    if not sys.platform.startswith("linux"):
        return b"", b""
    if named := environ.get(b"TURNGATE_STATE_DIR"):
        return b"TURNGATE_STATE_DIR", named if named[:1] == b"/" and b".." not in named else b""
    for variable, below in ((b"XDG_STATE_HOME", b"/turngate"), (b"HOME", b"/.local/state/turngate")):
        named = environ.get(variable, b"")
        if named[:1] == b"/":
            return variable, named.rstrip(b"/") + below
    return b"", b""


def _may_be_the_projects(variable: bytes, environ: Mapping[bytes, bytes]) -> bool:
    starts = [folder for folder in (environ.get(b"CLAUDE_PROJECT_DIR"), b".") if folder]
    if any(len(folder) > _LONGEST_PATH for folder in starts):
        return True
    try:
        folders = [folder for start in starts for folder in _up_to_the_root(start)]
        paths = [folder + name for folder in folders for name in _CLIENT_FILES]
        return any(_is_link(path) or _names(_content(path), variable) for path in paths)
    except OSError:
        return True


def _names(content: bytes, variable: bytes) -> bool:
    """
    Say whether the file may set the variable; its use in a command, as `$HOME`, does not.
    """
    text = content.replace(b"$" + variable, b"").replace(b"${" + variable, b"")
    # The client reads UTF-16 too, which has a NUL in each letter of ours.
    return variable in text or b"\\u" in text or b"\0" in text or len(content) > _LONGEST_FILE


def _is_link(path: bytes) -> bool:
    """
    Say whether the file or its folder is a link, which could lead to another file in each process.
    """
    for place in (path, path.rpartition(b"/")[0]):
        try:
            posix.readlink(place)
        except OSError:
            continue
        return True
    return False


def _up_to_the_root(start: bytes) -> Iterator[bytes]:
    """
    Give the folder, those above it up to the root of its git repository, and the main checkout where that is a worktree.
    """
    folder, above = start, list[bytes]()
    # `..` is left to the system, which goes up from where a link leads to.
    while not _exists(folder + b"/.git"):
        if _identity(folder) == _identity(folder + b"/.."):
            yield start
            return
        above.append(folder)
        folder += b"/.."
    yield from above
    yield folder
    yield from _main_checkout(folder)


def _identity(folder: bytes) -> tuple[int, int]:
    found = posix.stat(folder)
    return found.st_dev, found.st_ino


def _main_checkout(folder: bytes) -> Iterator[bytes]:
    try:
        pointer = _content(folder + b"/.git")
    except IsADirectoryError:
        return
    gitdir = _joined(folder, pointer.partition(b"gitdir:")[2].strip())
    if common := _content(gitdir + b"/commondir").strip():
        yield _joined(gitdir, common) + b"/.."


def _joined(folder: bytes, path: bytes) -> bytes:
    return path if path[:1] == b"/" else folder + b"/" + path


def _exists(path: bytes) -> bool:
    try:
        posix.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _content(path: bytes) -> bytes:
    """
    Give the file's first bytes, one more than the limit at most; empty where there is no such file. Waits for no pipe.
    """
    try:
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    content = b""
    try:
        while len(content) <= _LONGEST_FILE and (part := posix.read(descriptor, _LONGEST_FILE + 1)):
            content += part
    finally:
        posix.close(descriptor)
    return content
