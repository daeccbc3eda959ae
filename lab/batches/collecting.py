"""
Waiting for batches, and taking what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from ...judge.errors import JudgeError, ModelUnavailable
from ..errors import LabError
from ..runs import Answered, keep
from .batched_run import BatchRun
from .results import LOST, Pricing, answer, call_end, failure
from .search import BatchSearch
from .submissions import Item, Submission

if TYPE_CHECKING:
    from ...judge.models.anthropic_batches import Batch, Result

STRAY_LINES: Final = 1_000
"""So many lines more than questions are read of the results."""

MOST_FAILURES: Final = 5
"""In a row, of asking how far a batch is."""

GOING_ON: Final = ("in_progress", "canceling")
"""Its states before it has ended: https://platform.claude.com/docs/en/api/creating-message-batches."""

MOST_UNKNOWN: Final = 20
"""Polls in a row with a state that is none of these."""

MOST_READS: Final = 3
"""Of results that break off or lack some."""


class Waiting:
    """
    A submission that is waited for.
    """

    def __init__(self, submission: Submission, candidates: list[str], *, is_ours: bool) -> None:
        self.submission = submission
        self.candidates = candidates
        """The batches that may be it; one, where it is known."""
        self.is_ours = is_ours
        self.questions = submission.questions
        self.left = self.questions
        self.failures = 0
        self.unknown = 0
        self.state = GOING_ON[0]
        self.reads = 0
        self.answered = 0
        self.strays = 0
        self.damaged = 0


