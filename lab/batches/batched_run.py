"""
What the steps of a batched run share: the run, whom it asks, and where it writes down what becomes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ...costing.ledger import Ledger
from ...costing.records import BATCH, CallStart
from ...judge.connect import Target
from ..runs import Run
from .results import NOT_ANSWERED
from .submissions import Submission, Submissions

if TYPE_CHECKING:
    from ...judge.models.anthropic_batches import AnthropicBatches


class BatchRun(NamedTuple):
    """
    A run that goes through the Message Batches API.
    """

    run: Run
    target: Target
    ledger: Ledger
    batches: AnthropicBatches
    submissions: Submissions
    say: Callable[[str], None]
    poll_s: float
    settling_s: float

    @property
    def give_up(self) -> str:
        """
        How somebody gets out who knows that a submission is lost.
        """
        return f"remove {self.submissions.path} to give it up and pay anew"

    def start(self, submission: Submission) -> CallStart:
        """
        Give the start of each of its lines in the ledger.
        """
        manifest = self.run.manifest
        return CallStart(
            at=submission.at,
            backend=BATCH,
            model=submission.model,
            endpoint=submission.endpoint,
            rubric=manifest.rubric,
            rubric_hash=manifest.rubric_hash,
            event="lab",
            project="lab",
        )

    def never_created(self, submission: Submission) -> None:
        """
        Write down that a submission became no batch: its questions can be asked again, and cost nothing.
        """
        for item in submission.questions.values():
            self.ledger.settle_call(item.call, self.start(submission), NOT_ANSWERED)
        self.submissions.ended(submission, "not created")
