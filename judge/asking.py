"""
Asking: render the turn, ask the model, read the verdict, price it, write it down; all before one deadline.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..rubric.render import CeilingTooLow, render
from .bounded_loop import DeadlinePassed, before, in_thread, run
from .breaker import LOOK_BACK, is_open
from .budget import spent_budget
from .clock import utc_now
from .context import CallContext
from .errors import FieldsRefused, JudgeError
from .judgement import Ask, Judgement
from .quiet_ledger import QuietLedger
from .settings import JudgeSettings
from .trying import Answer, Tries

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from ..rubric.library import Rubric
    from ..rubric.turn import Turn
    from .models.base import Model

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
    ledger: Ledger | None
    context: CallContext = CallContext()
    prices_folder: Path | None = None
    """Where a user's own prices lie."""
    clock: Callable[[], datetime] = utc_now


def ask_with(open_model: Callable[[], Model], asking: Asking, *, deadline_at: float) -> Ask:
    """
    Give a judge that works in this process and returns by `deadline_at`, on `time.monotonic`'s clock.

    `open_model` is called in a thread: the first time it imports an SDK.
    """

    def ask(turn: Turn) -> Judgement:
        held_back = _held_back(asking)
        return held_back or run(_open_and_judge(turn, open_model, asking, deadline_at))

    return ask


async def judge_turn(turn: Turn, model: Model, asking: Asking, *, deadline_at: float) -> Judgement:
    """
    Judge one turn with a model that is open already, as a service has it.

    Raises nothing for what a model, a network or an endpoint does.
    """
    return _held_back(asking) or await _judge(turn, model, asking, deadline_at)


async def _open_and_judge(turn: Turn, open_model: Callable[[], Model], asking: Asking, deadline_at: float) -> Judgement:
    try:
        model = await before(deadline_at, in_thread(open_model))
    except DeadlinePassed:
        return _judgement(asking, Answer("timeout", detail="the deadline passed before the model could be asked"))
    except (JudgeError, ImportError) as error:
        return _judgement(asking, Answer("error", detail=" ".join(str(error).split())[:200]))

    judgement = await _judge(turn, model, asking, deadline_at)
    with contextlib.suppress(DeadlinePassed, OSError, RuntimeError):
        await before(time.monotonic() + CLOSING_S, model.close())
    return judgement


async def _judge(turn: Turn, model: Model, asking: Asking, deadline_at: float) -> Judgement:
    ledger = QuietLedger(asking.ledger)
    try:
        request = render(asking.rubric, turn, max_input_tokens=asking.settings.max_input_tokens)
    except CeilingTooLow as error:
        return _without_call(asking, "no_judge", f"judge.{error}")
    tries = Tries(model, request, asking, ledger, cached=_is_cached(asking, ledger), deadline_at=deadline_at)
    answer = await _answer(tries, asking, ledger)
    return _judgement(asking, answer, tuple(tries.calls))


async def _answer(tries: Tries, asking: Asking, ledger: QuietLedger) -> Answer:
    """
    Ask, each time without the fields that the endpoint turned away; what it refused is remembered once it answers.
    """
    where = (asking.endpoint, asking.model)
    known = ledger.attempt(
        lambda found: frozenset(found.refused_fields(*where, now=asking.clock())), otherwise=frozenset[str]()
    )
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
        at = asking.clock()
        ledger.attempt(lambda found: found.remember_refused_fields(*where, new, at=at), otherwise=None)
    return answer


def _held_back(asking: Asking) -> Judgement | None:
    """
    Give the judgement of a judge that must not be asked now: no money, or an endpoint that is down.
    """
    ledger, now = QuietLedger(asking.ledger), asking.clock()
    session_id = asking.context.session_id
    spent = ledger.attempt(lambda found: spent_budget(found, asking.settings, session_id, now), otherwise="")
    if spent:
        return _without_call(asking, "budget", spent)

    recent = ledger.attempt(lambda found: found.recent_outcomes(asking.endpoint, LOOK_BACK), otherwise=[])
    if is_open(recent, now):
        return _without_call(
            asking, "breaker_open", f"{asking.endpoint} failed too often in a row; left alone a minute"
        )
    return None


def _is_cached(asking: Asking, ledger: QuietLedger) -> bool:
    # Writing the cache costs a quarter more than plain input, and pays only when somebody reads it in time.
    if asking.settings.cache != "auto":
        return asking.settings.cache == "on"

    where = (asking.rubric.hash, asking.model, asking.endpoint)
    last = ledger.attempt(lambda found: found.last_call_at(*where), otherwise=None)
    return last is not None and timedelta() <= asking.clock() - last < CACHE_LIFETIME


def _judgement(asking: Asking, answer: Answer, calls: tuple[str, ...] = ()) -> Judgement:
    return Judgement(answer.outcome, answer.verdict, answer.detail, asking.rubric.label, asking.rubric.hash, calls)


def _without_call(asking: Asking, outcome: Literal["budget", "breaker_open", "no_judge"], detail: str) -> Judgement:
    return Judgement(outcome, None, detail, asking.rubric.label, asking.rubric.hash)
