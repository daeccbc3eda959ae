"""
`turngate lab harvest [PATH...] --out FILE`: the turns of recorded sessions as cases.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...stopgate.console import Commands, add_command, count_from_one, print_text

if TYPE_CHECKING:
    from ..past.harvest import Harvest


def add(commands: Commands) -> None:
    """
    Add the command to a parser.
    """
    does = "make a case without labels of every turn in recorded sessions, secrets masked"
    example = "turngate lab harvest --out turns.jsonl --sample 200 --seed 1"
    parser = add_command(commands, "harvest", _harvest, does, example)
    places = "transcripts, or folders that hold some (default: those of the client, ~/.claude/projects)"
    parser.add_argument("paths", type=Path, nargs="*", metavar="PATH", help=places)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file of cases; run again to go on")
    parser.add_argument("--sample", type=count_from_one, metavar="N", help="draw N turns blindly (default: all turns)")
    parser.add_argument("--seed", type=int, metavar="S", help="another seed draws another sample (default: 0)")
    parser.add_argument("--jobs", type=count_from_one, metavar="N", help="processes (default: one for each processor)")


def _harvest(asked: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from ...stopgate.settings import read_settings
    from ..errors import LabError
    from ..past.harvest import Way, harvest
    from ..past.transcripts import clients_own, tell_unreadable
    from ..progress import Progress

    if asked.seed is not None and asked.sample is None:
        raise LabError("--seed: draws a sample, so give --sample too")
    settings = read_settings(environ).settings
    way = Way(None, settings.evidence_checks, settings.gate_events, settings.gate_continuations)
    progress: list[Progress] = []

    def tell(done: int, of: int, cases: int) -> None:
        if not os.isatty(2):
            return
        if not progress:
            progress.append(Progress(of, done - 1))
        progress[0].tell(done, f"transcripts, {cases:,} cases")

    try:
        found = harvest(
            asked.paths or [clients_own(environ)],
            out=asked.out,
            sample=asked.sample,
            seed=asked.seed or 0,
            jobs=asked.jobs,
            progress=tell,
            way=way,
        )
    finally:
        for bar in progress:
            bar.close()
    tell_unreadable(found.problems, read=found.read)
    print_text(_summary(found, asked.out, asked.sample))
    return 0


def _summary(found: Harvest, out: Path, sample: int | None) -> str:
    before = f" ({found.done_before:,} were done before)" if found.done_before else ""
    drawn = f", drawn blindly of all turns that could be judged (asked for: {sample:,})" if sample else ""
    known = [f"in the file already: {found.known:,}"] if found.known else []
    problems = [f"files and folders that could not be read: {len(found.problems):,}"] if found.problems else []
    skipped = [f"  {reason}: {count:,}" for reason, count in found.skipped.most_common()]
    megabytes = found.bytes / 1e6
    lines = [
        f"transcripts: {found.transcripts:,}{before}",
        *problems,
        f"stops: {found.stops:,}",
        f"skipped, since the gate would not have asked a judge: {sum(found.skipped.values()):,}",
        *skipped,
        *known,
        f"cases in {out}: {found.cases:,}{drawn}",
        f"read: {megabytes:,.1f} MB in {found.seconds:.1f} s, {megabytes / max(found.seconds, 0.001):,.1f} MB/s",
    ]
    return "\n".join(lines) + "\n"
