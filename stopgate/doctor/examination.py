"""
All checks, one after the other, and what they come to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from . import client_files, judge, own_settings, probing, service, storage, versions
from .finding import Finding, bad
from .scene import Scene

Check = Callable[[Scene], Iterator[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    versions.check,
    client_files.check,
    probing.check,
    own_settings.check,
    judge.check,
    storage.check,
    service.check,
)
LIVE: Final[Check] = judge.check_live
"""The one that spends money."""


def examine(scene: Scene, checks: Sequence[Check] = CHECKS) -> Iterator[Finding]:
    """
    Give what each check finds, as it is found; a check that fails is a finding of its own.
    """
    for check in checks:
        try:
            yield from check(scene)
        except Exception as error:  # the others are still worth knowing
            name = check.__module__.rpartition(".")[2]
            yield bad(
                name, f"the check itself failed: {type(error).__name__}: {error}", "report it to turngate's makers"
            )


def exit_code(findings: Sequence[Finding]) -> int:
    """
    Give 0 where all is well, 1 where something is not as one might think, 2 where the gate does not work.
    """
    levels = {finding.level for finding in findings}
    return 2 if "bad" in levels else 1 if "warn" in levels else 0
