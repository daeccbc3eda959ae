"""
The client's settings files: where they lie, what hooks they have, and how such a file is read and replaced.

Whoever edits one keeps everything else in it, byte for byte, and refuses what it does not understand.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, cast

from ..places import expand_home
from ..replaced_file import replace_file
from ..small_files import read_small
from .json_spans import BadJson, Node, parse, place

Scope = Literal["user", "project", "local"]
SCOPES: Final[tuple[Scope, ...]] = ("user", "project", "local")
BACKUP: Final = ".turngate-backup"

_BOM: Final = codecs.BOM_UTF8


class BadClientSettings(Exception):
    """
    A settings file that cannot be used; one line that names file, line and what is wrong.
    """


class ClientFile(NamedTuple):
    """
    A settings file as it was read.
    """

    path: str
    target: str
    """What the path leads to, where it is a link."""
    content: bytes | None
    """None: there is no such file."""
    mode: int | None = None

    @property
    def text(self) -> str:
        """
        Give its text without a mark of the encoding; that of an empty object where there is nothing.
        """
        text = (self.content or b"").removeprefix(_BOM).decode()
        return text if text.strip() else "{}\n"

    def bytes_of(self, text: str) -> bytes:
        """
        Give a new text in the file's encoding.
        """
        return (_BOM if (self.content or b"").startswith(_BOM) else b"") + text.encode()


class FoundHook(NamedTuple):
    """
    One hook of a settings file, and the way to it.
    """

    event: str
    matcher: str
    hook: Mapping[str, object]
    event_index: int
    group_index: int
    hook_index: int


def client_folder(environ: Mapping[str, str]) -> str | None:
    """
    Give the client's own folder: `CLAUDE_CONFIG_DIR`, else `~/.claude`; None where no home is known.
    """
    folder = expand_home(environ.get("CLAUDE_CONFIG_DIR") or "~/.claude", environ)
    return None if folder.startswith("~") else os.path.abspath(folder)  # noqa: PTH100


def settings_path(scope: Scope, environ: Mapping[str, str], project: str) -> str:
    """
    Give the settings file of a scope. Raises `BadClientSettings` where no home is known.
    """
    if scope == "project":
        return os.path.join(project, ".claude", "settings.json")
    if scope == "local":
        return os.path.join(project, ".claude", "settings.local.json")
    folder = client_folder(environ)
    if folder is None:
        raise BadClientSettings("no home directory is known: set HOME or CLAUDE_CONFIG_DIR")
    return os.path.join(folder, "settings.json")


def client_environ(environ: Mapping[str, str]) -> Mapping[str, str]:
    """
    Give the environment as the client's hooks have it: with what the user's own settings set under `env`.
    """
    try:
        node = parsed_settings(read_client_file(settings_path("user", environ, ""))).member("env")
    except BadClientSettings:
        return environ
    found = node.plain() if node else None
    named = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    return {**environ, **{name: value for name, value in named.items() if isinstance(value, str)}}


def read_client_file(path: str) -> ClientFile:
    """
    Read a settings file; a link is followed. Raises `BadClientSettings`.
    """
    try:
        # A link that leads nowhere yet is where the file belongs; one that leads to itself is none.
        target = os.path.realpath(path)
        found = os.stat(target) if os.path.lexists(target) else None  # noqa: PTH116
        content = read_small(target)
    except (OSError, ValueError) as error:
        raise BadClientSettings(f"{path}: {_why(error, path)}") from error
    if content is None or found is None:
        return ClientFile(path, target, None)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadClientSettings(f"{path}: line {line}: not UTF-8") from error
    return ClientFile(path, target, content, stat.S_IMODE(found.st_mode))


def parsed_settings(file: ClientFile, text: str | None = None) -> Node:
    """
    Give the settings with the place of each value. Raises `BadClientSettings` for what the client would not take either.
    """
    text = file.text if text is None else text
    try:
        root = parse(text)
    except BadJson as error:
        raise BadClientSettings(f"{file.path}: {error}") from error
    if root.kind != "object":
        raise BadClientSettings(f"{file.path}: {place(text, root.start)}: not a JSON object")
    for wrong, at in _faults(root):
        raise BadClientSettings(
            f"{file.path}: {place(text, at)}: {wrong}; the client leaves out every hook of such a file"
        )
    return root


def hooks_in(root: Node) -> list[FoundHook]:
    """
    Give all hooks in the order of the file.
    """
    found: list[FoundHook] = []
    hooks = root.member("hooks")
    for event_index, event in enumerate(hooks.children if hooks else ()):
        for group_index, group in enumerate(event.node.children):
            matcher, listed = group.node.member("matcher"), group.node.member("hooks")
            name = matcher.value if matcher and isinstance(matcher.value, str) else ""
            for hook_index, hook in enumerate(listed.children if listed else ()):
                plain = cast("dict[str, object]", hook.node.plain())
                found.append(FoundHook(event.key, name, plain, event_index, group_index, hook_index))
    return found


def check_writable(file: ClientFile) -> None:
    """
    Raise `BadClientSettings` where the file's owner does not want it to be changed, or is somebody else.
    """
    if file.mode is not None and not file.mode & 0o200:
        raise BadClientSettings(f"{file.path}: is read-only: allow it with chmod u+w, or edit it yourself")
    if file.content is not None and hasattr(os, "geteuid") and os.stat(file.target).st_uid != os.geteuid():  # noqa: PTH116
        raise BadClientSettings(f"{file.path}: belongs to another user")


def write_client_file(file: ClientFile, content: bytes | None, *, backup: bool) -> None:
    """
    Put new content in the place of what was read, or remove the file (None). Raises `BadClientSettings`; then nothing has changed.

    `backup`: keep what was there beside it.
    """
    check_writable(file)
    if read_client_file(file.path).content != file.content:
        raise BadClientSettings(f"{file.path}: was changed meanwhile: run it again")
    try:
        if content is None:
            os.unlink(file.target)  # noqa: PTH108
            return
        os.makedirs(os.path.dirname(file.target), exist_ok=True)  # noqa: PTH103
        if backup and file.content is not None:
            replace_file(file.target + BACKUP, file.content, mode=file.mode)
        replace_file(file.target, content, mode=file.mode)
    except OSError as error:
        raise BadClientSettings(f"{file.path}: cannot be written: {error.strerror or error}") from error


def _faults(root: Node) -> Iterator[tuple[str, int]]:
    """
    Give what is wrong with the hooks, and where.
    """
    named = [child for child in root.children if child.key == "hooks"]
    if len(named) > 1:
        yield '"hooks" stands there twice', named[1].start
        return
    hooks = named[0].node if named else None
    if hooks is None:
        return
    if hooks.kind != "object":
        yield '"hooks" is not an object', hooks.start
        return
    seen: set[str] = set()
    for event in hooks.children:
        if event.key in seen:
            yield f"{event.key!r} stands there twice", event.start
        seen.add(event.key)
        yield from _faults_of_event(event.key, event.node)


def _faults_of_event(name: str, event: Node) -> Iterator[tuple[str, int]]:
    if event.kind != "array":
        yield f"hooks.{name} is not a list", event.start
        return
    for group in event.children:
        listed = group.node.member("hooks")
        if listed is None or listed.kind != "array":
            yield f'an entry of hooks.{name} is not an object with a list "hooks"', group.start
            continue
        for hook in listed.children:
            kind = hook.node.member("type")
            if kind is None or not isinstance(kind.value, str):
                yield f'a hook of hooks.{name} is not an object with a "type"', hook.start


def _why(error: Exception, path: str) -> str:
    if os.path.isdir(path):  # noqa: PTH112
        return "is a directory"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "is no path"
