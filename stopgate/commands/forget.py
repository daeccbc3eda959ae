"""
`turngate forget`: take out of the store all that belongs to a session or a project.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from datetime import UTC, datetime

from ...costing.retention import Scope, folders_below, of_project, of_session
from ...costing.store import Store
from ..console import CommandError, Commands, add_command, warn
from ..places import expand_home, state_dir
from .removing import NOTHING_YET, removed_text


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(
        commands,
        "forget",
        forget,
        "remove all that is stored of a session or a project",
        "turngate forget --project ~/code/secret --dry-run",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--session", metavar="ID", help="the session's whole id, as `turngate show` has it")
    what.add_argument(
        "--project", metavar="DIR", help="the project's folder; folders below it are projects of their own"
    )
    parser.add_argument("--dry-run", action="store_true", help="only say how much it would be")


def forget(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Remove it, and say how much it was. Raises `CommandError` and `StoreError`.
    """
    from ..cli import ledger_store

    with ledger_store(environ) as store:
        if store is None:
            return NOTHING_YET
        scope = _scope(asked, store, environ)
        return removed_text(store, scope, state_dir(environ) or ".", datetime.now(UTC), dry_run=asked.dry_run)


def _scope(asked: argparse.Namespace, store: Store, environ: Mapping[str, str]) -> Scope:
    if asked.session is not None:
        if not asked.session:
            raise CommandError("--session: an id is needed")
        return of_session(asked.session)

    if not asked.project:
        raise CommandError("--project: a folder is needed")
    project = os.path.abspath(expand_home(asked.project, environ))  # noqa: PTH100
    if below := folders_below(store, project):
        more = f" and {len(below) - 3} more" if len(below) > 3 else ""
        warn(f"folders below are projects of their own and stay: {', '.join(below[:3])}{more}")
    return of_project(store, project)
