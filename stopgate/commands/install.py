"""
`turngate install`: our hooks into the client's settings.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping

from ..console import CommandError, Commands, add_command, print_text, warn
from ..installing.client_settings import SCOPES, BadClientSettings
from ..installing.our_hooks import EVENTS
from ..places import state_dir
from ..replaced_file import alone


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(
        commands, "install", install, "put the hooks into Claude Code's settings", "turngate install --shadow --dry-run"
    )
    parser.add_argument(
        "--scope",
        choices=SCOPES,
        default="user",
        help="whose settings: yours (default), this project's, or yours in this project (settings.local.json)",
    )
    parser.add_argument(
        "--events", type=_events, default=EVENTS, metavar="A,B", help=f"some of {','.join(EVENTS)} (default: all)"
    )
    parser.add_argument("--shadow", action="store_true", help="judge and log everything, hold nothing")
    add_asking(parser)


def add_asking(parser: argparse.ArgumentParser) -> None:
    """
    Add the arguments that say whether it is done at once.
    """
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--yes", action="store_true", help="ask no question, as where there is no terminal")


def install(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Show what changes, and change it. Raises `CommandError`, and `BadSetting`.
    """
    from ..installing.install import carry_out, install_lock, plan_install

    try:
        if asked.dry_run:
            plan = plan_install(environ, os.getcwd(), scope=asked.scope, events=asked.events, shadow=asked.shadow)  # noqa: PTH109
            return plan.diff + "".join(f"{line}\n" for line in plan.lines) + "nothing was written\n"
        with alone(install_lock(environ)):
            plan = plan_install(environ, os.getcwd(), scope=asked.scope, events=asked.events, shadow=asked.shadow)  # noqa: PTH109
            print_text(plan.diff + "".join(f"{line}\n" for line in plan.lines))
            if plan.diff and not agreed(asked):
                return "nothing was written\n"
            carry_out(plan, state_dir(environ) or ".")
    except BadClientSettings as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"cannot install: {error.strerror or error}") from error
    if not plan.diff:
        return f"{plan.file.path}: has the hooks already; nothing was written\n"
    if asked.scope == "project":
        warn(
            "the path of this machine's Python now stands in a file that others may share: --scope local keeps it yours"
        )
    return f"installed in {plan.file.path}; `turngate doctor` proves that it works\n"


def agreed(asked: argparse.Namespace) -> bool:
    """
    Ask the person at the terminal; where there is none, or `--yes` was given, nobody is asked.
    """
    if asked.yes or not (sys.stdin and sys.stdin.isatty() and os.isatty(1)):
        return True
    print_text("write this? [Y/n] ")
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def _events(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names or not set(names) <= set(EVENTS):
        raise argparse.ArgumentTypeError(f"{text!r}: expected some of {','.join(EVENTS)}")
    return names
