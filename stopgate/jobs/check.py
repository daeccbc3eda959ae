"""
The check of one command.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from .refusal import MOST_NAMED, refusal
from .walk import Finding, findings


class Checked(NamedTuple):
    """
    What came of it.
    """

    outcome: Literal["jobs_pass", "jobs_deny", "jobs_unparsed"]
    reason: str = ""
    """For the agent, where it is refused."""
    found: tuple[Finding, ...] = ()


def checked(command: str, *, allowed: Sequence[str] = (), asks: bool = False) -> Checked:
    """
    Check a shell command.

    What cannot be parsed passes, as does what fits one of the `allowed` patterns (as file names do). The reason is worded for `asks` where
    the person is asked about it.
    """
    found = findings(command)
    if found is None:
        return Checked("jobs_unparsed")
    refused = [finding for finding in found if not _is_allowed(finding, allowed)]
    refused = (*map(_with_tried, refused[:MOST_NAMED]), *(left._replace(instead="") for left in refused[MOST_NAMED:]))
    return Checked("jobs_deny", refusal(refused, asks=asks), refused) if refused else Checked("jobs_pass")


def _is_allowed(finding: Finding, allowed: Sequence[str]) -> bool:
    texts = (" ".join(finding.part.split()), " ".join(finding.instead.split()))
    return any(fnmatchcase(text, pattern) for text in texts if text for pattern in allowed)


def _with_tried(finding: Finding) -> Finding:
    """
    Keep what to send instead only where it would pass.
    """
    return finding if not finding.instead or findings(finding.instead) == [] else finding._replace(instead="")
