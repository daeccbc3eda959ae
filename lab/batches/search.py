"""
Which batch a submission became whose answer never came: it is looked for among those that the endpoint lists.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final

from ...judge.errors import JudgeError
from ..errors import LabError
from .batched_run import BatchRun
from .submissions import Submission, payer

CLOCKS_DIFFER: Final = timedelta(hours=1)
"""So much, at most, is the endpoint's clock behind ours."""


class BatchSearch:
    """
    The search for lost batches. `strangers` are those that turned out to be somebody else's.
    """

    def __init__(self, batch_run: BatchRun) -> None:
        self.strangers: set[str] = set()
        self._of = batch_run

    async def candidates(self, submission: Submission) -> list[str]:
        """
        Give the batches that a submission may have become; none once it is certain that it became none. Raises `LabError`.
        """
        import asyncio

        self._check_payer(submission)
        looked_since = time.monotonic()
        while True:
            found = await self._listed(submission)
            age_s = (datetime.now(UTC) - submission.at).total_seconds()
            if found or max(age_s, time.monotonic() - looked_since) >= self._of.settling_s:
                return found
            await asyncio.sleep(self._of.poll_s)

    def _check_payer(self, submission: Submission) -> None:
        if submission.payer != payer(submission.key, self._of.target.key):
            raise LabError(
                f"the submission of {submission.submitted_at} was sent with another API key: "
                f"look for it with that one, or {self._of.give_up}"
            )

    async def _listed(self, submission: Submission) -> list[str]:
        from ...judge.models.anthropic_batches import TooMany

        known = self._of.submissions.read()[1] | self.strangers
        try:
            listed = await self._of.batches.since(submission.at - CLOCKS_DIFFER)
        except JudgeError as error:
            why = error.detail
        except TooMany:
            why = "too many batches are listed"
        else:
            return [one.id for one in listed if one.id not in known and one.items in (None, len(submission.items))]
        raise LabError(
            f"{self._of.target.place}: whether the submission of {submission.submitted_at} arrived cannot be told ({why}): "
            f"run again, or {self._of.give_up}"
        )
