"""
A run's questions through the Message Batches API, at half the price: submitted, waited for and collected, whatever happens meanwhile.

Nothing is submitted anew while an earlier submission may live: what was paid for is collected first. The caller is alone with the folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from ...costing.ledger import Ledger
from ...costing.opening import open_ledger_store
from ...judge.connect import Target
from ...judge.errors import JudgeError, ModelUnavailable
from ...judge.settings import JudgeSettings
from ..asking.spending import spent_on, worst_try_usd
from ..errors import LabError
from ..runs import Asked, Run
from .batched_run import BatchRun
from .collecting import Collecting, Waiting
from .results import Pricing
from .search import BatchSearch
from .submissions import Open, Submission, Submissions

MOST_ITEMS: Final = 100_000
MOST_BYTES: Final = 256_000_000
"""Of one batch: https://platform.claude.com/docs/en/build-with-claude/batch-processing#batch-limitations."""

SETTLING_S: Final = 120.0
"""A submission whose sender died may come to life so much later; one that is not listed then never will."""


def run_batch(
    run: Run,
    todo: Sequence[Asked],
    target: Target,
    settings: JudgeSettings,
    *,
    limit_usd: Decimal | None,
    prices_folder: Path | None,
    say: Callable[[str], None],
    poll_s: float = 30.0,
    most_items: int = MOST_ITEMS,
    most_bytes: int = MOST_BYTES,
    settling_s: float = SETTLING_S,
) -> int:
    """
    Collect what earlier goes submitted, submit what is left of `todo`, wait for the answers, and give the number of those kept.

    `limit_usd` is over all goes of the run. Raises `LabError`; Ctrl-C leaves the batches to go on.
    """
    import asyncio

    from ...judge.models.anthropic_batches import AnthropicBatches

    if target.backend != "anthropic":
        raise LabError(f"--batch needs an endpoint with the Message Batches API, and judge.backend is {target.backend}")
    pricing = Pricing(target.model, prices_folder)
    submissions = Submissions(run.folder)
    with open_ledger_store(run.folder) as store:
        try:
            batches = AnthropicBatches(base_url=target.endpoint, key=target.key)
            shared = BatchRun(run, target, Ledger(store), batches, submissions, say, poll_s, settling_s)
            going = _Going(shared, settings, pricing, _Limits(limit_usd, prices_folder, most_items, most_bytes))
            return asyncio.run(going.go(todo))
        except JudgeError as error:
            raise LabError(f"{target.place}: {error.detail}") from error
        except KeyboardInterrupt:
            _say_what_goes_on(submissions, say)
            raise


class _Limits(NamedTuple):
    usd: Decimal | None
    prices_folder: Path | None
    items: int
    bytes: int


