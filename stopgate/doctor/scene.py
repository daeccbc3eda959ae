"""
What is looked at: an environment, a project, and the client's settings files that count there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from ..installing.client_settings import (
    SCOPES,
    BadClientSettings,
    FoundHook,
    client_environ,
    client_folder,
    hooks_in,
    parsed_settings,
    read_client_file,
    settings_path,
)
from ..installing.json_spans import Node
from ..installing.our_hooks import is_ours, mentions_us
from ..places import state_dir
from ..settings import BadSetting, Settings, read_settings
from ..small_files import read_small
from ..trust import Trusted, trusted

MANAGED: Final = (
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)
PLUGIN: Final = "turngate"


class SettingsRead(NamedTuple):
    """
    One of the client's settings files, as far as it can be read.
    """

    scope: str
    path: str
    root: Node | None = None
    trouble: str = ""

    @property
    def hooks(self) -> list[FoundHook]:
        """
        Give its hooks.
        """
        return hooks_in(self.root) if self.root else []

    @property
    def ours(self) -> list[FoundHook]:
        """
        Give those of its hooks that run turngate, if only among other things.
        """
        return [found for found in self.hooks if is_ours(found.hook) or mentions_us(found.hook)]

    def says(self, key: str) -> object:
        """
        Give the value of one of its keys; None where it has none.
        """
        node = self.root.member(key) if self.root else None
        return node.plain() if node else None


class Plugin(NamedTuple):
    """
    Our plugin, where it is switched on; the folder is empty where it is not known.
    """

    name: str
    folder: str


class Scene(NamedTuple):
    """
    All that the checks look at.
    """

    environ: Mapping[str, str]
    """As the client's hooks have it, if it is started from this shell."""
    safe: Trusted
    """What of it no project has set."""
    project: str
    now: datetime
    files: tuple[SettingsRead, ...]
    plugin: Plugin | None
    settings: Settings
    """The defaults, where the user's own cannot be used."""
    trouble: str = ""
    """Why they cannot."""
    notices: tuple[str, ...] = ()
    """What was refused in the project's file."""

    @property
    def state(self) -> str | None:
        """
        Give the state directory.
        """
        return state_dir(self.safe.environ)


def look_at(environ: Mapping[str, str], project: str, now: datetime, *, managed: str = MANAGED) -> Scene:
    """
    Read all files that matter.
    """
    environ = client_environ(environ)
    safe = trusted(environ, [project])
    files = tuple(_files(safe.environ, project, managed))
    scene = Scene(environ, safe, project, now, files, _plugin(files, safe.environ), Settings())
    try:
        reading = read_settings(safe.environ, project_folders=[project])
    except BadSetting as error:
        return scene._replace(trouble=str(error))
    return scene._replace(settings=reading.settings, notices=reading.notices)


def _files(environ: Mapping[str, str], project: str, managed: str) -> Iterator[SettingsRead]:
    seen: set[str] = set()
    places = [(scope, _path_of(scope, environ, project)) for scope in SCOPES]
    for scope, path in (("managed", managed), *places):
        target = os.path.realpath(path)
        if not path or target in seen:
            continue
        seen.add(target)
        try:
            file = read_client_file(path)
            if file.content is not None:
                yield SettingsRead(scope, path, parsed_settings(file))
        except BadClientSettings as error:
            yield SettingsRead(scope, path, trouble=str(error))


def _path_of(scope: Any, environ: Mapping[str, str], project: str) -> str:
    try:
        return settings_path(scope, environ, project)
    except BadClientSettings:
        return ""


def _plugin(files: tuple[SettingsRead, ...], environ: Mapping[str, str]) -> Plugin | None:
    switched: dict[str, bool] = {}
    for file in files:
        found = file.says("enabledPlugins")
        for name, value in cast("dict[str, object]", found).items() if isinstance(found, dict) else ():
            if name.partition("@")[0] == PLUGIN:
                switched[name] = value is True
    name = next((name for name, is_on in switched.items() if is_on), "")
    return Plugin(name, _plugin_folder(name, environ)) if name else None


def _plugin_folder(name: str, environ: Mapping[str, str]) -> str:
    folder = client_folder(environ)
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        content = read_small(str(Path(folder or "", "plugins", "installed_plugins.json"))) or b"{}"
        found: Any = json.loads(content)["plugins"][name]
        entry: Any = cast("list[Any]", found)[0] if isinstance(found, list) else found
        return str(entry["installPath"])
    return ""
