"""
What the agent is told about a refused command: that nothing of it ran, what was refused, and what to send instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .walk import Finding

MOST_NAMED: Final = 3
_MOST_COMPARED: Final = 12
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


def refusal(findings: Sequence[Finding], *, asks: bool = False) -> str:
    """
    Give the reason for a refusal, in at most about 2,000 characters of plain text; `asks` where the person may still allow it.
    """
    told = "asks about this command" if asks else "refused this command, and no part of it ran"
    # A job that is cut loose too is one process.
    jobs = [finding for finding in findings[:_MOST_COMPARED] if finding.kind == "background"]
    findings = [finding for finding in findings if finding.kind != "detached" or not _is_within(finding, jobs)]
    named = [f"`{_short(finding.part)}` {_does(finding)}" for finding in findings[:MOST_NAMED]]
    more = f", and {len(findings) - MOST_NAMED} more" if len(findings) > MOST_NAMED else ""
    kinds = {finding.kind for finding in findings}
    ways = [_start_tracked(findings)] if kinds & {"background", "detached"} else []
    ways += [_STOP_ONE] if "pattern" in kinds else []
    return f"turngate {told}: {'; '.join(named)}{more}. {' '.join(ways)}"


def _does(finding: Finding) -> str:
    return f"would {'stop' if finding.kind == 'pattern' else 'start'} {_ENDS[finding.kind]}"


def _start_tracked(findings: Sequence[Finding]) -> str:
    started = [finding for finding in findings if finding.kind != "pattern" and not finding.part.startswith("disown")]
    text = f"Send {_what(started)} with run_in_background: true and no `&`"
    text += f"{', each as a call of its own' if len(started) > 1 else ''}; what else the command did, as another call."
    if any(finding.kind == "background" for finding in started):
        text += " A job that is to end within this command needs `wait` after it in the same shell."
    if not any(finding.is_glued for finding in started):
        return text
    return f"If the `&` belongs to an argument, such as a URL, put that in quotes. If not: {text[0].lower()}{text[1:]}"


def _what(started: Sequence[Finding]) -> str:
    commands = list(dict.fromkeys(finding.instead for finding in started))
    is_known = "" not in commands and 0 < len(commands) <= MOST_NAMED and sum(map(len, commands)) <= LONGEST_INSTEAD
    # A command that holds a secret is not repeated.
    if not is_known or any(finding.is_glued for finding in started) or list(map(_masked, commands)) != commands:
        return "the same command without `&`, `nohup`, `setsid`, `disown` and `coproc`"
    return " and ".join(f"`{command}`" for command in commands)


def _is_within(finding: Finding, jobs: Sequence[Finding]) -> bool:
    return any(job.place <= finding.place and finding.end <= job.end for job in jobs)


def _short(text: str) -> str:
    text = " ".join(_masked(text).split())
    return text if len(text) <= LONGEST_PART else f"{text[: LONGEST_PART - 1]}…"


def _masked(text: str) -> str:
    from ...rubric.masking import clean, mask

    return mask(clean(text))
