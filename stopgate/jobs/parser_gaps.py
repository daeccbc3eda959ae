"""
What the parser does not know, written so that it does: of the same length, and to a shell of the same structure.
"""

from __future__ import annotations

import re
from typing import Final

_COMPOUND: Final = rb"(?=[({]|(?:if|for|while|until|case|select)[\s;])"
_PREFIX: Final = re.compile(
    rb"(?<![\w./$\"'\\=-])(?:(?P<time>time[ \t]+(?:-p[ \t]+)?)|(?P<coproc>coproc[ \t]+(?:[A-Za-z_]\w*[ \t]+)?))"
    + _COMPOUND
)
"""Taken for the names of programs, so that the compound command behind them falls to pieces."""
_ADDRESS: Final = re.compile(rb"((?:^|[\s;&|(])[A-Za-z_]\w*=\S*[ \t]+[A-Za-z_]\w*):", re.MULTILINE)
"""A name with a colon behind an assignment, as in `curl http://host?a=1&b=2 http://host`."""
_BOTH_WAYS: Final = re.compile(rb"(?<=[\s;&|(])(\d+)<>")


def made_plain(command: bytes) -> tuple[bytes, frozenset[int]]:
    """
    Give the command as the parser reads it, and where the compound commands begin that stand behind `coproc`.
    """
    if b"=" in command:
        command = _ADDRESS.sub(rb"\1_", command)
    if b"<>" in command:
        command = _BOTH_WAYS.sub(rb"\1< ", command)
    if b"time" not in command and b"coproc" not in command:
        return command, frozenset()
    places = frozenset(found.end() for found in _PREFIX.finditer(command) if found["coproc"])
    return _PREFIX.sub(lambda found: b" " * len(found[0]), command), places
