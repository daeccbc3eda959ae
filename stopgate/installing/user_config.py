"""
The user's own settings file with some keys set, and everything else in it as it was.

This is the one file that imports tomlkit.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..replaced_file import replace_file
from ..settings import BadSetting
from ..small_files import read_small


class ConfigEdit(NamedTuple):
    """
    What becomes of a settings file.
    """

    path: str
    target: str
    before: bytes | None
    after: bytes


def config_with(path: str, choices: Mapping[str, str]) -> ConfigEdit:
    """
    Give the file with these keys, such as `judge.backend`, set. Raises `BadSetting` for a file that cannot be read or changed.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    target = os.path.realpath(path)
    before = _content(path, target)
    bom = b"\xef\xbb\xbf" if (before or b"").startswith(b"\xef\xbb\xbf") else b""
    try:
        text = (before or b"").removeprefix(bom).decode()
        document: Any = tomlkit.parse(text)
        for key, value in choices.items():
            _set(document, path, key, value, tomlkit.table)
        after = tomlkit.dumps(document)
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise BadSetting(f"{path}: not TOML: {' '.join(str(error).split())[:200]}") from error
    if "\r\n" in text:
        after = after.replace("\r\n", "\n").replace("\n", "\r\n")
    _check(path, after, choices)
    return ConfigEdit(path, target, before, bom + after.encode())


def write_config(edit: ConfigEdit) -> None:
    """
    Write it. Raises `BadSetting`.
    """
    if edit.after == (edit.before or b""):
        return
    if _content(edit.path, edit.target) != edit.before:
        raise BadSetting(f"{edit.path}: was changed meanwhile: run it again")
    try:
        os.makedirs(os.path.dirname(edit.target), mode=0o700, exist_ok=True)  # noqa: PTH103
        mode = 0o600
        if edit.before is not None:
            mode = os.stat(edit.target).st_mode & 0o777  # noqa: PTH116
            if not mode & 0o200:
                raise BadSetting(f"{edit.path}: is read-only: allow it with chmod u+w, or edit it yourself")
        replace_file(edit.target, edit.after, mode=mode)
    except OSError as error:
        raise BadSetting(f"{edit.path}: cannot be written: {error.strerror or error}") from error


def _content(path: str, target: str) -> bytes | None:
    try:
        return read_small(target)
    except OSError as error:
        why = "is a directory" if os.path.isdir(target) else f"cannot be read: {error.strerror or error}"  # noqa: PTH112
        raise BadSetting(f"{path}: {why}") from error


def _set(document: Any, path: str, key: str, value: str, new_table: Any) -> None:
    section, _, name = key.partition(".")
    if section not in document:
        document[section] = new_table()
    if not isinstance(document[section], Mapping):
        raise BadSetting(f"{path}: {section} is not a table: write [{section}]")
    document[section][name] = value


def _check(path: str, after: str, choices: Mapping[str, str]) -> None:
    # What cannot be read back would stop the gate.
    found: Any = tomllib.loads(after)
    for key, value in choices.items():
        section, _, name = key.partition(".")
        if found[section][name] != value:
            raise BadSetting(f"{path}: {key} cannot be set there: write it yourself")
