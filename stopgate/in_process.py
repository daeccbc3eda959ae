"""
One event answered in this very process, which ends soon after: where no service answers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ..costing.ledger import Ledger
from ..costing.opening import open_ledger_store
from ..costing.outcomes import Outcome
from ..costing.store import StoreError
from ..judge.settings import JudgeSettings
from .answering import (
    Answer,
    Clock,
    Question,
    answer_question,
    known_question,
    passed_without_gate,
    read_question,
)
from .events import BadEvent
from .gate import Reply, Store, decision_line, record
from .places import state_dir
from .settings import BadSetting, ledger_url, read_settings
from .turn_count import TurnCounts

if TYPE_CHECKING:
    from ..judge.connect import Judge
    from ..judge.judgement import Judgement
    from ..rubric.turn import Turn

GRACE_S: Final = 4.0
"""
After the judge's deadline, until the process gives up by itself: time for a store that others lock. Both together stay below the hook's
own timeout.
"""


def answer_event(data: bytes, environ: Mapping[str, str], clock: Clock) -> Answer:
    """
    Answer one event: the bytes of standard input, as the client sent them.
    """
    first_s = JudgeSettings().deadline_s + GRACE_S - clock.elapsed()
    try:
        with _given_up_after(first_s, None, clock):
            question = read_question(data, environ)
        event, safe = question
        _forget(safe.taken)
        with _given_up_after(first_s, question, clock):
            reading = read_settings(safe.environ, project_folders=event.project_folders)
    except BadEvent as error:
        return log_outcome("pass_not_a_turn", str(error), data, environ, clock)
    except BadSetting as error:
        return log_outcome("pass_internal_error", str(error), data, environ, clock)

    deadline_at = clock.monotonic + reading.settings.judge.deadline_s
    with _given_up_after(deadline_at + GRACE_S - time.monotonic(), question, clock):
        return answer_question(question, reading, clock, _ThisProcess())


def open_store(environ: Mapping[str, str], url: str, *, busy_timeout_s: float = 1.0) -> Store:
    """
    Open the gate's memory: the ledger of this address, else that in the state directory. Where that fails the store says why.
    """
    folder = state_dir(environ)
    if folder is None:
        return Store(None, None, "there is no state directory: set TURNGATE_STATE_DIR or HOME")
    try:
        database = open_ledger_store(folder, url, busy_timeout_s=busy_timeout_s)
    except StoreError as error:
        return Store(None, None, str(error))
    return Store(Ledger(database), TurnCounts(database))


def log_failure(error: BaseException, data: bytes, environ: Mapping[str, str], clock: Clock) -> bytes:
    """
    Write an internal error into the ledger, and give the line that names it.
    """
    detail = f"internal error: {type(error).__name__}: {error}"
    return log_outcome("pass_internal_error", detail, data, environ, clock).stderr


def log_outcome(
    outcome: Outcome, detail: str, data: bytes, environ: Mapping[str, str], clock: Clock, decision_id: str = ""
) -> Answer:
    """
    Let the turn end without the gate, and write down why.
    """
    event, safe = known_question(data, environ)
    _forget(safe.taken)
    store = open_store(safe.environ, ledger_url(safe.environ))
    return passed_without_gate(event, outcome, detail, store, clock, decision_id)


def _forget(taken: frozenset[str]) -> None:
    """
    Take the variables out of this process too: libraries read proxies, certificates and the addresses of databases by themselves.
    """
    for name in taken:
        os.environ.pop(name, None)


class _ThisProcess:
    """
    The desk of a process that answers one event.
    """

    def open_store(self, environ: Mapping[str, str], url: str) -> Store:
        return open_store(environ, url)

    def ask(self, judge: Judge, turn: Turn, stop: str, *, started_at: datetime) -> Judgement:
        from ..judge.sharing import shared

        return shared(judge, stop, judge.ledger, started_at=started_at, deadline_at=judge.deadline_at)(turn)

    def is_heard(self) -> bool:
        return True


@contextmanager
def _given_up_after(seconds: float, question: Question | None, clock: Clock) -> Generator[None]:
    """
    End the process, with nothing said, where the block does not end in time: a library that hangs must not trap the turn.
    """
    from threading import Timer

    timer = Timer(max(seconds, 0.1), _give_up, (question, clock))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _give_up(question: Question | None, clock: Clock) -> None:
    try:
        if question is None:
            return
        environ = question.safe.environ
        ledger = open_store(environ, ledger_url(environ), busy_timeout_s=0.2).ledger
        if ledger is not None:
            reply = Reply("pass_judge_timeout", detail="gave up: the gate itself did not end in time")
            record(ledger, decision_line(question.event, reply, clock.now, "", clock.elapsed() * 1000))
    finally:
        os._exit(0)
