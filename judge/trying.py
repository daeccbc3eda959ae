"""
The tries of one judgement: each has a ledger line of its own, opened before it is sent and priced when it ends.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..costing.records import CallEnd, CallStart
from ..costing.usage import Usage, read_usage
from ..rubric.masking import mask
from ..rubric.verdict import Finding, UnreadableVerdict, Verdict, parse_verdict
from .bounded_loop import DeadlinePassed, before, in_thread
from .errors import JudgeError
from .retrying import with_retries

if TYPE_CHECKING:
    import asyncio

    from ..rubric.render import Request
    from .asking import Asking
    from .models.base import Completion, Model

DETAIL_LIMIT = 500

PRICING_S = 1.0
"""An answer waits no longer than this for its price; then its cost stays unknown, beside the usage as it came."""

AT_LIST_PRICE = ", list price"
"""Behind the source of a price where the client's log-in pays: a subscription is billed otherwise."""

SLACK_S = 1.0
"""The client's own timeout comes after the deadline: a deadline that passes is no broken connection."""


class Answer(NamedTuple):
    """
    What the tries came to.
    """

    outcome: Literal["answered", "timeout", "error", "unreadable", "refused"]
    verdict: Verdict | None = None
    detail: str = ""


class Paid(NamedTuple):
    """
    What a try took, as far as it is known.
    """

    usage: Usage | None = None
    cost_usd: Decimal | None = None
    price_source: str = ""
    trouble: str = ""
    """Why there is no cost, where the prices themselves cannot be used."""


class Tries:
    """
    Sends one request, again where that helps; `calls` are the ids of its ledger lines.
    """

    def __init__(
        self,
        model: Model,
        request: Request,
        asking: Asking,
        *,
        cached: bool,
        deadline_at: float,
    ) -> None:
        self.calls: list[str] = []
        self._model = model
        self._request = request
        self._asking = asking
        self._ledger = asking.ledger
        self._cached = cached
        self._deadline_at = deadline_at
        self._number = 0
        self._prices: asyncio.Future[None] | None = None

    async def answer(self, without: frozenset[str]) -> Answer:
        """
        Give the first answer. Raises DeadlinePassed, or the JudgeError of the last try.
        """

        async def attempt() -> Answer:
            return await self._try(without)

        return await with_retries(attempt, deadline_at=self._deadline_at)

    async def _try(self, without: frozenset[str]) -> Answer:
        started = time.monotonic()
        if started >= self._deadline_at:
            raise DeadlinePassed

        start = self._started()
        call = await in_thread(lambda: self._open(start))
        self._warm_prices()
        timeout_s = self._deadline_at - started + SLACK_S
        sent = self._model.complete(self._request, cached=self._cached, without=without, timeout_s=timeout_s)
        try:
            with self._asking.in_flight():
                completion = await before(self._deadline_at, sent)
        except DeadlinePassed:
            end = CallEnd("timeout", _ms_since(started), detail="cut off by the deadline")
            await in_thread(lambda: self._close(call, start, end))
            raise
        except JudgeError as error:
            latency_ms = _ms_since(started)
            end = _failed(error, await self._paid(error.raw_usage, ""), latency_ms)
            await in_thread(lambda: self._close(call, start, end))
            raise

        latency_ms = _ms_since(started)
        answer = _read(completion, self._asking.rubric.faults, self._model)
        paid = await self._paid(completion.raw_usage, completion.model_answered)
        end = _ended(answer, completion, paid, latency_ms)
        await in_thread(lambda: self._close(call, start, end))
        return answer

    def _started(self) -> CallStart:
        self._number += 1
        asking = self._asking
        return CallStart(
            at=asking.clock(),
            backend=asking.backend,
            model=asking.model,
            endpoint=asking.endpoint,
            rubric=asking.rubric.label,
            rubric_hash=asking.rubric.hash,
            try_number=self._number,
            **asking.context._asdict(),
        )

    def _open(self, start: CallStart) -> str:
        call = self._ledger.open_call(start)
        if call:
            self.calls.append(call)
        return call

    def _close(self, call: str, start: CallStart, end: CallEnd) -> None:
        written = self._ledger.end_call(call, start, end)
        if written and not call:
            self.calls.append(written)

    def _warm_prices(self) -> None:
        # Importing the price table takes 160 to 300 ms: in a thread, while the network is waited for.
        import asyncio

        from ..costing.prices import warm

        if self._prices is None and self._asking.backend != "scripted":
            self._prices = asyncio.ensure_future(in_thread(warm))

    async def _paid(self, raw_usage: Mapping[str, object] | None, model_answered: str) -> Paid:
        """
        Price a usage. Raises nothing, whatever a price table or a user's file of prices holds.
        """
        usage = read_usage(raw_usage) if raw_usage else None
        if usage is None or not raw_usage or not await self._prices_are_ready():
            return Paid(usage)

        from ..costing.prices import PriceError, price, user_prices

        geography = raw_usage.get("inference_geo")
        try:
            found = price(
                model_answered or self._asking.model,
                usage,
                self._asking.clock(),
                geography=geography if isinstance(geography, str) else "",
                overrides=user_prices(self._asking.prices_folder),
            )
        except PriceError as error:
            return Paid(usage, trouble=_one_line(f"no price: {error}"))
        except Exception as error:  # other people's tables and arithmetic
            return Paid(usage, trouble=_one_line(f"no price could be worked out: {error}"))
        is_list_price = self._asking.backend == "claude-cli" and found.cost_usd is not None
        return Paid(usage, found.cost_usd, f"{found.source}{AT_LIST_PRICE}" if is_list_price else found.source)

    async def _prices_are_ready(self) -> bool:
        import asyncio

        if self._prices is None:
            return False
        if not self._prices.done():
            left_s = min(PRICING_S, self._deadline_at - time.monotonic())
            await asyncio.wait({self._prices}, timeout=max(0.0, left_s))
        return self._prices.done() and self._prices.exception() is None


