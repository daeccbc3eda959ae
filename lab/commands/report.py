"""
`turngate lab report DIR [OTHER ...]`: a page with all that is known of runs, with Markdown and JSON beside it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from ...stopgate.console import Commands, add_command, print_text, warn
from ..errors import LabError
from ..files import read_whole, write_whole
from ..runs import Run, read_run
from .compare import margin
from .score import base_rates, seed

_SIGNS: Final = {
    ".html": "turngate lab report",
    ".md": "<!-- turngate lab report -->",
    ".json": '{\n  "report": ',
}
"""What stands in the first 500 characters of a report of ours: any other file of that name is somebody's."""


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    does = "write a page of one run, or of several beside the first, with Markdown and JSON beside it"
    parser = add_command(
        commands, "report", _report, does, "turngate lab report runs/before runs/after --out report.html"
    )
    parser.add_argument("run", type=Path, metavar="DIR", help="the folder of a run; the baseline where others follow")
    parser.add_argument("others", type=Path, nargs="*", metavar="OTHER", help="runs of the same cases")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE.html",
        help="the page (DIR/report.html; with others, comparison.html in the last one's folder)",
    )
    parser.add_argument(
        "--margin",
        type=margin,
        default=0.0,
        metavar="M",
        help="loss that does not matter, as for `turngate lab compare` (0)",
    )
    parser.add_argument(
        "--base-rates",
        action="append",
        default=[],
        metavar="FILE.json|FAULT=RATE",
        help="how often a fault, or `held` for any, is met in real use, as for `turngate lab score`",
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="N", help="of the resamples (default: 0)")
    parser.add_argument("--look-again", action="store_true", help="compare test cases that were looked at before")


def _report(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from ..reporting.markdown import markdown
    from ..reporting.page import page
    from ..reporting.report import as_json, report
    from ..run_warnings import run_warnings

    out = _page_of(asked)
    runs = [read_run(folder) for folder in (asked.run, *asked.others)]
    for warning in run_warnings(environ, runs):
        warn(warning)
    faults = dict.fromkeys(fault for run in runs for fault in run.manifest.faults)
    rates = base_rates(asked.base_rates, faults)
    found = report(runs, margin=asked.margin, rates=rates, seed=asked.seed)
    # Kept before a figure is shown; a run without a score shows none.
    shown = [run for run, arm in zip(runs, found.arms, strict=True) if arm.score]
    found = found._replace(look=_look(environ, shown, again=asked.look_again))
    written = {
        ".html": page(found),
        ".md": markdown(found),
        ".json": json.dumps(as_json(found), indent=2, ensure_ascii=False) + "\n",
    }
    for suffix, text in written.items():
        write_whole(out.with_suffix(suffix), text)
    for arm in found.arms:
        if arm.why_no_score:
            warn(arm.why_no_score)
    print_text("".join(f"{out.with_suffix(suffix)}\n" for suffix in written))
    return 0


def _page_of(asked: argparse.Namespace) -> Path:
    folders: list[Path] = [asked.run, *asked.others]
    default = folders[-1] / ("comparison.html" if asked.others else "report.html")
    out: Path = asked.out or default
    if out.suffix != ".html" or not out.stem:
        raise LabError(f"--out: expected a name that ends in .html, found {str(out)!r}")
    for suffix, sign in _SIGNS.items():
        _check_ours(out.with_suffix(suffix), sign)
    return out


def _check_ours(path: Path, sign: str) -> None:
    start = (read_whole(path) or b"")[:500]
    if start and sign.encode() not in start:
        raise LabError(f"{path}: exists and is no report: choose another name by --out")


def _look(environ: Mapping[str, str], runs: Sequence[Run], *, again: bool) -> int:
    from ..looks import note_look, refuse_looked_at

    if len(runs) > 1 and not again:
        refuse_looked_at(environ, runs)
    number = note_look(environ, runs, command="report")
    if number > 1:
        warn(f"look {number} at these test turns: words changed since the first one may fit them by chance")
    return number
