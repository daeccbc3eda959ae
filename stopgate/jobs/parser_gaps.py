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
_THROWN_AWAY: Final = re.compile(rb"(?<=[)`])([ \t]+)(?:[12&]?>[ \t]?/dev/null|2>&1)(?![\w/])")
"""Which the parser does not take behind a bare assignment: `x=$(node -v) 2>/dev/null`."""
_BASE: Final = re.compile(rb"(\d)#(?=\$)")
"""The base of a number that is a variable: `$((10#$x + 1))`."""
_EXTENDED_PATTERN: Final = re.compile(rb"(?<=[\w./*-][ \t/])[!@?*+]\([^()\s]*\)")
"""A pattern such as `!(keep)`, as an argument."""
_BOTH_WAYS: Final = re.compile(rb"(?<=[\s;&|(])(\d+)<>")


def made_plain(command: bytes) -> tuple[bytes, frozenset[int]]:
    """
    Give the command as the parser reads it, and where the compound commands begin that stand behind `coproc`.
    """
    if b"=" in command:
        command = _ADDRESS.sub(rb"\1_", command)
    command = _THROWN_AWAY.sub(_blank, command)
    command = _BASE.sub(rb"\1+", command)
    command = _EXTENDED_PATTERN.sub(lambda found: b"x" * len(found[0]), command)
    if b"<>" in command:
        command = _BOTH_WAYS.sub(rb"\1< ", command)
    if b"time" not in command and b"coproc" not in command:
        return command, frozenset()
    places = frozenset(found.end() for found in _PREFIX.finditer(command) if found["coproc"])
    return _PREFIX.sub(_blank, command), places


def _blank(found: re.Match[bytes]) -> bytes:
    return b" " * len(found[0])
