"""
The spend limit of a run: what was paid, what is on its way at its worst, and whether the next question still fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple

from ...costing.records import Call
from ...costing.usage import Usage
from ...judge.retrying import MOST_TRIES
from ...judge.settings import JudgeSettings
from ..errors import LabError
from ..runs import Answered, Asked, Run
from .exchange import question_id

GEOGRAPHIES: Final = ("", "us")
"""Where the answer is worked out decides the price, and only the answer says where that was."""


class Paid(NamedTuple):
    """
    What some calls cost.
    """

    usd: Decimal = Decimal(0)
    unknown: int = 0
    """Calls that may have been billed and did not say so."""


def paid_for(calls: Iterable[Call]) -> Paid:
    """
    Add up what calls cost. One that the endpoint turned away costs nothing.
    """
    usd, unknown = Decimal(0), 0
    for call in calls:
        if call.end is not None and call.end.cost_usd is not None:
            usd += call.end.cost_usd
        elif not is_free(call):
            unknown += 1
    return Paid(usd, unknown)


def is_free(call: Call) -> bool:
    """
    Say whether the endpoint turned the call away, with a status of 4xx and no usage.
    """
    return call.end is not None and call.end.outcome == "rejected" and call.end.raw_usage is None


def spent_on(run: Run, calls: Sequence[Call]) -> Paid:
    """
    Give what a run took in all goes: by the calls of its ledger, and by its answers where the ledger has lost their calls.
    """
    ids = {call.id for call in calls}
    questions = {call.start.decision_id for call in calls}

    def is_lost(answer: Answered) -> bool:
        if answer.calls:
            return ids.isdisjoint(answer.calls)
        # One that was kept just before its process was killed names no call.
        return f"{answer.hash}-r{answer.repeat}" not in questions

    paid, lost = paid_for(calls), paid_by(filter(is_lost, run.answers.values()))
    return Paid(paid.usd + lost.usd, paid.unknown + lost.unknown)


def paid_by(answers: Iterable[Answered]) -> Paid:
    """
    Add up what answers say that they cost. One that was imported took nothing of ours.
    """
    costs = [answer.cost_usd for answer in answers if answer.via != "import"]
    return Paid(sum((cost for cost in costs if cost is not None), Decimal(0)), costs.count(None))


def limited(
    run: Run,
    calls: Sequence[Call],
    asked: Sequence[Asked],
    settings: JudgeSettings,
    limit_usd: Decimal | None,
    prices_folder: Path | None,
) -> Spending:
    """
    Begin with what earlier goes of a run paid, and showed of the estimate.

    Raises `LabError` where there is a limit, and no price to keep it by.
    """
    before = spent_on(run, calls)
    if limit_usd is None:
        return Spending(before)

    worst_try = worst_try_usd(asked, settings, prices_folder)
    # Which question an earlier call of unknown cost was for does not matter: it counts as the dearest.
    dearest = max(map(worst_try, asked), default=Decimal(0))
    spending = Spending(
        before, limit_usd=limit_usd, worst_try=worst_try, worst_before=dearest, max_tokens=settings.max_tokens
    )
    by_id = {question_id(question): question for question in asked}
    for call in calls:
        if call.start.decision_id in by_id:
            spending.learn(by_id[call.start.decision_id], [call])
    return spending


def worst_try_usd(
    asked: Sequence[Asked], settings: JudgeSettings, prices_folder: Path | None
) -> Callable[[Asked], Decimal]:
    """
    Give what one try of a question costs at most: its estimated tokens, read or written to the cache, and a full answer.

    Raises `LabError` where the price of the model is not known.
    """
    from ...costing.prices import PriceError, price, user_prices

    try:
        overrides = user_prices(prices_folder)
    except PriceError as error:
        raise LabError(str(error)) from None
    now = datetime.now(UTC)

    def worst(tokens: int) -> Decimal | None:
        usages = [Usage(input_tokens=tokens, output_tokens=settings.max_tokens)]
        if settings.cache != "off":
            usages.append(Usage(cache_write_5m_tokens=tokens, output_tokens=settings.max_tokens))
        costs = [
            price(settings.model, usage, now, geography=place, overrides=overrides).cost_usd
            for usage in usages
            for place in GEOGRAPHIES
        ]
        return max((cost for cost in costs if cost is not None), default=None)

    by_tokens: dict[int, Decimal] = {}
    for tokens in {question.request.estimated_tokens for question in asked}:
        cost = worst(tokens)
        if cost is None:
            raise LabError(
                f"--usd: the price of model {settings.model!r} is not known, so no limit can be kept; "
                "write it into prices.toml beside your settings"
            )
        by_tokens[tokens] = cost
    return lambda question: by_tokens[question.request.estimated_tokens]


class Spending:
    """
    What a run has paid, and may still pay: `before` in earlier goes, of which each call of unknown cost counts `worst_before`.

    Each question on its way is counted with all tries that it may take, for one whose connection broke may have been billed too. A call
    that never said what it cost counts at its worst. The worst is an estimate: it grows with the most that any call took of it.
    """

    def __init__(
        self,
        before: Paid,
        *,
        limit_usd: Decimal | None = None,
        worst_try: Callable[[Asked], Decimal] = lambda _: Decimal(0),
        worst_before: Decimal = Decimal(0),
        max_tokens: int = JudgeSettings().max_tokens,
    ) -> None:
        self.paid = before
        """What is known to be paid."""
        self._limit_usd = limit_usd
        self._worst_try = worst_try
        self._max_tokens = max_tokens
        self._times: Decimal | None = None
        self._unknown_usd = before.unknown * worst_before
        self._reserved: dict[tuple[str, int], Decimal] = {}
        self._has_asked = False

    @property
    def is_idle(self) -> bool:
        """
        Whether nothing is on its way.
        """
        return not self._reserved

    @property
    def is_blind(self) -> bool:
        """
        Whether there is a limit, and no call has shown yet what the estimate is worth: then one question at a time is enough.
        """
        return self._limit_usd is not None and self._times is None

    def why_not(self, question: Asked) -> str:
        """
        Say in one line why a question does not fit.
        """
        least = self._at_most(MOST_TRIES * self._worst_try(question))
        seen = f"; calls took up to {self._times:,.1f} times their estimate" if self._times and self._times > 1 else ""
        return f"the next question could pass the limit of --usd (at its worst it takes ${least:.4f} in all{seen})"

    @property
    def passed(self) -> str:
        """
        Say in one line that the limit was passed all the same; empty where it was not.
        """
        if self._limit_usd is None or not self._has_asked or self._at_most() <= self._limit_usd:
            return ""
        was = "was" if self.paid.usd > self._limit_usd else "may have been"
        return (
            f"the limit of --usd {was} passed: a call took {self._times or 1:,.1f} times its estimate, "
            "which nobody could know before it"
        )

    def reserve(self, question: Asked) -> bool:
        """
        Set aside what a question may cost; False where it does not fit any more.
        """
        worst = MOST_TRIES * self._worst_try(question)
        if self._limit_usd is not None and self._at_most(worst) > self._limit_usd:
            return False
        self._reserved[question.case.id, question.repeat] = worst
        self._has_asked = True
        return True

    def settle(self, question: Asked, paid: Paid) -> None:
        """
        Put what a question took in the place of what was set aside for it.
        """
        del self._reserved[question.case.id, question.repeat]
        self.paid = Paid(self.paid.usd + paid.usd, self.paid.unknown + paid.unknown)
        self._unknown_usd += paid.unknown * self._worst_try(question)

    def learn(self, question: Asked, calls: Iterable[Call]) -> None:
        """
        Compare what calls for a question took with its estimate: tokens read, tokens written, and money.
        """
        worst = self._worst_try(question)
        for end in (call.end for call in calls if call.end is not None):
            if end.usage is None:
                continue
            read = Decimal(end.usage.prompt_tokens) / question.request.estimated_tokens
            written = Decimal(end.usage.output_tokens) / self._max_tokens
            cost = (end.cost_usd or Decimal(0)) / worst if worst else Decimal(0)
            self._times = max(self._times or Decimal(1), read, written, cost)

    def _at_most(self, more: Decimal = Decimal(0)) -> Decimal:
        estimated = self._unknown_usd + sum(self._reserved.values(), more)
        return self.paid.usd + (self._times or 1) * estimated