def _read(completion: Completion, faults: tuple[str, ...], model: Model) -> Answer:
    if completion.stop_reason == "refusal":
        return Answer("refused", detail="the model declined to judge")
    try:
        verdict = parse_verdict(completion.text, faults)
    except UnreadableVerdict as error:
        cut_off = completion.stop_reason in ("max_tokens", "model_context_window_exceeded")
        detail = f"cut off by {completion.stop_reason}" if cut_off else model.without_secrets(str(error))
        return Answer("unreadable", detail=detail)

    # The verdict is JSON within JSON: a secret may have been written with its escapes.
    clean = model.without_secrets
    findings = tuple(Finding(fault, clean(quote), clean(reason)) for fault, quote, reason in verdict.findings)
    return Answer("answered", verdict._replace(findings=findings))


def _ended(answer: Answer, completion: Completion, paid: Paid, latency_ms: int) -> CallEnd:
    return CallEnd(
        answer.outcome,
        latency_ms=latency_ms,
        model_answered=completion.model_answered,
        raw_usage=completion.raw_usage,
        request_id=completion.request_id or "",
        usage=paid.usage,
        cost_usd=paid.cost_usd,
        price_source=paid.price_source,
        detail=_joined(answer.detail, paid.trouble),
    )


def _failed(error: JudgeError, paid: Paid, latency_ms: int) -> CallEnd:
    return CallEnd(
        "rejected" if error.is_rejection else "error",
        latency_ms=latency_ms,
        raw_usage=error.raw_usage,
        request_id=error.request_id or "",
        usage=paid.usage,
        cost_usd=paid.cost_usd,
        price_source=paid.price_source,
        detail=_joined(error.detail, paid.trouble),
    )


def _joined(*details: str) -> str:
    return "; ".join(detail for detail in details if detail)


def _one_line(text: str) -> str:
    # A key may stand by mistake in a file of prices too.
    return " ".join(mask(text).split())[:DETAIL_LIMIT]


def _ms_since(started: float) -> int:
    return round((time.monotonic() - started) * 1000)
