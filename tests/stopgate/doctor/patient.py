"""
A home in which all is well, and what the doctor says of it after something was broken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.outcomes import Outcome
from turngate.costing.records import DecisionLine
from turngate.stopgate.doctor import client_files, judge, own_settings, probing, service, storage, versions
from turngate.stopgate.doctor.examination import Check, examine
from turngate.stopgate.doctor.finding import Finding
from turngate.stopgate.doctor.scene import look_at
from turngate.stopgate.installing.our_hooks import EVENTS, our_command, wanted_hooks
from turngate.stopgate.settings import Settings

Plant = Callable[["Patient"], None]

CHEAP: tuple[Check, ...] = (
    versions.check,
    client_files.check,
    own_settings.check,
    judge.check,
    storage.check,
    service.check,
)
PROBES: tuple[Check, ...] = (probing.check,)


class Patient:
    """
    A person with the hooks installed, a key, a client and a state directory.
    """

    def __init__(self, folder: Path) -> None:
        self.home = folder / "person"
        self.project = self.home / "project"
        self.settings = self.home / ".claude" / "settings.json"
        self.state = folder / "state"
        self.config = self.home / ".config" / "turngate" / "config.toml"
        self.managed = folder / "managed-settings.json"
        self.bin = folder / "bin"
        for made in (self.project, self.settings.parent, self.config.parent, self.bin):
            made.mkdir(parents=True)
        self.state.mkdir(mode=0o700)
        self.environ = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "ANTHROPIC_API_KEY": "sk-ant-api03-not-a-key-not-a-key",
            "TURNGATE_STATE_DIR": str(self.state),
        }
        self.client_says("2.1.328 (Claude Code)")
        self.use_hooks()

    def client_says(self, version: str) -> None:
        """
        Let a client of this version be on the PATH.
        """
        client = self.bin / "claude"
        client.write_text(f"#!/bin/sh\necho '{version}'\n")
        client.chmod(0o755)

    def use_hooks(self, command: str = "", *, events: Sequence[str] = EVENTS, **more: object) -> None:
        """
        Put our hooks into the user's settings, with another command, or more in each hook.
        """
        hooks = {hook.event: [hook.group()] for hook in wanted_hooks(events, Settings(), command or our_command())}
        for groups in hooks.values():
            groups[0]["hooks"] = [{**hook, **more} for hook in groups[0]["hooks"]]  # type: ignore[union-attr]
        self.write({"hooks": hooks})

    def write(self, settings: object, *, place: str = "") -> None:
        """
        Write the user's settings, or those of a file in the project.
        """
        path = self.project / ".claude" / place if place else self.settings
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings))

    def read(self) -> dict[str, Any]:
        """
        Give the user's settings.
        """
        return json.loads(self.settings.read_text())

    def add(self, **more: object) -> None:
        """
        Add keys to the user's settings.
        """
        self.write({**self.read(), **more})

    def decided(self, *outcomes: Outcome, at: datetime | None = None) -> None:
        """
        Write decisions into the ledger.
        """
        with open_database(self.state) as database:
            for number, outcome in enumerate(outcomes):
                line = DecisionLine(at or datetime.now(UTC), "Stop", outcome, id=f"d{number}", detail="no answer")
                Ledger(database).record_decision(line)

    def findings(self, checks: Sequence[Check] = CHEAP) -> list[Finding]:
        """
        Have it examined.
        """
        scene = look_at(self.environ, str(self.project), datetime.now(UTC), managed=str(self.managed))
        return list(examine(scene, checks))
