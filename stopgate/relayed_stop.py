"""
One stop that a hook relayed: decided in the service by what came with it, and by nothing of the service's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from ..costing.outcomes import Outcome
from ..judge.choosing import needed_variables
from ..judge.service.app import HookReply, RelayedEvent
from .answering import Answer, Question, answer_question, clock_since, known_question, passed_without_gate
from .events import STOP_EVENTS, BadEvent, read_event
from .gate import Store
from .places import state_dir
from .relay import RELAYED
from .settings import BadSetting, Settings, ledger_url, read_settings

if TYPE_CHECKING:
    from ..judge.connect import Judge
    from ..judge.judgement import Judgement
    from ..rubric.turn import Turn

LISTENING_S: Final = 0.3
"""After the deadline, until a hold is too late: the relay gives up a little later."""


class Keeper(Protocol):
    """
    What outlives a stop: the stores and the judges.
    """

    def store(self, url: str) -> Store:
        """
        Give the gate's memory: the ledger of this address, else that in the state directory.
        """
        ...

    def ask(self, judge: Judge, turn: Turn, stop: str, *, started_at: datetime) -> Judgement:
        """
        Ask, once for all who ask about one stop at once.
        """
        ...


def answer_relayed(relayed: RelayedEvent, folder: str, keeper: Keeper) -> HookReply:
    """
    Decide about the stop, or say what the relay has to do instead. `folder` is the service's state directory.
    """
    question = known_question(relayed.body, relayed.environ)
    if not _is_same(state_dir(question.safe.environ), folder):
        return HookReply(421)
    try:
        read_event(relayed.body, relayed.environ)
        reading = read_settings(question.safe.environ, project_folders=question.event.project_folders)
    except BadEvent as error:
        return _passed(relayed, question, keeper, "pass_not_a_turn", str(error))
    except BadSetting as error:
        return _passed(relayed, question, keeper, "pass_internal_error", str(error))

    if question.event.name in STOP_EVENTS:
        lacking = _lacking(relayed, reading.settings)
        if lacking:
            return lacking
    clock = clock_since(relayed.started_at)
    heard_until = clock.monotonic + reading.settings.judge.deadline_s + LISTENING_S
    desk = _ServiceDesk(relayed, keeper, heard_until)
    return _reply(answer_question(question, reading, clock, desk, decision_id=relayed.decision_id))


def failed_relayed(relayed: RelayedEvent, keeper: Keeper, error: BaseException) -> HookReply:
    """
    Let the turn end after a fault of ours, and write it down.
    """
    question = known_question(relayed.body, relayed.environ)
    return _passed(relayed, question, keeper, "pass_internal_error", f"internal error: {type(error).__name__}: {error}")


def _passed(relayed: RelayedEvent, question: Question, keeper: Keeper, outcome: Outcome, detail: str) -> HookReply:
    clock, store = clock_since(relayed.started_at), keeper.store(ledger_url(question.safe.environ))
    return _reply(passed_without_gate(question.event, outcome, detail, store, clock, relayed.decision_id))


def _lacking(relayed: RelayedEvent, settings: Settings) -> HookReply | None:
    """
    Say what the relay could not know: the variables that the judge takes, and the deadline; the user's file may name both.
    """
    deadline_s = settings.judge.deadline_s
    needs = [name for name in needed_variables(settings.judge, relayed.environ) if not _is_known(name, relayed)]
    is_agreed = abs(relayed.deadline_s - deadline_s) < 0.001
    if is_agreed and not needs:
        return None
    return HookReply(428, needs=tuple(needs), deadline_s=None if is_agreed else deadline_s)


def _is_known(name: str, relayed: RelayedEvent) -> bool:
    is_relayed = name.startswith("TURNGATE_") or name.encode() in RELAYED
    return is_relayed or name in relayed.environ or name in relayed.unset


def _is_same(asked: str | None, folder: str) -> bool:
    if asked == folder:
        return True
    try:
        return asked is not None and os.path.samefile(asked, folder)  # noqa: PTH121
    except (OSError, ValueError):
        return False


def _reply(answer: Answer) -> HookReply:
    return HookReply(200, answer.stdout, answer.stderr.decode().rstrip())


class _ServiceDesk:
    def __init__(self, relayed: RelayedEvent, keeper: Keeper, heard_until: float) -> None:
        self._relayed: Final = relayed
        self._keeper: Final = keeper
        self._heard_until: Final = heard_until

    def open_store(self, environ: Mapping[str, str], url: str) -> Store:  # noqa: ARG002
        return self._keeper.store(url)

    def ask(self, judge: Judge, turn: Turn, stop: str, *, started_at: datetime) -> Judgement:
        return self._keeper.ask(judge, turn, stop, started_at=started_at)

    def is_heard(self) -> bool:
        return self._relayed.is_connected() and time.monotonic() < self._heard_until
