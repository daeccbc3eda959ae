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
from ..runs import Asked

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


def limited(
    earlier: Iterable[Call],
    asked: Sequence[Asked],
    settings: JudgeSettings,
    limit_usd: Decimal | None,
    prices_folder: Path | None,
) -> Spending:
    """
    Begin with what earlier goes of a run paid. Raises `LabError` where there is a limit, and no price to keep it by.
    """
    before = paid_for(earlier)
    if limit_usd is None:
        return Spending(before)

    worst_try = worst_try_usd(asked, settings, prices_folder)
    # Which question an earlier call of unknown cost was for does not matter: it counts as the dearest.
    dearest = max(map(worst_try, asked), default=Decimal(0))
    return Spending(before, limit_usd=limit_usd, worst_try=worst_try, worst_before=dearest)


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
    that never said what it cost counts at its worst.
    """

    def __init__(
        self,
        before: Paid,
        *,
        limit_usd: Decimal | None = None,
        worst_try: Callable[[Asked], Decimal] = lambda _: Decimal(0),
        worst_before: Decimal = Decimal(0),
    ) -> None:
        self.paid = before
        """What is known to be paid."""
        self._limit_usd = limit_usd
        self._worst_try = worst_try
        self._unknown_usd = before.unknown * worst_before
        self._reserved: dict[tuple[str, int], Decimal] = {}

    @property
    def is_idle(self) -> bool:
        """
        Whether nothing is on its way.
        """
        return not self._reserved

    def needed_usd(self, question: Asked) -> Decimal:
        """
        The least limit by which a question could still be asked.
        """
        at_most = self.paid.usd + self._unknown_usd + sum(self._reserved.values(), Decimal(0))
        return at_most + MOST_TRIES * self._worst_try(question)

    def reserve(self, question: Asked) -> bool:
        """
        Set aside what a question may cost; False where it does not fit any more.
        """
        if self._limit_usd is not None and self.needed_usd(question) > self._limit_usd:
            return False
        self._reserved[question.case.id, question.repeat] = MOST_TRIES * self._worst_try(question)
        return True

    def settle(self, question: Asked, paid: Paid) -> None:
        """
        Put what a question took in the place of what was set aside for it.
        """
        del self._reserved[question.case.id, question.repeat]
        self.paid = Paid(self.paid.usd + paid.usd, self.paid.unknown + paid.unknown)
        self._unknown_usd += paid.unknown * self._worst_try(question)
