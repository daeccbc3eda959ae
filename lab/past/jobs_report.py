"""
The commands that the jobs check would have refused, as a person reads them and as plain data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from ...costing.tables import table
from ...stopgate.settings import Settings
from .bash_commands import BashCommand
from .short_names import short_names

_WOULD: Final = {"deny": "would have been refused", "ask": "would have been asked about"}
_COLUMNS: Final = ("project", "session", "time (UTC)", "kind", "refused part")


def jobs_json(commands: Sequence[BashCommand], settings: Settings) -> dict[str, object]:
    """
    Give what the jobs check says of some commands as plain data.
    """
    outcomes = Counter(command.outcome for command in commands)
    return {
        "mode": "off" if settings.gate_mode == "off" else settings.jobs_mode,
        "bash_commands": len(commands),
        "refused": outcomes["jobs_deny"],
        "unparsed": outcomes["jobs_unparsed"],
        "refused_commands": [_command_json(command) for command in commands if command.refused],
    }


def _command_json(command: BashCommand) -> dict[str, object]:
    return {
        "project": command.project,
        "session": command.session,
        "at": command.at and command.at.isoformat(timespec="seconds"),
        "call": command.id,
        "parts": [part._asdict() for part in command.refused],
    }


def jobs_text(commands: Sequence[BashCommand], settings: Settings, *, styled: bool = False) -> list[str]:
    """
    Give the refused commands as a table, one line each, and how many there are of how many.
    """
    if not commands:
        return []
    off = next((name for name in ("gate", "jobs") if getattr(settings, f"{name}_mode") == "off"), "")
    if off:
        return ["", f"Bash commands: {len(commands):,}, not looked at: {off}.mode = off."]
    outcomes = Counter(command.outcome for command in commands)
    refused = [command for command in commands if command.refused]
    names = short_names(command.project for command in refused)
    rows = [_cells(command, names[command.project] or "(no project)") for command in refused]
    only_noted = "; the gate is in shadow mode, so only noted" if settings.gate_mode == "shadow" else ""
    told = (
        f"Bash commands: {len(commands):,}. Of these {outcomes['jobs_deny']:,} {_WOULD[settings.jobs_mode]} "
        f"(jobs.mode = {settings.jobs_mode}{only_noted}), and {outcomes['jobs_unparsed']:,} could not be parsed, which pass."
    )
    return ["", told, *(table(_COLUMNS, rows, styled=styled) if rows else [])]


def _cells(command: BashCommand, project: str) -> list[str]:
    first, *others = command.refused
    more = f" (and {len(others):,} more)" if others else ""
    kinds = dict.fromkeys(part.kind for part in command.refused)
    at = f"{command.at:%Y-%m-%d %H:%M}" if command.at else ""
    return [project, command.session, at, ", ".join(kinds), first.part + more]
