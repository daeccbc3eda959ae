"""
One event answered: trust, settings, store and judge are put together around the gate, whoever runs it.

What differs between a hook's own process and a service is a `Desk`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ..costing.outcomes import Outcome
from ..costing.stamps import new_id
from .events import BadEvent, Event, read_event
from .gate import HELD_BY_ANOTHER, UNHEARD, Reply, Store, decide, decision_line, record
from .once import once
from .pausing import pause_for
from .places import config_dir, state_dir
from .protocol import answer, style_for, tool_answer
from .settings import Reading
from .tool_call import TOOL_EVENT, ToolReply, decide_tool_call
from .trust import Trusted, trusted

if TYPE_CHECKING:
    from ..judge.connect import Judge, NoJudge
    from ..judge.judgement import Judgement
    from ..rubric.turn import Turn

LINE_LIMIT: Final = 500

SESSION_START: Final = "SessionStart"
"""Relayed so that the service is there before the first stop; nothing is decided, and nothing logged."""


class Answer(NamedTuple):
    """
    What the hook writes: nothing or one JSON object, and at most one line for the client's debug log.
    """

    stdout: bytes = b""
    line: str = ""
    """Masked, without its end; empty where there is nothing to say."""

    @property
    def stderr(self) -> bytes:
        """
        The line as it is written to standard error.
        """
        return f"turngate: {self.line}\n".encode("utf-8", "replace") if self.line else b""


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


class Desk(Protocol):
    """
    Where stops are decided: a hook's own process, or a service.
    """

    def open_store(self, environ: Mapping[str, str], url: str) -> Store:
        """
        Give the gate's memory, which may say why there is none.
        """
        ...

    def ask(self, judge: Judge, turn: Turn, stop: str, *, started_at: datetime) -> Judgement:
        """
        Ask a judge; of all who ask about one `stop` at once, one makes the call.
        """
        ...

    def is_heard(self) -> bool:
        """
        Say whether somebody still waits for the answer.
        """
        ...


class Question(NamedTuple):
    """
    An event, and what of its environment can be trusted.
    """

    event: Event
    safe: Trusted


def read_question(data: bytes, environ: Mapping[str, str]) -> Question:
    """
    Read the bytes of standard input, as the client sent them. Raises `BadEvent`.
    """
    event = read_event(data, environ)
    return Question(event, trusted(environ, event.project_folders))


def answer_question(question: Question, reading: Reading, clock: Clock, desk: Desk, *, decision_id: str = "") -> Answer:
    """
    Decide about the event, and put the reply into the client's words.
    """
    event, safe = question
    if event.name == SESSION_START:
        return Answer(b"", one_line(*safe.notices, *reading.notices))
    decision_id = decision_id or new_id(clock.now)
    store = desk.open_store(safe.environ, reading.settings.ledger_url)
    if event.name == TOOL_EVENT:
        return _answer_tool_call(question, reading, clock, store, decision_id, desk.is_heard)
    asking = _Asking(question, reading, store, clock, decision_id, desk)
    reply = decide(
        event,
        now=clock.now,
        store=store,
        ask=asking.ask,
        settings=reading.settings,
        held_back=asking.held_back,
        decision_id=decision_id,
        elapsed=clock.elapsed,
        is_heard=desk.is_heard,
        paused=pause_for(event, state_dir(safe.environ), clock.now),
    )
    style = style_for(reading.settings.gate_style, reply.client_version)
    is_trouble = reply.outcome == "pass_state_error" and reply.detail != HELD_BY_ANOTHER
    troubles = (reply.detail,) if is_trouble else ()
    return Answer(
        answer(event_name=event.name, reason=reply.reason, message=reply.message, style=style),
        one_line(*safe.notices, *reading.notices, *troubles),
    )


def _answer_tool_call(
    question: Question,
    reading: Reading,
    clock: Clock,
    store: Store,
    decision_id: str,
    is_heard: Callable[[], bool],
) -> Answer:
    event, safe = question
    pause = pause_for(event, state_dir(safe.environ), clock.now)
    reply = ToolReply("pass_off", f"paused: {pause.in_words}") if pause else decide_tool_call(event, reading.settings)
    if reply.permission and not is_heard():
        reply = ToolReply("pass_service_error", UNHEARD)
    if store.ledger is not None:
        logged = Reply(reply.outcome, detail=reply.detail)
        record(store.ledger, decision_line(event, logged, clock.now, decision_id, clock.elapsed() * 1000))
    return Answer(
        tool_answer(event_name=event.name, permission=reply.permission, reason=reply.reason),
        one_line(*safe.notices, *reading.notices),
    )


def passed_without_gate(
    event: Event, outcome: Outcome, detail: str, store: Store, clock: Clock, decision_id: str = ""
) -> Answer:
    """
    Let the turn end where the gate could not be asked, and log why.
    """
    line = one_line(detail)
    if store.ledger is not None:
        reply = Reply(outcome, detail=line)
        record(store.ledger, decision_line(event, reply, clock.now, decision_id, clock.elapsed() * 1000))
    return Answer(b"", line)


def known_question(data: bytes, environ: Mapping[str, str]) -> Question:
    """
    Give what is known about an event, which may be one that cannot be read.
    """
    try:
        return read_question(data, environ)
    except BadEvent:
        event = unread_event(environ)
        return Question(event, trusted(environ, event.project_folders))


def unread_event(environ: Mapping[str, str]) -> Event:
    """
    Give the event that stands for one that cannot be read.
    """
    return Event("unknown", project=environ.get("CLAUDE_PROJECT_DIR", ""))


def one_line(*texts: str) -> str:
    """
    Give the texts as one masked line, empty where there are none.
    """
    if not texts:
        return ""
    from ..rubric.masking import clean, mask

    return " ".join(mask(clean(" | ".join(texts))).split())[:LINE_LIMIT]


class _Asking:
    """
    The judge that the settings name; nothing of it is imported before there is a question.
    """

    def __init__(
        self, question: Question, reading: Reading, store: Store, clock: Clock, decision_id: str, desk: Desk
    ) -> None:
        self._event: Final = question.event
        self._environ: Final = question.safe.environ
        self._settings: Final = reading.settings.judge
        self._store: Final = store
        self._clock: Final = clock
        self._decision_id: Final = decision_id
        self._desk: Final = desk

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

        if isinstance(self._judge, NoJudge):
            return Judgement("no_judge", detail=self._judge.reason)
        return self._desk.ask(self._judge, turn, _stop_id(self._event, turn), started_at=self._clock.now)

    @once
    def _judge(self) -> Judge | NoJudge:
        from pathlib import Path

        from ..judge.connect import connect
        from ..judge.context import CallContext

        event, environ = self._event, self._environ
        config, state = config_dir(environ), state_dir(environ)
        return connect(
            self._settings._replace(rubric_folder=Path(config, "rubrics") if config else None),
            environ,
            self._store.ledger,
            CallContext(self._decision_id, event.session_id, event.project, event.name, event.agent_id),
            deadline_at=self._clock.monotonic + self._settings.deadline_s,
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
