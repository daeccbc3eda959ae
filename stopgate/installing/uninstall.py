"""
Uninstalling: our hooks out of the client's settings, with the containers that they alone were in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import undo
from .client_settings import (
    ClientFile,
    Scope,
    check_writable,
    parsed_settings,
    read_client_file,
    settings_path,
    write_client_file,
)
from .diffs import diff
from .edits import our_hooks_in, without_our_hooks


class Removal(NamedTuple):
    """
    What becomes of one settings file.
    """

    file: ClientFile
    after: bytes | None
    """None: the file goes, as it came."""

    @property
    def diff(self) -> str:
        """
        Give the lines that change.
        """
        return diff(self.file.path, self.file.content, self.after)


def plan_uninstall(environ: Mapping[str, str], project: str, folder: str, scopes: Sequence[Scope]) -> list[Removal]:
    """
    Say what would be done in each file that has our hooks; `folder` is the state directory. Raises `BadClientSettings`.
    """
    files = {
        file.target: file for file in (read_client_file(settings_path(scope, environ, project)) for scope in scopes)
    }
    return [_removal(file, folder) for file in files.values() if our_hooks_in(parsed_settings(file))]


def carry_out(removal: Removal, folder: str) -> None:
    """
    Do it. Raises `BadClientSettings`.
    """
    write_client_file(removal.file, removal.after, backup=False)
    undo.forget(folder, removal.file)


def _removal(file: ClientFile, folder: str) -> Removal:
    check_writable(file)
    original = undo.before(folder, file)
    if original is not None and not _has_ours(file, original.content):
        return Removal(file, original.content)
    return Removal(file, file.bytes_of(without_our_hooks(file)))


def _has_ours(file: ClientFile, content: bytes | None) -> bool:
    return bool(our_hooks_in(parsed_settings(file._replace(content=content))))
