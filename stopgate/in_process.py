"""
One event answered in this very process: settings, store and judge are put together around the gate.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from ..costing.database import StoreError, open_database
from ..costing.ledger import Ledger
from ..costing.outcomes import Outcome
from ..costing.stamps import new_id
from .events import BadEvent, Event, read_event
from .gate import HELD_BY_ANOTHER, Reply, Store, decide, decision_line, record
from .places import config_dir, state_dir
from .protocol import answer, style_for
from .settings import BadSetting, Trusted, read_settings, trusted
from .turn_count import TurnCounts

if TYPE_CHECKING:
    from ..judge.connect import NoJudge
    from ..judge.judgement import Ask, Judgement
    from ..judge.settings import JudgeSettings
    from ..rubric.turn import Turn

GRACE_S: Final = 4.0
"""
After the judge's deadline, until the process gives up by itself: time for a store that others lock. Both together stay below the hook's
own timeout.
"""

LINE_LIMIT: Final = 500


class Answer(NamedTuple):
    """
    What the hook writes: nothing or one JSON object, and at most one line for the client's debug log.
    """

    stdout: bytes = b""
    stderr: bytes = b""


class Clock(NamedTuple):
    """
    When the hook's process started, by the calendar and on `time.monotonic`'s clock.
    """

    now: datetime
    monotonic: float

    def elapsed(self) -> float:
        """
        Give the seconds since the start.
        """
        return time.monotonic() - self.monotonic


def clock_since(monotonic: float) -> Clock:
    """
    Give the clock of a process that started at this time of `time.monotonic`.
    """
    return Clock(datetime.now(UTC) - timedelta(seconds=time.monotonic() - monotonic), monotonic)


def answer_event(data: bytes, environ: Mapping[str, str], clock: Clock) -> Answer:
    """
    Answer one event: the bytes of standard input, as the client sent them.
    """
    try:
        event = read_event(data, environ)
    except BadEvent as error:
        return _without_gate(_unread(environ), "pass_not_a_turn", str(error), environ, clock)
    safe = trusted(environ, event.project_folders)
    try:
        reading = read_settings(safe.environ, project_folders=event.project_folders)
    except BadSetting as error:
        return _without_gate(event, "pass_internal_error", str(error), environ, clock)

    decision_id = new_id(clock.now)
    deadline_at = clock.monotonic + reading.settings.judge.deadline_s
    with _given_up_after(deadline_at + GRACE_S - time.monotonic()):
        store = open_store(safe.environ)
        reply = decide(
            event,
            now=clock.now,
            store=store,
            ask=_asking(event, reading.settings.judge, safe, store, clock.now, decision_id, deadline_at),
            settings=reading.settings,
            decision_id=decision_id,
            elapsed=clock.elapsed,
        )
    style = style_for(reading.settings.gate_style, reply.client_version)
    is_trouble = reply.outcome == "pass_state_error" and reply.detail != HELD_BY_ANOTHER
    troubles = (reply.detail,) if is_trouble else ()
    return Answer(
        answer(event_name=event.name, reason=reply.reason, message=reply.message, style=style),
        _told(_one_line(*safe.notices, *reading.notices, *troubles)),
    )


def open_store(environ: Mapping[str, str]) -> Store:
    """
    Open the gate's memory in the state directory; where that fails the store says why.
    """
    folder = state_dir(environ)
    if folder is None:
        return Store(None, None, "there is no state directory: set TURNGATE_STATE_DIR or HOME")
    try:
        database = open_database(folder)
    except StoreError as error:
        return Store(None, None, str(error))
    return Store(Ledger(database), TurnCounts(database))


def log_failure(error: BaseException, data: bytes, environ: Mapping[str, str], clock: Clock) -> bytes:
    """
    Write an internal error into the ledger, and give the line that names it.
    """
    try:
        event = read_event(data, environ)
    except BadEvent:
        event = _unread(environ)
    detail = f"internal error: {type(error).__name__}: {error}"
    return _without_gate(event, "pass_internal_error", detail, environ, clock).stderr


def _unread(environ: Mapping[str, str]) -> Event:
    return Event("unknown", project=environ.get("CLAUDE_PROJECT_DIR", ""))


def _without_gate(event: Event, outcome: Outcome, detail: str, environ: Mapping[str, str], clock: Clock) -> Answer:
    line = _one_line(detail)
    ledger = open_store(trusted(environ, event.project_folders).environ).ledger
    if ledger is not None:
        reply = Reply(outcome, detail=line)
        record(ledger, decision_line(event, reply, clock.now, "", clock.elapsed() * 1000))
    return Answer(b"", _told(line))


def _one_line(*texts: str) -> str:
    """
    Give the texts as one masked line, empty where there are none.
    """
    if not texts:
        return ""
    from ..rubric.masking import clean, mask

    return " ".join(mask(clean(" | ".join(texts))).split())[:LINE_LIMIT]


def _told(line: str) -> bytes:
    return f"turngate: {line}\n".encode("utf-8", "replace") if line else b""


def _asking(
    event: Event,
    settings: JudgeSettings,
    safe: Trusted,
    store: Store,
    started_at: datetime,
    decision_id: str,
    deadline_at: float,
) -> Ask:
    """
    Give the judge that the settings name; nothing of it is imported before there is a question.
    """

    def ask(turn: Turn) -> Judgement:
        from ..judge import judgement
        from ..judge.connect import NoJudge

        # A proxy or a certificate is read by libraries, from the process's own environment.
        for name in safe.taken:
            os.environ.pop(name, None)
        judge = _judge(event, settings, safe.environ, store, decision_id, deadline_at)
        if isinstance(judge, NoJudge):
            return judgement.Judgement("no_judge", detail=judge.reason)

        from ..judge.sharing import shared

        stop = _stop_id(event, turn)
        return shared(judge, stop, store.ledger, started_at=started_at, deadline_at=deadline_at)(turn)

    return ask


def _judge(
    event: Event,
    settings: JudgeSettings,
    environ: Mapping[str, str],
    store: Store,
    decision_id: str,
    deadline_at: float,
) -> Ask | NoJudge:
    from pathlib import Path

    from ..judge.connect import connect
    from ..judge.context import CallContext

    config, state = config_dir(environ), state_dir(environ)
    context = CallContext(decision_id, event.session_id, event.project, event.name, event.agent_id, event.prompt_id)
    return connect(
        settings._replace(rubric_folder=Path(config, "rubrics") if config else None),
        environ,
        store.ledger,
        context,
        deadline_at=deadline_at,
        scripted=Path(state, "scripted.jsonl") if state else None,
        prices_folder=Path(config) if config else None,
    )


def _stop_id(event: Event, turn: Turn) -> str:
    """
    Name the stop: two hooks of one stop name it alike, and the next stop of the turn is another.
    """
    import hashlib

    parts = (event.session_id, event.agent_id, event.prompt_id, turn.request, turn.reply, *turn.facts.holds)
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()


@contextmanager
def _given_up_after(seconds: float) -> Generator[None]:
    """
    End the process, with nothing said, where the block does not end in time: a library that hangs must not trap the turn.
    """
    from threading import Timer

    timer = Timer(max(seconds, 0.1), os._exit, (0,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
