"""
"This was wrong": what a person's word about a verdict says of the reply's faults.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from ..records import DecisionLine

NONE: Final = "none"
"""The label of a reply without a fault."""

_JUDGED: Final = ("block_verdict", "shadow_verdict", "pass_clean", "pass_noted", "pass_ungrounded")


class NoLabel(ValueError):
    """
    What was said says nothing of the faults; the text is one line that tells why.
    """


def was_judged(line: DecisionLine) -> bool:
    """
    Say whether there is a verdict that could be wrong.
    """
    return line.outcome in _JUDGED or bool(line.findings)


def found_faults(line: DecisionLine) -> tuple[str, ...]:
    """
    Give the faults that the verdict found, each once.
    """
    return tuple(dict.fromkeys(finding.fault for finding in line.findings))


def right_label(line: DecisionLine, named: Sequence[str], known: Collection[str]) -> str:
    """
    Give the label of a reply whose verdict is wrong of the `named` faults: found and not there, or there and not found.

    None named: all that it found is not there. Raises `NoLabel`.
    """
    found = found_faults(line)
    if not was_judged(line):
        raise NoLabel("this was decided without a judge: no verdict can be wrong")
    if any(fault not in known and fault not in found for fault in named):
        raise NoLabel(f"no such fault: expected one of {', '.join(known)}")
    if not named and not found:
        raise NoLabel("the verdict found no fault: choose the one that it missed")
    wrong = frozenset(named or found)
    right = [fault for fault in dict.fromkeys((*known, *found)) if (fault in found) != (fault in wrong)]
    return ",".join(right) or NONE
