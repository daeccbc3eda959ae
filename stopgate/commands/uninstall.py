"""
`turngate uninstall`: our hooks out of the client's settings.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from ..console import CommandError, Commands, add_command, print_text
from ..installing.client_settings import SCOPES, BadClientSettings
from ..places import state_dir
from ..replaced_file import alone
from .install import add_asking, agreed


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(
        commands, "uninstall", uninstall, "take the hooks out of Claude Code's settings", "turngate uninstall --dry-run"
    )
    parser.add_argument("--scope", choices=SCOPES, help="whose settings (default: all three, where our hooks are)")
    add_asking(parser)


def uninstall(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Show what goes, and take it out. Raises `CommandError`.
    """
    from ..installing.install import install_lock
    from ..installing.uninstall import carry_out, plan_uninstall

    scopes = (asked.scope,) if asked.scope else SCOPES
    folder = state_dir(environ) or "."
    try:
        if asked.dry_run:
            removals = plan_uninstall(environ, os.getcwd(), folder, scopes)  # noqa: PTH109
            return "".join(removal.diff for removal in removals) + "nothing was written\n"
        with alone(install_lock(environ)):
            removals = plan_uninstall(environ, os.getcwd(), folder, scopes)  # noqa: PTH109
            print_text("".join(removal.diff for removal in removals))
            if removals and not agreed(asked):
                return "nothing was written\n"
            for removal in removals:
                carry_out(removal, folder)
    except BadClientSettings as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot uninstall: {error.strerror or error}") from error
    if not removals:
        return "no hook of ours is there\n"
    done = "".join(f"taken out of {removal.file.path}\n" for removal in removals)
    return done + f"`turngate stop` ends the service; your settings and the log in {folder} stay\n"
