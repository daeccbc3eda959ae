"""
`turngate resume`: end a pause.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime

from ..console import CommandError, Commands, add_command
from ..pausing import BadPauses, end_pauses
from .pause import add_scope, project_of, state_folder


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(commands, "resume", resume, "end a pause, or all of them", "turngate resume")
    add_scope(parser)


def resume(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    End the pauses that are meant. Raises `CommandError`.
    """
    folder, project = state_folder(environ), project_of(asked, environ)
    try:
        ended = end_pauses(folder, datetime.now(UTC), session=asked.session, project=project)
    except BadPauses as error:
        raise CommandError(str(error)) from error
    return "".join(f"resumed: {pause.in_words.partition(', until')[0]}\n" for pause in ended) or "nothing was paused\n"
