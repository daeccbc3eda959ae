"""
`turngate pause`: for a while nothing is held, and no judge is asked.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from datetime import UTC, datetime

from ..console import CommandError, Commands, add_command
from ..pausing import BadPauses, add_pause, new_pause, read_duration
from ..places import expand_home, state_dir


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(commands, "pause", pause, "hold nobody for a while", "turngate pause --for 2h")
    parser.add_argument("--for", dest="lasting", metavar="TIME", help="20m, 2h, 1d (default: until `turngate resume`)")
    add_scope(parser)


def add_scope(parser: argparse.ArgumentParser) -> None:
    """
    Add the arguments that say whom it is about.
    """
    whom = parser.add_mutually_exclusive_group()
    whom.add_argument("--session", default="", metavar="ID", help="this session alone")
    whom.add_argument("--project", default="", metavar="DIR", help="this folder alone, and what lies below it")


def pause(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Begin a pause. Raises `CommandError`.
    """
    now = datetime.now(UTC)
    try:
        lasting = read_duration(asked.lasting) if asked.lasting is not None else None
        begun = new_pause(now, environ, lasting=lasting, session=asked.session, project=project_of(asked, environ))
        add_pause(state_folder(environ), begun, now)
    except BadPauses as error:
        raise CommandError(str(error)) from error
    told = "; the person is told at the next stop, since this is an agent's shell" if begun.by_agent else ""
    return f"paused: {begun.in_words}{told}\n"


def project_of(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Give the folder that is meant, as the client names it; empty where none is.
    """
    if not asked.project:
        return ""
    try:
        return os.path.realpath(expand_home(asked.project, environ))
    except (OSError, ValueError) as error:
        raise CommandError(f"--project: {asked.project!r} is no folder") from error


def state_folder(environ: Mapping[str, str]) -> str:
    """
    Give the state directory. Raises `CommandError` where there is none.
    """
    folder = state_dir(environ)
    if folder is None:
        raise CommandError("no home directory is known: set TURNGATE_STATE_DIR")
    return folder
