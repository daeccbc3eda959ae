"""
The table of commands, as it stands in `jobs_commands.toml`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

KINDS = tomllib.loads((Path(__file__).parent / "jobs_commands.toml").read_text(encoding="utf-8"))["kind"]


class Refused(NamedTuple):
    """
    A command that is refused, with some words of a refused part and its kind.
    """

    command: str
    part: str
    kind: str


PASSED: list[tuple[str, str]] = [(kind["name"], command) for kind in KINDS for command in kind["pass"]]
"""With the kind that each belongs to."""
REFUSED: list[tuple[str, Refused]] = [(kind["name"], Refused(**entry)) for kind in KINDS for entry in kind["refuse"]]

NOT_BASH = "not bash"
"""The kind whose passing texts bash itself does not take."""
