"""
What the agent is told about a refused command: that nothing of it ran, what was refused, and what to send instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .walk import Finding

MOST_NAMED: Final = 3
LONGEST_PART: Final = 200
LONGEST_INSTEAD: Final = 500

_ENDS: Final = {
    "background": "a process that the client does not track",
    "detached": "a process that is cut loose from the client",
    "pattern": "every process that fits a pattern, whoever started it",
}
_STOP_ONE: Final = (
    "Stop the one process that you mean: TaskStop with its task's id, or `kill` with its recorded PID "
    "(`pgrep` shows which there are)."
)


def refusal(findings: Sequence[Finding]) -> str:
    """
    Give the reason for a refusal, in at most about 2,000 characters of plain text.
    """
    named = [f"`{_short(finding.part)}` {_does(finding)}" for finding in findings[:MOST_NAMED]]
    more = f", and {len(findings) - MOST_NAMED} more" if len(findings) > MOST_NAMED else ""
    kinds = {finding.kind for finding in findings}
    ways = [_start_tracked(findings)] if kinds & {"background", "detached"} else []
    ways += [_STOP_ONE] if "pattern" in kinds else []
    return f"turngate refused this command, and no part of it ran: {'; '.join(named)}{more}. {' '.join(ways)}"


def _does(finding: Finding) -> str:
    return f"would {'stop' if finding.kind == 'pattern' else 'start'} {_ENDS[finding.kind]}"


def _start_tracked(findings: Sequence[Finding]) -> str:
    # One command may be refused twice, as a job and for its `nohup`; the shortest form has neither.
    by_place: dict[int, str] = {}
    for finding in findings:
        if finding.kind != "pattern":
            before = by_place.get(finding.place, "")
            by_place[finding.place] = min(filter(None, (before, finding.instead)), key=len, default="")
    known = [_masked(command) for command in dict.fromkeys(by_place.values())]
    if "" in known or len(known) > MOST_NAMED or sum(map(len, known)) > LONGEST_INSTEAD:
        what = "the same command without `&`, `nohup`, `setsid` and `disown`"
    else:
        what = " and ".join(f"`{command}`" for command in known)
    each = ", each as a call of its own" if len(known) > 1 else ""
    text = f"Send {what} with run_in_background: true and no `&`{each}; what else the command did, as another call."
    if any(finding.kind == "background" for finding in findings):
        text += " A job that is to end within this command needs `wait` after it in the same shell."
    if any(finding.is_glued for finding in findings):
        text += " If the `&` belongs to an argument, such as a URL, put that in quotes."
    return text


def _short(text: str) -> str:
    text = " ".join(_masked(text).split())
    return text if len(text) <= LONGEST_PART else f"{text[: LONGEST_PART - 1]}…"


def _masked(text: str) -> str:
    from ...rubric.masking import clean, mask

    return mask(clean(text))
