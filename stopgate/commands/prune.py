"""
`turngate prune`: take out of the store what is older than some time.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime

from ...costing.retention import older_than
from ...costing.windows import BadTime, machine_zone, read_time
from ..console import CommandError, Commands, add_command
from ..places import state_dir
from .removing import NOTHING_YET, removed_text


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(
        commands, "prune", prune, "remove what is older than some time", "turngate prune --older-than 90d --dry-run"
    )
    parser.add_argument("--older-than", required=True, metavar="AGE", help="90d, 12w, 24h, or a day: 2026-08-31")
    parser.add_argument("--keep-cases", action="store_true", help="keep the cases that `turngate wrong` made of it")
    parser.add_argument("--dry-run", action="store_true", help="only say how much it would be")


def prune(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Remove it, and say how much it was. Raises `CommandError` and `StoreError`.
    """
    from ..cli import ledger_store

    now = datetime.now(UTC)
    try:
        before = read_time(asked.older_than, machine_zone(environ), now)
    except BadTime as error:
        raise CommandError(f"--older-than: {error}") from error
    if before > now:
        raise CommandError(f"--older-than: {asked.older_than!r} is yet to come")

    with ledger_store(environ) as store:
        if store is None:
            return NOTHING_YET
        scope = older_than(before, keep_cases=asked.keep_cases)
        return removed_text(store, scope, state_dir(environ) or ".", now, dry_run=asked.dry_run)
