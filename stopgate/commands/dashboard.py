"""
`turngate dashboard`: an address of the web page that lets a browser in once.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from ..console import CommandError, Commands, add_command, warn
from ..places import state_dir


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(
        commands, "dashboard", dashboard, "print an address of the web page, good once", "turngate dashboard --open"
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser too")


def dashboard(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Give the address in one line. Raises `CommandError`, `BadSetting` and `ServiceTrouble`.
    """
    # Every other command starts without them.
    from ...costing.dashboard.assets import missing_extra
    from ..web_entrance import entrance

    if lacking := missing_extra():
        raise CommandError(lacking)
    folder = state_dir(environ)
    if folder is None:
        raise CommandError("no home directory is known: set TURNGATE_STATE_DIR")
    url = entrance(folder, environ)
    if asked.open:
        import webbrowser

        if not webbrowser.open(url):
            warn("no browser could be opened; open the address yourself")
    return f"{url}\n"
