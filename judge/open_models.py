"""
Models that stay open between judgements, as a service keeps them: connections and imports are paid for once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from .asking import CLOSING_S, judge_turn, not_opened
from .asking_remotely import open_remote
from .bounded_loop import before, in_thread
from .connect import Judge, Target, open_model
from .judgement import Judgement

if TYPE_CHECKING:
    from ..rubric.turn import Turn
    from .models.base import Model
    from .remote import RemoteJudge

MOST_OPEN: Final = 8
"""Each has a pool of connections; whoever uses more endpoints or keys at once opens some of them again."""

WRITING_S: Final = 2.0


class _Kind(NamedTuple):
    target: Target
    max_tokens: int
    effort: str


class OpenModels:
    """
    Judges turns in one event loop, with models that are opened once for each endpoint and key. Each try runs inside `in_flight`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        in_flight: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        self._loop: Final = loop
        self._in_flight: Final = in_flight
        self._open: Final[dict[_Kind, asyncio.Task[Model | RemoteJudge]]] = {}
        self._users: Final[dict[_Kind, int]] = {}

    def ask(self, judge: Judge, turn: Turn) -> Judgement:
        """
        Judge a turn for another thread, which waits until the judge's deadline and a little longer.
        """
        asked = asyncio.run_coroutine_threadsafe(self.judge(judge, turn), self._loop)
        try:
            # Past the deadline there is still the line of the last try to write.
            return asked.result(judge.deadline_at - time.monotonic() + WRITING_S)
        except TimeoutError:
            asked.cancel()
            return Judgement("timeout", detail="no answer before the deadline")
        except CancelledError:  # the loop was ended under it
            return Judgement("error", detail="the service ended")

    async def judge(self, judge: Judge, turn: Turn) -> Judgement:
        """
        Judge a turn. Raises nothing for what a model, a network or an endpoint does.
        """
        kind = _Kind(judge.target, judge.settings.max_tokens, judge.settings.effort)
        self._users[kind] = self._users.get(kind, 0) + 1
        try:
            return await self._judged(kind, judge, turn)
        finally:
            if kind in self._users:  # not closed meanwhile, at the service's end
                self._users[kind] -= 1
            await self._close_spare()

    async def _judged(self, kind: _Kind, judge: Judge, turn: Turn) -> Judgement:
        asking = judge.asking()._replace(in_flight=self._in_flight)
        opening = self._opening(kind, judge)
        try:
            opened = await before(judge.deadline_at, asyncio.shield(opening))
        except Exception as error:  # importing an SDK runs other people's code
            # One that goes on is for the next stop.
            if opening.done():
                self._open.pop(kind, None)
            return not_opened(asking, error)
        if judge.target.backend == "remote":
            held_back = await in_thread(judge.held_back)
            return held_back or await cast("RemoteJudge", opened).judge(turn, deadline_at=judge.deadline_at)
        return await judge_turn(turn, cast("Model", opened), asking, deadline_at=judge.deadline_at)

    async def close(self) -> None:
        """
        Close all models.
        """
        for kind in list(self._open):
            await self._close(kind)

    def _opening(self, kind: _Kind, judge: Judge) -> asyncio.Task[Model | RemoteJudge]:
        opening = self._open.pop(kind, None)
        if opening is None:
            opening = self._loop.create_task(in_thread(lambda: _open(judge)))
        self._open[kind] = opening  # the latest used stands last
        return opening

    async def _close_spare(self) -> None:
        idle = [kind for kind in self._open if not self._users.get(kind)]
        for kind in idle[: max(0, len(self._open) - MOST_OPEN)]:
            await self._close(kind)

    async def _close(self, kind: _Kind) -> None:
        self._users.pop(kind, None)
        opening = self._open.pop(kind)
        with contextlib.suppress(Exception):  # nothing in closing may take an answer away
            model = await before(time.monotonic() + CLOSING_S, opening)
            await before(time.monotonic() + CLOSING_S, model.close())


def _open(judge: Judge) -> Model | RemoteJudge:
    if judge.target.backend == "remote":
        return open_remote(judge.target)
    return open_model(judge.target, judge.settings, judge.ledger)
