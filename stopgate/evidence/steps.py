"""
What a tool call is for the evidence: a check, an edit, a look, or something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from ..transcript.entries import as_text
from ..transcript.record import ToolUse
from .checks import Ran, checks_in, edits_in

EDITORS: Final = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
SHELLS: Final = frozenset({"Bash", "PowerShell"})
READERS: Final = frozenset(["Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch", "LSP"])

Kind = Literal["check", "edit", "read", "other"]


class Step(NamedTuple):
    """
    A tool call, and what it is.
    """

    use: ToolUse
    kind: Kind
    checks: tuple[Ran, ...] = ()
    """The checks that it ran; none where it was refused."""
    edited: tuple[str, ...] | None = None
    """The files that it edited, as far as it names them; None where it edited none, or did not come to it."""


def step_of(use: ToolUse, own_checks: Sequence[str] = ()) -> Step:
    """
    The step that a call is. *own_checks* are the project's own check commands, as patterns.
    """
    succeeded = use.outcome is not None and use.outcome.state == "ok"
    if use.name in EDITORS:
        file = as_text(use.input.get("file_path")) or as_text(use.input.get("notebook_path"))
        return Step(use, "edit", edited=((file,) if file else ()) if succeeded else None)
    if use.name not in SHELLS:
        return Step(use, "read" if use.name in READERS else "other")

    command = as_text(use.input.get("command"))
    ran, (edits, files) = checks_in(command, own_checks), edits_in(command)
    return Step(
        use,
        "check" if ran else "edit" if edits else "other",
        () if use.outcome and use.outcome.state in ("refused by the user", "refused") else tuple(ran),
        files if edits and succeeded else None,
    )