class _Going:
    """
    One go.
    """

    def __init__(self, shared: BatchRun, settings: JudgeSettings, pricing: Pricing, limits: _Limits) -> None:
        self._of = shared
        self._settings = settings
        self._limits = limits
        self._search = BatchSearch(shared)
        self._collecting = Collecting(shared, self._search, pricing)
        self._waiting: list[Waiting] = []

    async def go(self, todo: Sequence[Asked]) -> int:
        """
        Do it all, and give the number of answers.
        """
        troubles = self._collecting.troubles
        try:
            await self._go_on(troubles)
            if not troubles:
                await self._submit_all(self._that_fit(self._not_asked(todo)), troubles)
            await self._collecting.collect(self._waiting)
        finally:
            await self._of.batches.close()
        self._remember_refused()
        if troubles:
            raise troubles[0]
        return self._collecting.kept

    async def _go_on(self, troubles: list[LabError]) -> None:
        for earlier in self._of.submissions.read()[0]:
            try:
                waiting = await self._found(earlier)
            except LabError as error:
                troubles.append(error)
                continue
            if waiting is not None:
                self._waiting.append(waiting)

    async def _found(self, earlier: Open) -> Waiting | None:
        submission, batch = earlier
        name = f"batch {batch}" if batch else f"the submission of {submission.submitted_at}"
        if submission.endpoint != self._of.target.place:
            raise LabError(f"{name} went to {submission.endpoint}: ask there to collect it, or {self._of.give_up}")
        if batch:
            self._of.say(f"{name}: {len(submission.items)} questions, submitted {submission.submitted_at}")
            return Waiting(submission, [batch], is_ours=True)
        self._of.say(f"{name} ({len(submission.items)} questions) got no answer: looking for its batch")
        candidates = await self._search.candidates(submission)
        if candidates:
            return Waiting(submission, candidates, is_ours=False)
        self._of.never_created(submission)
        self._of.say(f"{name} became no batch")
        return None

    def _not_asked(self, todo: Sequence[Asked]) -> list[Asked]:
        asked = {item[:3] for one in self._waiting for item in one.questions.values()}
        return [one for one in todo if (one.case.id, one.repeat, one.hash) not in asked]

    def _that_fit(self, new: list[Asked]) -> list[Asked]:
        """
        As many of the first questions as fit under the limit at their worst; a batch costs half of it.
        """
        limit_usd = self._limits.usd
        if limit_usd is None or not new:
            return new
        worst = worst_try_usd(new, self._settings, self._limits.prices_folder)
        paid = spent_on(self._of.run, self._of.ledger.calls())
        left = limit_usd - paid.usd - paid.unknown * max(map(worst, new))
        fit: list[Asked] = []
        for question in new:
            left -= worst(question) / 2
            if left < 0:
                break
            fit.append(question)
        self._say_what_does_not_fit(len(fit), len(new))
        return fit

    def _say_what_does_not_fit(self, fit: int, new: int) -> None:
        text = f"{new - fit} of {new} questions are not submitted: they could pass the limit of ${self._limits.usd:f}"
        if fit == new:
            return
        if not fit and not self._waiting:
            raise LabError(text)
        self._of.say(text)

    def _portions(self, asked: list[Asked]) -> Iterator[list[_Body]]:
        portion: list[_Body] = []
        size = 0
        for one, body in self._bodies(asked):
            more = len(json.dumps(body)) + _FRAME_BYTES
            if portion and (len(portion) == self._limits.items or size + more > self._limits.bytes):
                yield portion
                portion, size = [], 0
            portion.append((one, body))
            size += more
        if portion:
            yield portion

    def _bodies(self, asked: list[Asked]) -> Iterator[_Body]:
        from ...judge.models.messages import message_body

        settings, target = self._settings, self._of.target
        without = frozenset(self._of.ledger.refused_fields(target.place, target.model, now=datetime.now(UTC)))
        for one in asked:
            body = message_body(
                one.request,
                model=target.model,
                max_tokens=settings.max_tokens,
                effort=settings.effort,
                cached=settings.cache == "on",  # items are answered in any order: few would find what another wrote
                without=without,
            )
            yield one, body

    async def _submit_all(self, asked: list[Asked], troubles: list[LabError]) -> None:
        for portion in self._portions(asked):
            try:
                self._waiting.append(await self._submit(portion))
            except LabError as error:
                troubles.append(error)
                return

    async def _submit(self, portion: list[_Body]) -> Waiting:
        target = self._of.target
        submission = self._of.submissions.begin(
            [one for one, _ in portion],
            at=datetime.now(UTC),
            endpoint=target.place,
            api_key=target.key,
            model=target.model,
        )
        questions = submission.questions
        for item in questions.values():
            self._of.ledger.open_call(self._of.start(submission), call_id=item.call)
        try:
            batch = await self._of.batches.create(
                [
                    {"custom_id": custom_id, "params": body}
                    for custom_id, (_, body) in zip(questions, portion, strict=True)
                ]
            )
        except JudgeError as error:
            raise self._not_submitted(submission, error) from error
        self._of.submissions.created(submission, batch.id)
        self._of.say(f"batch {batch.id}: {len(portion)} questions submitted")
        return Waiting(submission, [batch.id], is_ours=True)

    def _not_submitted(self, submission: Submission, error: JudgeError) -> LabError:
        if _is_turned_away(error):
            self._of.never_created(submission)
            return LabError(f"{self._of.target.place}: no batch was created: {error.detail}")
        return LabError(
            f"{self._of.target.place}: {error.detail}; the batch may have been created all the same: run again to look for it"
        )

    def _remember_refused(self) -> None:
        if self._collecting.refused:
            where, now = (self._of.target.place, self._of.target.model), datetime.now(UTC)
            self._of.ledger.remember_refused_fields(*where, sorted(self._collecting.refused), at=now)
            self._of.say(
                f"the endpoint does not take {', '.join(sorted(self._collecting.refused))}: the next go asks without"
            )


_Body = tuple[Asked, dict[str, Any]]

_FRAME_BYTES: Final = 120
"""Of an item, around the body of its message."""


def _say_what_goes_on(submissions: Submissions, say: Callable[[str], None]) -> None:
    for submission, batch in submissions.read()[0]:
        if batch:
            say(f"batch {batch} goes on; run again to collect it")
        else:
            say(f"{len(submission.items)} questions may have been submitted; run again to look for them")


def _is_turned_away(error: JudgeError) -> bool:
    """
    Whether it is certain that nothing came of a request: it never left, or it was answered by a status that says so.
    """
    if isinstance(error, ModelUnavailable) and error.never_sent:
        return True
    return error.status is not None and 300 <= error.status < 500 and error.status != 408
