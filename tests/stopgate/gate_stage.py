"""
A gate with a real store and transcript, whose judge answers what the test says.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import Decision
from turngate.judge.judgement import Judgement
from turngate.rubric.turn import Turn
from turngate.rubric.verdict import Finding, Verdict
from turngate.stopgate.events import BackgroundTask, Event
from turngate.stopgate.gate import Reply, Store, decide
from turngate.stopgate.settings import Settings
from turngate.stopgate.turn_count import TurnCounts

from .transcripts import Session

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
REPLY = "Wrote retry.ts.\n\nDone. All tests pass."
CLAIM = Finding("claim", "All tests pass.", "No test ran in this turn. Run them, or say plainly that none ran.")
OPENER = Finding("opener", "Wrote retry.ts.", "The reply opens with praise. Begin with the result.")
TASK = BackgroundTask("b1", "shell", "running", "Run the slow build", "make")


class Gate:
    """
    A gate with a real store and transcript; the judge answers what the test says, and every turn it saw is kept.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = open_database(folder / "state")
        self.store = Store(Ledger(self.database), TurnCounts(self.database))
        self.settings = Settings()
        self.session = Session()
        self.session.prompt("Write retry.ts", prompt_id="p1")
        self.session.runs("Write", "File created", file_path="/home/dev/demo/retry.ts")
        self.session.says(REPLY)
        self.answer: Judgement | Callable[[Turn], Judgement] = judged()
        self.asked: list[Turn] = []
        self.minute = 0

    def ask(self, turn: Turn) -> Judgement:
        self.asked.append(turn)
        return self.answer(turn) if callable(self.answer) else self.answer

    def event(self, **fields: object) -> Event:
        path = self.session.write(self.folder)
        event = Event(
            "Stop", session_id="s1", transcript_path=path, prompt_id="p1", reply=REPLY, project="/home/dev/demo"
        )
        return event._replace(**fields)  # pyright: ignore[reportArgumentType]

    def stop(self, event: Event | None = None, *, is_heard: Callable[[], bool] = lambda: True, **fields: Any) -> Reply:
        """
        Stop a minute after the last stop.
        """
        self.minute += 1
        now = NOW + timedelta(minutes=self.minute)
        event = event or self.event(**fields)
        return decide(event, now=now, store=self.store, ask=self.ask, settings=self.settings, is_heard=is_heard)

    @property
    def decisions(self) -> list[Decision]:
        assert self.store.ledger is not None
        return self.store.ledger.decisions()


def judged(*findings: Finding, dropped: int = 0) -> Judgement:
    return Judgement("answered", Verdict(findings, dropped), rubric="turn_end@1", rubric_hash="abc")
