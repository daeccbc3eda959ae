"""
`turngate cost`: what the judge cost and what it brought; `turngate cost reprice`: the same by the prices that are known now.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from typing import Final

from ...costing.overview import overview, overview_json
from ...costing.overview_text import overview_text
from ...costing.report import WAYS, Report, report, report_csv, report_json, rows_by, total_of
from ...costing.store import Store
from ...costing.text import report_text
from ...costing.windows import BadTime, Window, machine_zone, named_zone, read_time
from ..console import CommandError, Commands, Parser, add_command, warn
from ..places import config_dir
from ..settings import BadSetting, read_settings

MOST_DAYS: Final = 31
"""Of the table below the overview."""

FEW_DAYS: Final = 14
"""So many are added up before anybody wonders."""

MOST_ROWS: Final = 50
"""Of a table for a person; there may be thousands of sessions."""


def add(commands: Commands) -> None:
    """
    Add the command.
    """
    parser = add_command(
        commands, "cost", cost, "say what the judge cost, and what it caught", "turngate cost --by model --since 7d"
    )
    parser.add_argument("--by", choices=WAYS, help="what is added up (default: an overview, and each day)")
    parser.add_argument("--since", metavar="TIME", help="2026-11-30, an ISO time, or how long ago: 24h, 7d, 4w")
    parser.add_argument("--until", metavar="TIME", help="the same; that time itself is left out, that day is not")
    parser.add_argument("--tz", metavar="ZONE", help="whose days: Europe/Berlin, UTC (default: this machine's)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the same as one JSON object, with exact amounts")
    form.add_argument("--csv", action="store_true", help="the rows of it as CSV, without the total")
    more = parser.add_subparsers(title="more", metavar="[COMMAND]", required=False, parser_class=Parser)
    _add_reprice(more)


def cost(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Give the report. Raises `CommandError` and `StoreError`.
    """
    from ..cli import ledger_store

    now = datetime.now(UTC)
    window = _window(asked, environ, now)
    with ledger_store(environ) as store:
        if asked.by is None and window[:2] == (None, None):
            text = _overview(store, asked, environ, window.zone, now)
        else:
            text = _report(report(store, asked.by or "day", window, now=now, tell=_tell), asked, environ)
    _warn_of_prices(environ)
    return text


def reprice(asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """
    Reprice what is recorded, and say what changed. Raises `CommandError` and `StoreError`.
    """
    from ...costing.prices import PriceError, user_prices
    from ...costing.reprice import reprice, repriced_text
    from ..cli import ledger_store

    window = _window(asked, environ, datetime.now(UTC))
    try:
        overrides = user_prices(config_dir(environ))
    except PriceError as exc:
        raise CommandError(str(exc)) from exc
    with ledger_store(environ) as store:
        if store is None:
            return "nothing is recorded yet\n"
        found = reprice(store, since=window.since, overrides=overrides, is_trial=asked.dry_run)
    return repriced_text(found, is_trial=asked.dry_run)


def _add_reprice(more: Commands) -> None:
    parser = add_command(
        more,
        "reprice",
        reprice,
        "work out anew what recorded calls cost, by the prices that are known now",
        "turngate cost reprice --since 2026-10-07 --dry-run",
    )
    parser.set_defaults(until=None)
    for name, value, about in (
        ("--since", "TIME", "only calls from then on: 2026-11-30, an ISO time, or 24h, 7d, 4w ago"),
        ("--tz", "ZONE", "of a day or time (default: this machine's)"),
    ):
        parser.add_argument(name, metavar=value, default=argparse.SUPPRESS, help=about)
    parser.add_argument("--dry-run", action="store_true", help="only say what would change")


def _window(asked: argparse.Namespace, environ: Mapping[str, str], now: datetime) -> Window:
    option = "--tz"
    try:
        zone = machine_zone(environ) if asked.tz is None else named_zone(asked.tz)
        option = "--since"
        since = None if asked.since is None else read_time(asked.since, zone, now)
        option = "--until"
        until = None if asked.until is None else read_time(asked.until, zone, now, is_end=True)
    except BadTime as exc:
        raise CommandError(f"{option}: {exc}") from exc
    if since is not None and until is not None and since >= until:
        raise CommandError(f"--since {asked.since} is not before --until {asked.until}")
    return Window(since, until, zone)


def _overview(
    store: Store | None, asked: argparse.Namespace, environ: Mapping[str, str], zone: tzinfo, now: datetime
) -> str:
    found = overview(store, zone, now=now, usd_per_day=_usd_per_day(environ), tell=_tell)
    days = Report("day", rows_by(found.days, "day"), total_of(found.days), Window(zone=zone))
    if asked.csv:
        return report_csv(days)
    if asked.json:
        return json.dumps({**report_json(days), "overview": overview_json(found)}) + "\n"
    table = report_text(days, most=MOST_DAYS, styled=_styled(environ))
    return table if not days.rows else overview_text(found, zone, now, styled=_styled(environ)) + "\n" + table


def _report(found: Report, asked: argparse.Namespace, environ: Mapping[str, str]) -> str:
    if asked.csv:
        return report_csv(found)
    if asked.json:
        return json.dumps(report_json(found)) + "\n"
    return report_text(found, most=None if found.by == "day" else MOST_ROWS, styled=_styled(environ))


def _tell(days: int) -> None:
    if days > FEW_DAYS:
        warn(f"{days:,} days are added up for the first time; later reports find them kept")


def _usd_per_day(environ: Mapping[str, str]) -> Decimal | None:
    try:
        limit = read_settings(environ).settings.judge.usd_per_day
    except BadSetting:  # whoever opened the ledger has told of it
        return None
    return None if limit is None else Decimal(limit)


def _warn_of_prices(environ: Mapping[str, str]) -> None:
    folder = config_dir(environ)
    if folder is None or not os.path.lexists(os.path.join(folder, "prices.toml")):
        return

    from ...costing.prices import PriceError, user_prices

    try:
        user_prices(folder)
    except PriceError as exc:
        warn(f"costs stay unknown until this is put right: {exc}")


def _styled(environ: Mapping[str, str]) -> bool:
    return os.isatty(1) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
