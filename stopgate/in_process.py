"""
One event answered in this very process: settings, store and judge are put together around the gate.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from ..costing.database import StoreError, open_database
from ..costing.ledger import Ledger
from ..costing.outcomes import Outcome
from ..costing.stamps import new_id
from ..judge.settings import JudgeSettings
from .events import BadEvent, Event, read_event
from .gate import HELD_BY_ANOTHER, Reply, Store, decide, decision_line, record
from .places import config_dir, state_dir
from .protocol import answer, style_for
from .settings import BadSetting, read_settings
from .trust import Trusted, trusted
from .turn_count import TurnCounts

if TYPE_CHECKING:
    from ..judge.connect import Judge, NoJudge
    from ..judge.judgement import Judgement
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
        with _given_up_after(JudgeSettings().deadline_s + GRACE_S - clock.elapsed(), event, safe.environ, clock):
            reading = read_settings(safe.environ, project_folders=event.project_folders)
    except BadSetting as error:
        return _without_gate(event, "pass_internal_error", str(error), environ, clock)

    decision_id = new_id(clock.now)
    deadline_at = clock.monotonic + reading.settings.judge.deadline_s
    with _given_up_after(deadline_at + GRACE_S - time.monotonic(), event, safe.environ, clock):
        store = open_store(safe.environ)
        asking = _Asking(event, reading.settings.judge, safe, store, clock, decision_id)
        reply = decide(
            event,
            now=clock.now,
            store=store,
            ask=asking.ask,
            settings=reading.settings,
            held_back=asking.held_back,
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


def open_store(environ: Mapping[str, str], *, busy_timeout_s: float = 1.0) -> Store:
    """
    Open the gate's memory in the state directory; where that fails the store says why.
    """
    folder = state_dir(environ)
    if folder is None:
        return Store(None, None, "there is no state directory: set TURNGATE_STATE_DIR or HOME")
    try:
        database = open_database(folder, busy_timeout_s=busy_timeout_s)
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


class _Asking:
    """
    The judge that the settings name; nothing of it is imported before there is a question.
    """

    def __init__(
        self,
        event: Event,
        settings: JudgeSettings,
        safe: Trusted,
        store: Store,
        clock: Clock,
        decision_id: str,
    ) -> None:
        self._event: Final = event
        self._settings: Final = settings
        self._safe: Final = safe
        self._store: Final = store
        self._clock: Final = clock
        self._decision_id: Final = decision_id
        self._deadline_at: Final = clock.monotonic + settings.deadline_s

    def held_back(self) -> Judgement | None:
        """
        Say why nobody can be asked now; None where somebody can.
        """
        from ..judge.connect import NoJudge
        from ..judge.judgement import Judgement

        if isinstance(self._judge, NoJudge):
            return Judgement("no_judge", detail=self._judge.reason)
        return self._judge.held_back()

    def ask(self, turn: Turn) -> Judgement:
        """
        Ask; two hooks of one stop share one call.
        """
        from ..judge.connect import NoJudge
        from ..judge.judgement import Judgement
        from ..judge.sharing import shared

        if isinstance(self._judge, NoJudge):
            return Judgement("no_judge", detail=self._judge.reason)
        # A proxy or a certificate is read by libraries, from the process's own environment.
        for name in self._safe.taken:
            os.environ.pop(name, None)
        stop = _stop_id(self._event, turn)
        return shared(self._judge, stop, self._store.ledger, started_at=self._clock.now, deadline_at=self._deadline_at)(
            turn
        )

    @cached_property
    def _judge(self) -> Judge | NoJudge:
        from pathlib import Path

        from ..judge.connect import connect
        from ..judge.context import CallContext

        event, environ = self._event, self._safe.environ
        config, state = config_dir(environ), state_dir(environ)
        return connect(
            self._settings._replace(rubric_folder=Path(config, "rubrics") if config else None),
            environ,
            self._store.ledger,
            CallContext(self._decision_id, event.session_id, event.project, event.name, event.agent_id),
            deadline_at=self._deadline_at,
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
def _given_up_after(seconds: float, event: Event, environ: Mapping[str, str], clock: Clock) -> Generator[None]:
    """
    End the process, with nothing said, where the block does not end in time: a library that hangs must not trap the turn.
    """
    from threading import Timer

    timer = Timer(max(seconds, 0.1), _give_up, (event, environ, clock))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _give_up(event: Event, environ: Mapping[str, str], clock: Clock) -> None:
    try:
        ledger = open_store(environ, busy_timeout_s=0.2).ledger
        if ledger is not None:
            reply = Reply("pass_judge_timeout", detail="gave up: the gate itself did not end in time")
            record(ledger, decision_line(event, reply, clock.now, "", clock.elapsed() * 1000))
    finally:
        os._exit(0)