class Collecting:
    """
    The collecting of answers. `kept` counts them; `troubles` has what kept a batch from being collected.
    """

    def __init__(self, batch_run: BatchRun, search: BatchSearch, pricing: Pricing) -> None:
        self.kept = 0
        self.troubles: list[LabError] = []
        self.refused: set[str] = set()
        """The fields that the endpoint does not take."""
        self._of = batch_run
        self._search = search
        self._pricing = pricing

    async def collect(self, submitted: Sequence[Waiting]) -> None:
        """
        Wait until each submission has ended, and keep its answers.
        """
        import asyncio

        waiting = list(submitted)
        for one in waiting:
            one.left = {name: item for name, item in one.questions.items() if not self._is_kept(item)}
        while waiting:
            for one in list(waiting):
                try:
                    is_done = await self._is_done(one)
                except LabError as error:
                    self.troubles.append(error)
                    is_done = True
                if is_done:
                    waiting.remove(one)
            if waiting:
                await asyncio.sleep(self._of.poll_s)

    async def _is_done(self, one: Waiting) -> bool:
        batch_id = one.candidates[0]
        try:
            batch = await self._of.batches.state(batch_id)
        except JudgeError as error:
            self._endure(one, error)
            return False
        one.failures = 0
        if not batch.has_ended:
            self._wait_on(one, batch.status)
            return False
        trouble = await self._read(one, batch)
        if one.strays and not one.is_ours and not one.damaged and not trouble:
            self._search.strangers.add(batch_id)
            return await self._try_next(one)
        return self._has_all(one, batch, trouble)

    def _wait_on(self, one: Waiting, state: str) -> None:
        self._say_state(one, state)
        one.unknown = 0 if state in GOING_ON else one.unknown + 1
        if one.unknown >= MOST_UNKNOWN:
            raise LabError(
                f"{self._name(one)} is in a state that is not known, {state!r}, since {MOST_UNKNOWN} polls: "
                f"run again to collect it, or {self._of.give_up}"
            )

    def _say_state(self, one: Waiting, state: str) -> None:
        if state != one.state:
            one.state = state
            self._of.say(f"{self._name(one)}: {state}")

    def _name(self, one: Waiting) -> str:
        return f"{self._of.target.place}: batch {one.candidates[0]}"

    def _endure(self, one: Waiting, error: JudgeError) -> None:
        name = self._name(one)
        if error.status == 404:
            raise LabError(
                f"{name} is not known there: ask with the API key that it was submitted with, or {self._of.give_up}"
            )
        one.failures += 1
        if one.failures >= MOST_FAILURES or not (isinstance(error, ModelUnavailable) and error.retryable):
            raise LabError(f"{name}: {error.detail}; it goes on: run again to collect it")
        self._say_state(one, f"{error.detail}; asking again")

    async def _read(self, one: Waiting, batch: Batch) -> str:
        """
        Take what the results hold, and say why they broke off, if they did.
        """
        one.strays = one.damaged = 0
        most = len(one.questions) + STRAY_LINES
        try:
            async with aclosing(self._of.batches.results(batch, most=most)) as results:
                async for result in results:
                    self._take(one, batch, result)
                    if not one.left:
                        break
        except JudgeError as error:
            return error.detail
        return ""

    def _take(self, one: Waiting, batch: Batch, result: Result | None) -> None:
        if result is None:
            one.damaged += 1
            return
        if result.custom_id not in one.questions:
            one.strays += 1
            return
        if not one.is_ours:
            self._of.submissions.created(one.submission, batch.id)
            one.is_ours = True
        item = one.left.pop(result.custom_id, None)
        if item is not None:
            self._keep_result(one, item, result)

    def _keep_result(self, one: Waiting, item: Item, result: Result) -> None:
        self.refused |= result.refused
        faults = self._of.run.manifest.faults
        end = call_end(result, self._pricing, faults, one.submission.at)
        # The ledger comes first: what is not kept is collected again, and its line written again.
        self._of.ledger.settle_call(item.call, self._of.start(one.submission), end)
        before = self._of.run.answers.get((item.case, item.repeat))
        if before is None or before.outcome != "answered" or before.hash != item.hash:
            self._keep(one, answer(item, result, end, faults))

    def _keep(self, one: Waiting, answered: Answered) -> None:
        keep(self._of.run.folder, answered)
        if answered.outcome != "error":
            one.answered += 1
            self.kept += 1

    def _is_kept(self, item: Item) -> bool:
        before = self._of.run.answers.get((item.case, item.repeat))
        return before is not None and item.call in before.calls

    async def _try_next(self, one: Waiting) -> bool:
        """
        Go on to the next batch that a submission may have become; whether there is none.
        """
        one.candidates.pop(0)
        one.reads = one.unknown = 0
        one.state = GOING_ON[0]
        if not one.candidates:
            one.candidates = await self._search.candidates(one.submission)
        if not one.candidates:
            self._of.never_created(one.submission)
        return not one.candidates

    def _has_all(self, one: Waiting, batch: Batch, trouble: str) -> bool:
        one.reads += 1
        if one.left and one.reads < MOST_READS:
            self._say_state(one, f"{len(one.left)} results are missing: {trouble or 'fetching them again'}")
            return False
        name = f"{self._of.target.place}: batch {batch.id}"
        if one.left and trouble:
            raise LabError(
                f"{name}: {len(one.left)} results could not be fetched: {trouble}; run again to collect them, "
                f"or {self._of.give_up}"
            )
        if not one.is_ours:
            raise LabError(f"{name} may hold this run's answers, and no line of it can be read: {self._of.give_up}")
        for item in one.left.values():
            self._of.ledger.settle_call(item.call, self._of.start(one.submission), LOST)
            self._keep(one, failure(item, LOST))
        self._of.submissions.ended(one.submission, "collected")
        self._of.say(_summary(one, batch))
        return True


def _summary(one: Waiting, batch: Batch) -> str:
    parts = [f"batch {batch.id}: {one.answered} answers kept of {len(one.questions)} questions"]
    if one.strays:
        parts.append(f"{one.strays} results for questions that were not asked")
    if one.damaged:
        parts.append(f"{one.damaged} lines that cannot be read")
    return ", ".join(parts)
