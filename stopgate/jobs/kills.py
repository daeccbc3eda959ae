"""
What stops processes by a pattern, and what finds process ids by one; by the options of each program.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from .shells import Value

_BY_ID: Final = frozenset({"-P", "--parent", "-F", "--pidfile", "-g", "--pgroup", "-s", "--session"})
"""Options of pgrep and pkill that select by a known process id; the others, and an operand, select by a pattern."""
_SELECTING: Final = frozenset({"-G", "--group", "-t", "--terminal", "-u", "--euid", "-U", "--uid", "-O", "--older"})
_WITH_VALUE: Final = frozenset(
    {
        *_BY_ID,
        *_SELECTING,
        "-d",
        "--delimiter",
        "-r",
        "--runstates",
        "--signal",
        "-q",
        "--queue",
        "--ns",
        "--nslist",
        "--env",
    }
)
_INFORMS: Final = frozenset({"--help", "--version", "-V"})
_LISTS: Final = frozenset({"-l", "--list", "-L", "--table"})
_SIGNAL_OPTIONS: Final = {"kill": ("-s", "-n"), "killall": ("-s", "--signal"), "pkill": ("--signal",)}


def kills_by_pattern(name: str, operands: Sequence[Value], *, fed_by_pattern: bool) -> bool:
    """
    Say whether a program stops processes by a pattern.

    `fed_by_pattern`: its last operands are process ids that were found by a pattern.
    """
    texts = [operand.text for operand in operands]
    if name == "taskkill":
        return any(text.lower().lstrip("/-") == "im" for text in texts if text.startswith(("/", "-")))
    if name not in _SIGNAL_OPTIONS or not _INFORMS.isdisjoint(texts) or _only_tests(name, texts):
        return False
    if name == "pkill":
        return selects_by_pattern(texts)
    is_fed = name == "killall" or fed_by_pattern or any(operand.by_pattern for operand in operands)
    return is_fed and _LISTS.isdisjoint(texts[:1])


def selects_by_pattern(texts: Sequence[str]) -> bool:
    """
    Say whether pgrep or pkill, with these operands, selects by anything but the ids of processes.
    """
    is_value, by_id = False, False
    for text in texts:
        if is_value:
            is_value = False
            continue
        if not text.startswith("-") or text == "-":
            return True
        option, _, value = text.partition("=")
        short = option if option.startswith("--") else option[:2]
        if short in _SELECTING:
            return True
        by_id = by_id or short in _BY_ID
        is_value = option in _WITH_VALUE and not value
    return not by_id


def gives_pattern_pids(name: str, operands: Sequence[Value]) -> bool:
    """
    Say whether a program prints process ids that it found by a pattern.
    """
    texts = [operand.text for operand in operands]
    if name == "pgrep":
        return _INFORMS.isdisjoint(texts) and selects_by_pattern(texts)
    return name == "pidof" or (name == "ps" and any(text.startswith("-C") for text in texts))


def lists_processes(name: str, operands: Sequence[Value]) -> bool:
    """
    Say whether a program lists processes that nobody has named by their ids.
    """
    return name == "ps" and not any(_names_ids(operand) for operand in operands)


def _names_ids(operand: Value) -> bool:
    text = operand.text
    return text.startswith(("-p", "--pid", "--ppid", "-q", "--quick-pid", "$")) or text.isdecimal()


def _only_tests(name: str, texts: Sequence[str]) -> bool:
    """
    Signal 0 stops nothing.
    """
    options = _SIGNAL_OPTIONS[name]
    return (
        "-0" in texts[:1]
        or "--signal=0" in texts
        or any(pair == (option, "0") for option in options for pair in pairwise(texts))
    )
