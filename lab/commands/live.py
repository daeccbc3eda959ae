"""
`turngate lab live`: the end-to-end scenes with a judge that is real, and paid.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING

from ...stopgate.console import CommandError, Commands, add_command, print_text, warn

if TYPE_CHECKING:
    from ..live import Scene


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    does = "play the end-to-end scenes with the real client against a judge that you pay"
    parser = add_command(commands, "live", _live, does, "turngate lab live --usd 0.50")
    parser.add_argument(
        "--usd", type=_amount, required=True, metavar="MAX", help="what it may cost at most, in US dollars"
    )
    parser.add_argument("--model", help="the judge's model (default: judge.model of your settings)")
    parser.add_argument(
        "--scenes",
        type=Path,
        default=Path("tests/e2e"),
        metavar="DIR",
        help="where the scenes are (default: tests/e2e)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("lab-live"), metavar="DIR", help="for what they leave (default: lab-live)"
    )


def _live(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from ...costing.ledger import Ledger
    from ...costing.opening import open_ledger_store
    from ...stopgate.places import config_dir, state_dir
    from ...stopgate.settings import read_settings
    from ..live import LOG, play_scenes, record_calls

    settings = read_settings(environ).settings
    judge = settings.judge._replace(model=asked.model) if asked.model else settings.judge
    prices = config_dir(environ)
    folder = state_dir(environ)
    if folder is None:
        raise CommandError("no home directory is known: set TURNGATE_STATE_DIR")

    played = play_scenes(
        asked.out,
        asked.scenes,
        judge,
        environ,
        limit_usd=asked.usd,
        prices_folder=Path(prices) if prices else None,
    )
    with open_ledger_store(folder, settings.ledger_url) as store:
        record_calls(Ledger(store), played)
    print_text(_told(played, judge.model))
    if not all(scene.is_as_expected for scene in played):
        warn(f"not every scene went as expected: {asked.out / LOG} has the findings")
    return 0 if all(scene.is_as_expected for scene in played) else 1


def _told(played: list[Scene], model: str) -> str:
    """
    A table as the docs have it, in Markdown.
    """
    from ...costing.screen import money, one_line
    from ...costing.usage import total

    lines = [
        f"judge: {one_line(model)}",
        "",
        "| scene | as expected | stops | calls | tokens in | out | cached | cost | slowest call |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for scene in played:
        ends = [call.end for call in scene.calls if call.end]
        used = total([end.usage for end in ends if end.usage] or [])
        known = [end.cost_usd for end in ends if end.cost_usd is not None]
        cost = money(sum(known, Decimal(0))) if len(known) == len(scene.calls) else "unknown"
        slowest = max((end.latency_ms or 0 for end in ends), default=0)
        outcome = scene.why_not or ("yes" if scene.is_as_expected else "no")
        lines.append(
            f"| {scene.name} | {outcome} | {', '.join(scene.outcomes)} | {len(scene.calls)} | {used.prompt_tokens:,} "
            f"| {used.output_tokens:,} | {used.cache_read_tokens:,} | {cost} | {slowest / 1000:.2f} s |"
        )
    return "\n".join(lines) + "\n"


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(0)
    if amount.is_finite() and amount > 0:
        return amount
    raise argparse.ArgumentTypeError(f"{text!r} is no amount of US dollars above 0")
