"""
A trial: the questions of a run, asked as the gate would ask them, many at once, and each answer kept as soon as it is there.

An answer is on the disk before anything else is done with it, so that a process that is killed asks nothing again that was answered.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from ...costing.ledger import Ledger
from ...judge.asking import CLOSING_S, Asking, judge_turn
from ...judge.bounded_loop import before, in_thread, run
from ...judge.connect import Target, open_model
from ...judge.context import CallContext
from ...judge.errors import JudgeError
from ...judge.quiet_ledger import QuietLedger
from ..errors import LabError
from ..runs import Answered, AnswerOutcome, Asked, Run, keep, tag_of
from .exchange import question_id
from .interrupts import interrupts
from .kept_text import kept_text
from .spending import Paid, Spending, is_free, paid_for

if TYPE_CHECKING:
    import asyncio

    from ...costing.records import Call
    from ...judge.judgement import Judgement
    from ...judge.models.base import Completion, Model
    from ...judge.settings import JudgeSettings
    from ...rubric.library import Rubric
    from ...rubric.render import Request

MOST_FAILURES: Final = 5
"""In a row: an endpoint that is down, or a wrong key, fails at each question."""

GRACE_S: Final = 5.0
"""For questions on their way, after Ctrl-C."""


class How(NamedTuple):
    """
    All about a trial that is neither its questions nor its run.
    """

    target: Target
    settings: JudgeSettings
    rubric: Rubric
    concurrency: int = 8
    prices_folder: Path | None = None


class Ended(NamedTuple):
    """
    Why a trial ended before its last question.
    """

    why: str = ""
    """One line; empty where everything was asked."""
    is_interrupted: bool = False


def unanswered(run: Run, asked: Sequence[Asked], *, again: bool = False) -> list[Asked]:
    """
    Give the questions that still have to be paid for. A refusal is an answer; what was answered to other words is none.

    With `again`, an answer without a verdict, of which a refusal is one, is none either.
    """
    readings = run.readings() if again else []
    judged = {(each.case.id, each.repeat) for each in readings if each.verdict is not None}

    def is_open(question: Asked) -> bool:
        key = question.case.id, question.repeat
        answer = run.answers.get(key)
        if again and key not in judged:
            return True
        return answer is None or answer.hash != question.hash or answer.outcome not in ("answered", "refused")

    return [question for question in asked if is_open(question)]


def ask_all(
    folder: Path,
    todo: Sequence[Asked],
    how: How,
    ledger: Ledger,
    spending: Spending,
    tell: Callable[[int, int], None],
) -> Ended:
    """
    Ask the questions and keep what comes of them; `tell` hears how many were answered, and how many failed.

    Ends early where money or patience do, and at Ctrl-C. Raises `LabError` where nobody can be asked or nothing can be kept.
    """
    return run(_Trial(folder, todo, how, ledger, spending, tell).ask_all())


class _Trial:
    def __init__(
        self,
        folder: Path,
        todo: Sequence[Asked],
        how: How,
        ledger: Ledger,
        spending: Spending,
        tell: Callable[[int, int], None],
    ) -> None:
        self._folder = folder
        self._todo = deque(todo)
        self._how = how
        self._ledger = ledger
        self._spending = spending
        self._tell = tell
        self._answers = 0
        self._failures = 0
        self._failures_in_a_row = 0
        self._halted: Ended | None = None
        self._broken: LabError | None = None

    async def ask_all(self) -> Ended:
        import asyncio

        model = await self._opened()
        work = asyncio.ensure_future(self._work_all(model))
        with interrupts() as pressed:
            await self._until_done(work, pressed)
        with suppress(Exception):  # nothing in closing may take the answers away
            await before(time.monotonic() + CLOSING_S, model.close())
        if self._broken:
            raise self._broken
        return self._halted or Ended()

    async def _opened(self) -> Model:
        try:
            return await in_thread(lambda: open_model(self._how.target, self._how.settings, self._ledger))
        except JudgeError as error:
            raise LabError(error.detail) from error

    async def _until_done(self, done: asyncio.Future[None], pressed: asyncio.Queue[None]) -> None:
        """
        Wait for the work: at Ctrl-C a little longer, at the second not at all.
        """
        import asyncio

        interrupted = asyncio.ensure_future(pressed.get())
        await asyncio.wait({done, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            self._halted = Ended(is_interrupted=True)
            again = asyncio.ensure_future(pressed.get())
            await asyncio.wait({done, again}, timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED)
            again.cancel()
        interrupted.cancel()
        if done.done():
            await done
        else:
            done.cancel()

    async def _work_all(self, model: Model) -> None:
        import asyncio

        await self._work(model, lambda: self._spending.is_blind)
        await asyncio.gather(*(self._work(model) for _ in range(min(self._how.concurrency, len(self._todo)))))

    async def _work(self, model: Model, goes_on: Callable[[], bool] = lambda: True) -> None:
        while self._todo and not self._halted and goes_on():
            if not self._spending.reserve(self._todo[0]):
                # As long as another question is on its way, its worker goes on once its true cost is known.
                if self._spending.is_idle:
                    self._halted = Ended(self._spending.why_not(self._todo[0]))
                return
            try:
                await self._ask(self._todo.popleft(), model)
            except LabError as error:
                self._broken = error
                self._halted = Ended(str(error))

    async def _ask(self, question: Asked, model: Model) -> None:
        started = time.monotonic()
        heard = _Heard(model, lambda completion, tries: self._keep_text(question, completion, tries))
        paid = Paid(unknown=1)
        try:
            judgement = await judge_turn(
                question.case.turn,
                heard,
                self._asking(question),
                deadline_at=started + self._how.settings.deadline_s,
                may_be_held_back=False,
            )
            calls = await in_thread(lambda: self._calls(judgement.calls))
            paid = paid_for(calls)
            # A ledger that could not be written knows less than was sent.
            paid = paid._replace(unknown=paid.unknown + max(0, heard.tries - len(calls)))
            self._spending.learn(question, calls)
        finally:
            self._spending.settle(question, paid)

        if judgement.outcome in ("no_judge", "budget", "breaker_open"):
            raise LabError(judgement.detail)
        latency_ms = round((time.monotonic() - started) * 1000)
        answered = self._answered(question, heard.completion, judgement, calls, paid, latency_ms)
        await in_thread(lambda: keep(self._folder, answered))
        self._count(answered)

    def _asking(self, question: Asked) -> Asking:
        how = self._how
        return Asking(
            how.rubric,
            how.settings,
            how.target.backend,
            how.target.place,
            how.target.model,
            QuietLedger(self._ledger),
            CallContext(decision_id=question_id(question), event="lab", project="lab"),
            prices_folder=how.prices_folder,
            tag=tag_of(question.case.turn),
        )

    def _calls(self, ids: Sequence[str]) -> list[Call]:
        ledger = QuietLedger(self._ledger)
        return [
            call
            for name in ids
            for call in ledger.attempt(lambda found, name=name: found.calls(call_id=name), otherwise=[])
        ]

    def _keep_text(self, question: Asked, completion: Completion, tries: int) -> None:
        if completion.stop_reason == "refusal":
            return
        usage = completion.raw_usage if tries == 1 else None
        keep(self._folder, self._with_text(question, completion).model_copy(update={"raw_usage": usage}))

    def _with_text(self, question: Asked, completion: Completion) -> Answered:
        return Answered(
            case=question.case.id,
            repeat=question.repeat,
            hash=question.hash,
            outcome="answered",
            text=kept_text(completion.text, self._how.rubric.faults),
            model_answered=completion.model_answered,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _answered(
        self,
        question: Asked,
        completion: Completion | None,
        judgement: Judgement,
        calls: list[Call],
        paid: Paid,
        latency_ms: int,
    ) -> Answered:
        outcome: AnswerOutcome = "error"
        if completion is not None:
            outcome = "refused" if completion.stop_reason == "refusal" else "answered"
        elif judgement.outcome == "timeout":
            outcome = "timeout"
        found = self._with_text(question, completion or _nothing())
        known = [call.end for call in calls if call.end is not None and not is_free(call)]
        return found.model_copy(
            update={
                "outcome": outcome,
                "text": found.text if outcome == "answered" else "",
                "detail": judgement.detail,
                "raw_usage": None if paid.unknown else _added([end.raw_usage for end in known if end.raw_usage]),
                "cost_usd": None if paid.unknown else paid.usd,
                "price_source": known[-1].price_source if known else "",
                "latency_ms": latency_ms,
                "calls": judgement.calls,
            }
        )

    def _count(self, answered: Answered) -> None:
        if answered.outcome in ("error", "timeout"):
            self._failures += 1
            self._failures_in_a_row += 1
        else:
            self._answers += 1
            self._failures_in_a_row = 0
        if self._failures_in_a_row >= MOST_FAILURES and not self._halted:
            self._halted = Ended(f"{MOST_FAILURES} questions failed in a row, the last with: {answered.detail}")
        self._tell(self._answers, self._failures)


class _Heard:
    """
    A model, with what it said to one question; an answer is kept before the asking goes on.
    """

    def __init__(self, model: Model, keep_text: Callable[[Completion, int], None]) -> None:
        self.completion: Completion | None = None
        self.tries = 0
        self._model = model
        self._keep_text = keep_text

    async def complete(
        self, request: Request, *, cached: bool, without: frozenset[str], timeout_s: float
    ) -> Completion:
        self.tries += 1
        completion = await self._model.complete(request, cached=cached, without=without, timeout_s=timeout_s)
        self.completion = completion
        await in_thread(lambda: self._keep_text(completion, self.tries))
        return completion

    def without_secrets(self, text: str) -> str:
        return self._model.without_secrets(text)

    async def close(self) -> None:
        await self._model.close()


def _nothing() -> Completion:
    from ...judge.models.base import Completion

    return Completion("", "", "", None)


def _added(usages: Sequence[object]) -> dict[str, Any] | None:
    """
    Add up usages as they came, number by number; of what is no number the last stays.
    """
    total: dict[str, Any] = {}
    for usage in usages:
        for name, value in cast("dict[str, Any]", usage).items():
            had = total.get(name)
            if isinstance(value, dict):
                total[name] = _added([part for part in (had, value) if isinstance(part, dict)])  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            elif isinstance(value, int) and isinstance(had, int) and not isinstance(value, bool):
                total[name] = had + value
            else:
                total[name] = value
    return total or None
