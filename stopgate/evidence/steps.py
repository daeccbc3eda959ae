"""
What a tool call is for the evidence: a check, an edit, a look, or something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from ..transcript.clipped import START_MARGIN, Clipped
from ..transcript.entries import as_text
from ..transcript.record import ToolUse
from .checks import Ran, checks_in
from .edits import Edit, edits_in
from .scratch import is_scratch
from .shell import commands

EDITORS: Final = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
SHELLS: Final = frozenset({"Bash", "PowerShell"})
READERS: Final = frozenset(["Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch", "LSP"])

_TURNED_AWAY: Final = re.compile(
    r"\s*(?:Error: )?(?:Sibling tool call errored|InputValidationError|Cancell?ed\b|AbortError|No such tool"
    r"|This command requires approval|(?:Hook )?PreToolUse:|The operation was aborted|\[Request interrupted"
    r"|\S.* was blocked\. For security|This Bash command contains multiple operations"
    r'|Working directory "[^"\n]*" no longer exists)',
    re.IGNORECASE,
)
"""How the client's own words begin for a call that was not run, or not to its end."""

Kind = Literal["check", "edit", "read", "other"]


class Step(NamedTuple):
    """
    A tool call, and what it is.
    """

    use: ToolUse
    kind: Kind
    checks: tuple[Ran, ...] = ()
    """The checks that it asked for; none where it was refused."""
    edited: tuple[str, ...] | None = None
    """The files that it surely edited, as far as it names them; None where it edited none, or did not come to it."""
    last_edit: int = -1
    """Where the last of its sure edits stands among the commands of its line."""

    @property
    def has_checked(self) -> bool:
        """
        Whether its checks came to an end, as far as is known.
        """
        return bool(self.checks) and not never_ended(self.use)


def step_of(use: ToolUse, own_checks: Sequence[str] = (), cwd: str = "") -> Step:
    """
    The step that a call is. *own_checks* are the project's own check commands, as patterns; *cwd* is where its work lies.
    """
    succeeded = use.outcome is not None and use.outcome.state == "ok"
    if use.name in EDITORS:
        file = as_text(use.input.get("file_path")) or as_text(use.input.get("notebook_path"))
        is_edit = succeeded and not (file and is_scratch(file, cwd))
        return Step(use, "edit", edited=((file,) if file else ()) if is_edit else None)
    if use.name not in SHELLS:
        return Step(use, "read" if use.name in READERS else "other")

    command = as_text(use.input.get("command"))
    readable, is_whole = _readable(command)
    ran, edits = checks_in(readable, own_checks), edits_in(readable, cwd)
    if not is_whole:
        # What may hide their status is not known.
        ran = [check._replace(passes_with=None, fails_with=None) for check in ran]
    sure = _sure(edits, use) if is_whole or succeeded else []
    return Step(
        use,
        "check" if ran else "edit" if edits else "other",
        () if use.outcome and use.outcome.state in ("refused by the user", "refused") else tuple(ran),
        tuple(file for edit in sure for file in edit.files) if sure else None,
        sure[-1].position if sure else -1,
    )


def never_ended(use: ToolUse) -> bool:
    """
    Whether a call was refused, broken off, or turned away before it ran.
    """
    outcome = use.outcome
    if outcome is None or outcome.state in ("ok", "background", "unknown"):
        return False
    if outcome.state != "error":
        return True
    return outcome.exit_code is None and (outcome.turned_away or bool(_TURNED_AWAY.match(outcome.text)))


def _sure(edits: Sequence[Edit], use: ToolUse) -> list[Edit]:
    if use.outcome is None or use.outcome.state not in ("ok", "error") or never_ended(use):
        return []
    if use.outcome.state == "ok":
        return [edit for edit in edits if edit.on_zero]
    return [edit for edit in edits if edit.on_other]


def _readable(command: str) -> tuple[str, bool]:
    """
    A command as far as its structure is known, and whether that is all of it.

    Of a clipped command it is all where the cut fell into a here-document, else its start.
    """
    if not isinstance(command, Clipped):
        return command, True
    start = command.start[:-START_MARGIN]
    # No word is cut through: it might be a secret.
    start = start[: max(start.rfind(" "), start.rfind("\n")) + 1]
    whole = f"{start}{command.mark}{command.end}"
    is_hidden = not command.end or any(command.mark in word for part in commands(whole) for word in part.words)
    return (start, False) if is_hidden else (whole, True)
