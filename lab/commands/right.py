"""
`turngate right [ID]`: the verdict of this decision was right, whatever was said of it before; the turn becomes a labelled case.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from ...costing.records import DecisionLine
from ...stopgate.console import Parser
from ..wrong import found_labels
from .wrong import marking_parser, run_marking


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """
    Run the command, and give the exit code: 0 where the verdict is noted, 2 where it cannot be.
    """
    return run_marking(parser(), arguments, environ, "right", _labels)


def parser() -> Parser:
    """
    Give the command's parser.
    """
    return marking_parser("right", "that a verdict was right, and take back that it was wrong")


def _labels(line: DecisionLine, _asked: argparse.Namespace, _environ: Mapping[str, str]) -> Sequence[str]:
    return found_labels(line)
