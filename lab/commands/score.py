"""
`turngate lab score DIR`: what the judge of a run is worth.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from ...stopgate.console import Commands, add_command, print_text, warn
from ..cases import json_object
from ..errors import LabError
from ..files import read_there
from ..runs import read_run

_HELD = "held"


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    parser = add_command(
        commands, "score", _score, "say what the judge of a run is worth", "turngate lab score runs/first"
    )
    parser.add_argument("run", type=Path, metavar="DIR", help="the folder of a run")
    parser.add_argument("--json", action="store_true", help="print the score as JSON")
    parser.add_argument(
        "--base-rates",
        action="append",
        default=[],
        metavar="FILE.json|FAULT=RATE",
        help="how often a fault, or `held` for any, is met in real use, 0 to 1 (default: as in the run's random sample of 30 or more)",
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of the resamples (default: 0)")


def _score(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from ..looks import note_look  # hashes every turn
    from ..run_warnings import run_warnings
    from ..scoring.score import as_json, score  # numpy and scipy
    from ..scoring.text import score_text

    run = read_run(asked.run)
    rates = base_rates(asked.base_rates, run.manifest.faults)
    for warning in run_warnings(environ, [run]):
        warn(warning)
    found = score(run, rates=rates, seed=asked.seed)
    # Kept before a figure is shown: a look that nobody counted would be free.
    look = note_look(environ, [run], command="score")
    if look > 1:
        warn(f"look {look} at these test turns: words changed since the first one may fit them by chance")
    text = json.dumps(as_json(found), indent=2, ensure_ascii=False) + "\n"
    print_text(text if asked.json else score_text(found, styled=sys.stdout.isatty()))
    return 0


def base_rates(given: Sequence[str], faults: Collection[str]) -> dict[str, float]:
    """
    Read base rates, each a JSON file or `fault=rate`; a later one replaces an earlier one. Raises `LabError`.
    """
    rates: dict[str, float] = {}
    for one in given:
        name, is_pair, value = one.partition("=")
        if is_pair and not Path(one).is_file():
            rates[_fault("--base-rates", name, faults)] = _rate("--base-rates", name, value)
            continue
        for key, rate in _file(Path(one)).items():
            rates[_fault(one, key, faults)] = _rate(one, key, rate)
    return rates


def _file(path: Path) -> dict[str, object]:
    content = read_there(path)
    try:
        return json_object(content)
    except LabError as error:
        raise LabError(f"{path}: {error}") from None


def _fault(place: str, name: str, faults: Collection[str]) -> str:
    if name not in faults and name != _HELD:
        raise LabError(f"{place}: unknown fault {name!r}: expected {_HELD} or one of {', '.join(faults)}")
    return name


def _rate(place: str, name: str, value: object) -> float:
    try:
        rate = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):
        rate = -1.0
    # Written so that it is false for what is no number, too.
    if not 0 <= rate <= 1:
        raise LabError(f"{place}: {name}: expected a number from 0 to 1, found {value!r}")
    return abs(rate)  # -0 is 0


def seed(text: str) -> int:
    """
    Read the seed of resamples.
    """
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 up")
