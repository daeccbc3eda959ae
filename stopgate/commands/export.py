"""
`turngate export`: decisions or calls for other programs, as JSON Lines or CSV.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from ...costing.export import FORMS, WHATS, Wanted, exported
from ...costing.store import Store
from ...costing.whole_file import is_same, whole_file
from ...costing.windows import BadTime, machine_zone, named_zone, read_time
from ..console import CommandError, Commands, add_command, print_while_read, warn
from ..ended_by_signals import ended_by_signals


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(
        commands,
        "export",
        export,
        "write out decisions or calls for other programs",
        "turngate export --format csv --what calls --since 30d --out calls.csv",
    )
    parser.add_argument("--format", choices=FORMS, required=True, help="JSON Lines, or CSV with a line of names")
    parser.add_argument("--what", choices=WHATS, default="decisions", help="of what (default: decisions)")
    parser.add_argument("--since", metavar="TIME", help="2026-11-30, an ISO time, or how long ago: 24h, 7d, 4w")
    parser.add_argument("--until", metavar="TIME", help="the same; that time itself is left out, that day is not")
    parser.add_argument("--tz", metavar="ZONE", help="of days and times without a zone (default: this machine's)")
    parser.add_argument("--out", metavar="FILE", help="a file for you alone (default: print it)")


def export(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Write it out. Raises `CommandError` and `StoreError`.
    """
    from ..cli import ledger_store

    wanted = _wanted(asked, environ)
    damaged: list[str] = []
    with ledger_store(environ) as database:
        text = exported(database, wanted, damaged.append)
        if asked.out:
            _write(Path(asked.out), text, database)
        else:
            _print(text)
    if damaged:
        warn(f"damaged rows, given without what cannot be read: {', '.join(damaged[:3])} ({len(damaged)} in all)")
    return ""


def _wanted(asked: argparse.Namespace, environ: Mapping[str, str]) -> Wanted:
    now = datetime.now(UTC)
    try:
        zone = named_zone(asked.tz) if asked.tz else machine_zone(environ)
        since = read_time(asked.since, zone, now) if asked.since else None
        until = read_time(asked.until, zone, now, is_end=True) if asked.until else None
    except BadTime as error:
        raise CommandError(str(error)) from error
    return Wanted(asked.what, asked.format, since, until)


def _print(text: Iterator[str]) -> None:
    for portion in text:
        if not print_while_read(portion):
            return


def _write(path: Path, text: Iterator[str], database: Store | None) -> None:
    if database is not None and _is_of(path, database):
        raise CommandError(f"{path}: not written: the ledger itself is in that file")
    try:
        with ended_by_signals(), whole_file(path) as file:
            file.writelines(portion.encode("utf-8", "replace") for portion in text)
    except OSError as error:
        raise CommandError(f"{path}: not written: {error.strerror}") from error


def _is_of(path: Path, database: Store) -> bool:
    files = [database.path + suffix for suffix in ("", "-wal", "-shm", "-journal")]
    return any(os.path.realpath(path) == os.path.realpath(file) or is_same(path, file) for file in files)
