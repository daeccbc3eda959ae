"""
Asking: render the turn, ask the model, read the verdict, price it, write it down; all before one deadline.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..rubric.render import CeilingTooLow, render
from .bounded_loop import DeadlinePassed, before, in_thread, run
from .clock import utc_now
from .context import CallContext
from .errors import FieldsRefused, JudgeError
from .held_back import held_back
from .judgement import Ask, Judgement
from .settings import JudgeSettings
from .trying import Answer, Tries

if TYPE_CHECKING:
    from ..rubric.library import Rubric
    from ..rubric.render import Request
    from ..rubric.turn import Turn
    from .models.base import Model
    from .quiet_ledger import QuietLedger

CACHE_LIFETIME = timedelta(minutes=5)
"""How long the vendor keeps what was written to the prompt cache."""

CLOSING_S = 0.1


class Asking(NamedTuple):
    """
    All about a judgement that is not the turn, the model or the time it may take.
    """

    rubric: Rubric
    settings: JudgeSettings
    backend: str
    endpoint: str
    """As the ledger names it: host, port and path."""
    model: str
    ledger: QuietLedger
    """One for each judgement."""
    context: CallContext = CallContext()
    prices_folder: Path | None = None
    """Where a user's own prices lie."""
    clock: Callable[[], datetime] = utc_now
    in_flight: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    """Each try runs inside one."""
    tag: str | None = None
    """What fences the parts of the turn; a random one where it is None."""


def ask_with(open_model: Callable[[], Model], asking: Asking, *, deadline_at: float) -> Ask:
    """
    Give a judge that works in this process and returns by `deadline_at`, on `time.monotonic`'s clock.

    `open_model` is called in a thread: the first time it imports an SDK.
    """

    def ask(turn: Turn) -> Judgement:
        return _held_back(asking) or run(_open_and_judge(turn, open_model, asking, deadline_at))

    return ask


async def judge_turn(
    turn: Turn, model: Model, asking: Asking, *, deadline_at: float, may_be_held_back: bool = True
) -> Judgement:
    """
    Judge one turn with a model that is open already, as a service has it.

    Raises nothing for what a model, a network or an endpoint does. Neither budget nor breaker counts where it may not be held back.
    """
    held_back = await in_thread(lambda: _held_back(asking)) if may_be_held_back else None
    return held_back or await _judge(turn, model, asking, deadline_at)


async def _open_and_judge(turn: Turn, open_model: Callable[[], Model], asking: Asking, deadline_at: float) -> Judgement:
    try:
        model = await before(deadline_at, in_thread(open_model))
    except Exception as error:  # importing an SDK runs other people's code
        return not_opened(asking, error)

    judgement = await _judge(turn, model, asking, deadline_at)
    with contextlib.suppress(Exception):  # the answer is there: nothing in closing may take it away
        await before(time.monotonic() + CLOSING_S, model.close())
    return judgement


def not_opened(asking: Asking, error: Exception) -> Judgement:
    """
    Give the judgement of a model that could not be opened.
    """
    if isinstance(error, DeadlinePassed):
        return _judgement(asking, Answer("timeout", detail="the deadline passed before the model could be asked"))
    return _judgement(asking, Answer("error", detail=" ".join(str(error).split())[:200]))


async def _judge(turn: Turn, model: Model, asking: Asking, deadline_at: float) -> Judgement:
    try:
        ready = await in_thread(lambda: _prepare(turn, asking))
    except CeilingTooLow as error:
        return Judgement("no_judge", None, f"judge.{error}", asking.rubric.label, asking.rubric.hash)
    tries = Tries(model, ready.request, asking, cached=ready.cached, deadline_at=deadline_at)
    answer = await _answer(tries, asking, ready.refused)
    return _judgement(asking, answer, tuple(tries.calls))


class _Ready(NamedTuple):
    request: Request
    cached: bool
    refused: frozenset[str]
    """The fields that the endpoint is known to turn away."""


def _prepare(turn: Turn, asking: Asking) -> _Ready:
    request = render(asking.rubric, turn, max_input_tokens=asking.settings.max_input_tokens, tag=asking.tag)
    return _Ready(request, _is_cached(asking), _refused_fields(asking))


async def _answer(tries: Tries, asking: Asking, known: frozenset[str]) -> Answer:
    """
    Ask, each time without the fields that the endpoint turned away; what it refused is remembered once it answers.
    """
    without = known
    while True:
        try:
            answer = await tries.answer(without)
        except FieldsRefused as error:
            without |= error.fields
        except DeadlinePassed:
            return Answer("timeout", detail="no answer before the deadline")
        except JudgeError as error:
            return Answer("error", detail=error.detail)
        else:
            break

    new = without - known
    if new:
        await in_thread(lambda: _remember_refused(asking, new))
    return answer


def _refused_fields(asking: Asking) -> frozenset[str]:
    where, now = (asking.endpoint, asking.model), asking.clock()
    return asking.ledger.attempt(lambda found: frozenset(found.refused_fields(*where, now=now)), otherwise=frozenset())


def _remember_refused(asking: Asking, fields: frozenset[str]) -> None:
    where, at = (asking.endpoint, asking.model), asking.clock()
    asking.ledger.attempt(lambda found: found.remember_refused_fields(*where, fields, at=at), otherwise=None)


def _held_back(asking: Asking) -> Judgement | None:
    return held_back(
        asking.settings,
        asking.rubric,
        asking.ledger,
        endpoint=asking.endpoint,
        session_id=asking.context.session_id,
        now=asking.clock(),
    )


def _is_cached(asking: Asking) -> bool:
    # Writing the cache costs a quarter more than plain input, and pays only when somebody reads it in time.
    if asking.settings.cache != "auto":
        return asking.settings.cache == "on"

    where = (asking.rubric.hash, asking.model, asking.endpoint)
    last = asking.ledger.attempt(lambda found: found.last_call_at(*where), otherwise=None)
    return last is not None and timedelta() <= asking.clock() - last < CACHE_LIFETIME


def _judgement(asking: Asking, answer: Answer, calls: tuple[str, ...] = ()) -> Judgement:
    return Judgement(answer.outcome, answer.verdict, answer.detail, asking.rubric.label, asking.rubric.hash, calls)
