"""
`turngate lab`: how good the rubric is, on recorded turns.

Every failure is one line on stderr and exit 2; Ctrl-C is exit 130, and what was paid for is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from ..costing.store import StoreError
from ..stopgate.console import CommandError, Parser, warn
from ..stopgate.settings import BadSetting
from .errors import LabError

COMMANDS = (
    *("check", "harvest", "replay", "label"),
    *("run", "export_requests", "import_answers", "score", "compare", "report", "attacks", "live"),
)
"""Each is a module in `commands` with `add(commands)`, in the order of the help."""


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """
    Run one command of the lab, and give the exit code.
    """
    try:
        asked = parser().parse_args(arguments)
        return asked.command(asked, environ)
    except ModuleNotFoundError as exc:
        if exc.name not in _EXTRA:
            raise
        warn(
            f"this command needs {exc.name}: install turngate with its extra `lab`: pip install -c constraints.txt '.[lab]'"
        )
    except (LabError, CommandError, StoreError, BadSetting) as exc:
        warn(str(exc))
    except KeyboardInterrupt:
        return 130
    return 2


_EXTRA = ("numpy", "scipy", "plotly")


def parser() -> Parser:
    """
    Give the parser of the lab's commands.
    """
    lab = Parser(prog="turngate lab", description="Measure the rubric on recorded turns, before it holds anybody.")
    commands = lab.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f".commands.{name}", __package__).add(commands)
    return lab
