"""
What a check found.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["ok", "warn", "bad"]


class Finding(NamedTuple):
    """
    One line about one thing; `warn` and `bad` say in `fix` what to do about it.
    """

    level: Level
    check: str
    text: str
    fix: str = ""


def ok(check: str, text: str) -> Finding:
    """
    Say that it is as it should be.
    """
    return Finding("ok", check, text)


def warn(check: str, text: str, fix: str) -> Finding:
    """
    Say that the gate works, and not as one might think.
    """
    return Finding("warn", check, text, fix)


def bad(check: str, text: str, fix: str) -> Finding:
    """
    Say that the gate does not work.
    """
    return Finding("bad", check, text, fix)
