"""
`turngate lab replay [PATH...]`: what would the gate have done with the stops and the Bash commands of the past?
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...stopgate.console import Commands, add_command, count_from_one, print_text, warn
from ...stopgate.places import config_dir
from ..errors import LabError

if TYPE_CHECKING:
    from ...costing.prices import PriceEntry
    from ..past.replay_report import By, Report, Row

WAYS = ("project", "day", "outcome")


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    does = "say what the gate would have done with past stops and Bash commands, and what it would have cost; no key is needed"
    parser = add_command(commands, "replay", _replay, does, "turngate lab replay --since 2026-11-01 --by day")
    places = "transcripts, or folders that hold some (default: those of the client, ~/.claude/projects)"
    parser.add_argument("paths", type=Path, nargs="*", metavar="PATH", help=places)
    parser.add_argument("--by", choices=WAYS, help="what is added up (default: project, and day in UTC)")
    parser.add_argument("--json", action="store_true", help="the same as one JSON object, with exact amounts")
    parser.add_argument("--since", type=_day, metavar="DATE", help="the first day that counts (UTC)")
    parser.add_argument("--until", type=_day, metavar="DATE", help="the last day that counts (UTC)")
    parser.add_argument("--model", metavar="M", help="the model that costs are told for (default: judge.model)")
    parser.add_argument("--jobs", type=count_from_one, metavar="N", help="processes (default: one for each processor)")


def _replay(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from ..past.replay_report import report_json, report_text
    from ..past.transcripts import tell_unreadable

    if asked.since and asked.until and asked.since > asked.until:
        raise LabError(f"--since {asked.since} lies after --until {asked.until}")
    found = _report(asked, environ)
    tell_unreadable(found.unreadable, read=found.read)
    if asked.json:
        print_text(json.dumps(report_json(found)) + "\n")
    else:
        print_text(report_text(found, styled=_styled(environ)))
    return 0


def _report(asked: argparse.Namespace, environ: Mapping[str, str]) -> Report:
    from ...rubric.tokens import estimate
    from ..past.replay import plan, replay
    from ..past.replay_cost import Prices, costs, output_of
    from ..past.replay_report import Report, row, rows
    from ..past.transcripts import clients_own, transcripts_under

    chosen = plan(environ, since=asked.since, until=asked.until)
    files, closed = transcripts_under(asked.paths or [clients_own(environ)])
    played = replay(files, chosen, jobs=asked.jobs, progress=_tell if os.isatty(2) else None)
    judge, now = chosen.settings.judge, datetime.now(UTC)
    prices = Prices(
        asked.model or judge.model,
        chosen.rubric.tokens or estimate(chosen.rubric.system),
        output_of(environ, chosen.settings.ledger_url, now),
        judge.cache,
        now,
        _own_prices(environ),
    )
    each = costs(played.stops, prices)
    ways: tuple[By, ...] = (asked.by,) if asked.by else ("project", "day")
    tables: dict[By, list[Row]] = {by: rows(by, played.stops, each, prices.output.tokens) for by in ways}
    total = row("total", zip(played.stops, each, strict=True), prices.output.tokens)
    return Report(
        tables,
        total,
        chosen,
        prices,
        len(files),
        len(files) - len(played.unreadable),
        (*closed, *played.unreadable),
        played.repeated,
        len(played.overlong),
        played.commands,
    )


def _own_prices(environ: Mapping[str, str]) -> tuple[PriceEntry, ...] | None:
    from ...costing.prices import PriceError, user_prices

    try:
        return user_prices(config_dir(environ))
    except PriceError as error:
        warn(f"costs stay unknown until this is put right: {error}")
        return None


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no date: write 2026-11-30") from None


def _tell(done: int, of: int) -> None:
    sys.stderr.write(f"\rsessions: {done:,} of {of:,}{'' if done < of else chr(10)}")
    sys.stderr.flush()


def _styled(environ: Mapping[str, str]) -> bool:
    return os.isatty(1) and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
