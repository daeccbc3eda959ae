"""
One stop that a hook relayed: decided in the service by what came with it, and by nothing of the service's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final, Protocol

from .answering import (
    Answer,
    Clock,
    answer_question,
    clock_since,
    passed_without_gate,
    read_question,
    unread_event,
)
from .events import STOP_EVENTS, BadEvent
from .gate import Store
from .places import state_dir
from .relay import RELAYED
from .settings import BadSetting, Settings, read_settings
from .trust import trusted

if TYPE_CHECKING:
    from ..judge.connect import Judge
    from ..judge.judgement import Judgement
    from ..judge.service.app import HookReply, Relayed
    from ..rubric.turn import Turn

LISTENING_S: Final = 0.3
"""After the deadline, until a hold is too late: the relay gives up a little later."""


class Keeper(Protocol):
    """
    What outlives a stop: the stores and the judges.
    """

    def store(self, folder: str, url: str) -> Store:
        """
        Give the gate's memory.
        """
        ...

    def ask(self, judge: Judge, turn: Turn, stop: str, *, started_at: datetime) -> Judgement:
        """
        Ask, once for all who ask about one stop at once.
        """
        ...


def answer_relayed(relayed: Relayed, folder: str, keeper: Keeper) -> HookReply:
    """
    Decide about the stop, or say what the relay has to do instead. `folder` is the service's state directory.
    """
    from ..judge.service.app import HookReply

    clock = clock_since(relayed.started_at)
    try:
        question = read_question(relayed.body, relayed.environ)
    except BadEvent as error:
        return _not_asked(relayed, folder, keeper, clock, str(error))
    if not _is_same(state_dir(question.safe.environ), folder):
        return HookReply(421)
    try:
        reading = read_settings(question.safe.environ, project_folders=question.event.project_folders)
    except BadSetting as error:
        store = keeper.store(folder, "")
        return _reply(
            passed_without_gate(question.event, "pass_internal_error", str(error), store, clock, relayed.decision_id)
        )
    if question.event.name in STOP_EVENTS:
        lacking = _lacking(relayed, reading.settings)
        if lacking:
            return lacking
    heard_until = clock.monotonic + reading.settings.judge.deadline_s + LISTENING_S
    desk = _ServiceDesk(relayed, folder, keeper, heard_until)
    return _reply(answer_question(question, reading, clock, desk, decision_id=relayed.decision_id))


def failed_relayed(relayed: Relayed, folder: str, keeper: Keeper, error: BaseException) -> HookReply:
    """
    Let the turn end after a fault of ours, and write it down.
    """
    clock = clock_since(relayed.started_at)
    event = unread_event(relayed.environ)
    with suppress(BadEvent):
        event = read_question(relayed.body, relayed.environ).event
    detail = f"internal error: {type(error).__name__}: {error}"
    return _reply(
        passed_without_gate(event, "pass_internal_error", detail, keeper.store(folder, ""), clock, relayed.decision_id)
    )


def _not_asked(relayed: Relayed, folder: str, keeper: Keeper, clock: Clock, detail: str) -> HookReply:
    from ..judge.service.app import HookReply

    event = unread_event(relayed.environ)
    if not _is_same(state_dir(trusted(relayed.environ, event.project_folders).environ), folder):
        return HookReply(421)
    return _reply(
        passed_without_gate(event, "pass_not_a_turn", detail, keeper.store(folder, ""), clock, relayed.decision_id)
    )


def _lacking(relayed: Relayed, settings: Settings) -> HookReply | None:
    """
    Say what the relay could not know: the variable of the key, and the deadline, both of which the user's file may name.
    """
    from ..judge.service.app import HookReply

    name, deadline_s = settings.judge.api_key_env, settings.judge.deadline_s
    known = name.startswith("TURNGATE_") or name.encode() in RELAYED or name in relayed.environ or name in relayed.unset
    is_agreed = abs(relayed.deadline_s - deadline_s) < 0.001
    if known and is_agreed:
        return None
    return HookReply(428, needs=() if known else (name,), deadline_s=None if is_agreed else deadline_s)


def _is_same(asked: str | None, folder: str) -> bool:
    if asked == folder:
        return True
    try:
        return asked is not None and os.path.samefile(asked, folder)  # noqa: PTH121
    except (OSError, ValueError):
        return False


def _reply(answer: Answer) -> HookReply:
    from ..judge.service.app import HookReply

    return HookReply(200, answer.stdout, answer.stderr.decode().rstrip())


class _ServiceDesk:
    def __init__(self, relayed: Relayed, folder: str, keeper: Keeper, heard_until: float) -> None:
        self._relayed: Final = relayed
        self._folder: Final = folder
        self._keeper: Final = keeper
        self._heard_until: Final = heard_until

    def open_store(self, environ: Mapping[str, str], url: str) -> Store:  # noqa: ARG002
        return self._keeper.store(self._folder, url)

    def ask(self, judge: Judge, turn: Turn, stop: str, *, started_at: datetime) -> Judgement:
        return self._keeper.ask(judge, turn, stop, started_at=started_at)

    def is_heard(self) -> bool:
        return self._relayed.is_connected() and time.monotonic() < self._heard_until
