"""
Installing: the hooks into the client's settings, the choice of the judge into the user's own.

It is planned first, so that it can be shown, and then done; nothing is asked here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ..places import config_file, state_dir
from ..settings import Settings, read_settings, variable_of
from ..trust import trusted
from . import undo
from .client_settings import (
    SCOPES,
    BadClientSettings,
    ClientFile,
    Scope,
    check_writable,
    client_environ,
    hooks_in,
    parsed_settings,
    read_client_file,
    settings_path,
    write_client_file,
)
from .diffs import diff
from .edits import our_hooks_in, with_our_hooks
from .judge_choice import judge_choice
from .our_hooks import is_ours, mentions_us, our_command, wanted_hooks
from .user_config import ConfigEdit, config_with, write_config

LOCK_NAME: Final = "turngate.install.lock"


class Plan(NamedTuple):
    """
    What an install would do.
    """

    file: ClientFile
    after: bytes
    config: ConfigEdit | None
    lines: tuple[str, ...]
    """What a person should know."""

    @property
    def diff(self) -> str:
        """
        Give the lines that change in both files.
        """
        config = diff(self.config.path, self.config.before, self.config.after) if self.config else ""
        return diff(self.file.path, self.file.content, self.after) + config


def plan_install(
    environ: Mapping[str, str], project: str, *, scope: Scope, events: Sequence[str], shadow: bool
) -> Plan:
    """
    Say what would be done. Raises `BadClientSettings`, and `BadSetting`.
    """
    safe = trusted(client_environ(environ), [project]).environ
    settings = read_settings(safe).settings
    file = read_client_file(settings_path(scope, safe, project))
    text = with_our_hooks(file, wanted_hooks(events, settings, our_command()))
    after = file.bytes_of(text) if text != file.text or file.content is None else file.content
    if after != file.content:
        check_writable(file)
    choice = judge_choice(settings, safe)
    config = _config(safe, settings, choice.backend, shadow)
    lines = (*choice.lines, *_mode(settings, safe, shadow), *_others(file, text), *_elsewhere(file, safe, project))
    return Plan(file, after, config, lines)


def carry_out(plan: Plan, folder: str) -> None:
    """
    Do it; `folder` is the state directory. Raises `BadClientSettings`, and `BadSetting`; what was not done can be done again.
    """
    if plan.config is not None:
        write_config(plan.config)
    if plan.after == plan.file.content:
        return
    # The backup is of what was there before turngate came, as long as nobody else changes the file.
    keeps = undo.has_original(folder, plan.file)
    write_client_file(plan.file, plan.after, backup=not keeps)
    undo.remember(folder, plan.file, plan.after)


def install_lock(environ: Mapping[str, str]) -> str:
    """
    Give the file that keeps two installs from each other. Raises `BadClientSettings` where there is no place for it.
    """
    folder = state_dir(environ)
    if folder is None:
        raise BadClientSettings("no home directory is known: set TURNGATE_STATE_DIR")
    return os.path.join(folder, LOCK_NAME)


def _config(environ: Mapping[str, str], settings: Settings, backend: str, shadow: bool) -> ConfigEdit | None:
    choices: dict[str, str] = {}
    # What somebody chose, or chooses by a variable, stays.
    if backend and settings.judge.backend == "auto" and variable_of("judge.backend") not in environ:
        choices["judge.backend"] = backend
    if shadow:
        choices["gate.mode"] = "shadow"
    path = config_file(environ)
    return config_with(path, choices) if choices and path else None


def _mode(settings: Settings, environ: Mapping[str, str], shadow: bool) -> list[str]:
    variable = variable_of("gate.mode")
    if shadow and environ.get(variable, "shadow") != "shadow":
        return [f"mode: {environ[variable]}, by the variable {variable}, whatever the settings file says"]
    if shadow or settings.gate_mode == "shadow":
        return ['mode: shadow: everything is judged and logged, nothing is held (gate.mode = "block" changes that)']
    if settings.gate_mode == "off":
        return ['mode: off: nothing is judged or held (gate.mode = "block" changes that)']
    return []


def _others(file: ClientFile, text: str) -> list[str]:
    root = parsed_settings(file, text)
    mixed = [found.event for found in hooks_in(root) if mentions_us(found.hook) and not is_ours(found.hook)]
    lines = [
        f"left as it is: a hook at {event} that runs turngate among other things; each stop is decided twice"
        for event in mixed
    ]
    off = root.member("disableAllHooks")
    if off and off.value is True:
        lines.append(f"{file.path}: disableAllHooks is true: no hook runs until you take that out")
    return lines


def _elsewhere(file: ClientFile, environ: Mapping[str, str], project: str) -> list[str]:
    lines: list[str] = []
    for scope in SCOPES:
        try:
            other = read_client_file(settings_path(scope, environ, project))
            if other.target != file.target and our_hooks_in(parsed_settings(other)):
                lines.append(f"{other.path}: has our hooks too: `turngate uninstall --scope {scope}` takes them out")
        except BadClientSettings:
            continue
    return lines
