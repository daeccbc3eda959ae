"""
What a batch's result comes to: a line of the run's answers, and one of its ledger.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from ...costing.records import CallEnd
from ...costing.stamps import storable
from ...costing.usage import Usage, read_usage
from ...rubric.masking import mask
from ...rubric.verdict import UnreadableVerdict, parse_verdict
from ..asking.kept_text import kept_text
from ..errors import LabError
from ..runs import Answered
from .submissions import Item

if TYPE_CHECKING:
    from ...costing.outcomes import CallOutcome
    from ...costing.prices import PriceEntry
    from ...judge.models.anthropic_batches import Result

NOT_BILLED: Final = "not billed"
"""Items that failed, expired or were canceled: https://platform.claude.com/docs/en/build-with-claude/batch-processing#retrieving-batch-results."""

NOT_ANSWERED: Final = CallEnd("error", cost_usd=Decimal(0), price_source=NOT_BILLED, detail="the batch was not created")

LOST: Final = CallEnd("error", detail="its result is missing from the batch's results, or damaged")


class Pricing:
    """
    The prices of a batch's answers. Raises `LabError` where the user's own prices cannot be read.
    """

    def __init__(self, model: str, folder: Path | None) -> None:
        from ...costing.prices import PriceError, user_prices

        self._model = model
        try:
            self._overrides: tuple[PriceEntry, ...] = user_prices(folder)
        except PriceError as error:
            raise LabError(str(error)) from None

    def paid(self, raw: Mapping[str, object], model_answered: str, at: datetime) -> Paid:
        """
        Price a usage at half the price; unknown where it cannot be told.
        """
        from ...costing.prices import price

        usage = read_usage(raw)
        if usage is None:
            return Paid()
        place = raw.get("inference_geo")
        try:
            cost_usd, source = price(
                model_answered or self._model,
                usage,
                at,
                batch=True,
                geography=place if isinstance(place, str) else "",
                overrides=self._overrides,
            )
        except Exception as error:  # other people's tables and arithmetic
            return Paid(usage, trouble=mask(f"no price could be worked out: {error}")[:200])
        return Paid(usage, cost_usd, source)


class Paid(NamedTuple):
    """
    What an item took, as far as it is known.
    """

    usage: Usage | None = None
    cost_usd: Decimal | None = None
    source: str = ""
    trouble: str = ""


def call_end(result: Result, pricing: Pricing, faults: tuple[str, ...], at: datetime) -> CallEnd:
    """
    Give the end of an item's line in the ledger.
    """
    completion = result.completion
    if result.raw_usage:
        paid = pricing.paid(result.raw_usage, completion.model_answered if completion else "", at)
    elif result.kind in ("errored", "canceled", "expired"):
        paid = Paid(cost_usd=Decimal(0), source=NOT_BILLED)
    else:
        paid = Paid()
    return CallEnd(
        _outcome(result, faults),
        model_answered=completion.model_answered if completion else "",
        usage=paid.usage,
        raw_usage=result.raw_usage,
        cost_usd=paid.cost_usd,
        price_source=paid.source,
        request_id=result.request_id or "",
        detail="; ".join(filter(None, (result.detail, paid.trouble))),
    )


def answer(item: Item, result: Result, end: CallEnd, faults: tuple[str, ...]) -> Answered:
    """
    Give the line of the run's answers.
    """
    completion = result.completion
    if completion is None:
        return failure(item, end)
    if end.outcome == "refused":
        return _answered(item, end).model_copy(update={"outcome": "refused", "detail": "the model declined to judge"})
    text = kept_text(completion.text, faults)
    return _answered(item, end).model_copy(update={"outcome": "answered", "text": text})


def failure(item: Item, end: CallEnd) -> Answered:
    """
    Give the line of a question that got no answer.
    """
    return _answered(item, end)


def _answered(item: Item, end: CallEnd) -> Answered:
    return Answered(
        case=item.case,
        repeat=item.repeat,
        hash=item.hash,
        outcome="error",
        detail=storable(end.detail),
        model_answered=storable(end.model_answered),
        raw_usage=json.loads(storable(json.dumps(end.raw_usage, ensure_ascii=False))) if end.raw_usage else None,
        cost_usd=end.cost_usd,
        price_source=end.price_source,
        calls=(item.call,),
        via="batch",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _outcome(result: Result, faults: tuple[str, ...]) -> CallOutcome:
    completion = result.completion
    if completion is None:
        return "rejected" if result.is_rejection else "error"
    if completion.stop_reason == "refusal":
        return "refused"
    try:
        parse_verdict(completion.text, faults)
    except UnreadableVerdict:
        return "unreadable"
    return "answered"
