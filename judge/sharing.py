"""
One call for all who ask about the same stop at once: two installs of the gate, or one entered twice in the settings.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast, get_args

from ..costing.database import StoreError
from ..rubric.verdict import Finding, Verdict
from .clock import utc_now
from .judgement import Ask, AskOutcome, Judgement

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from ..rubric.turn import Turn

POLL_S = 0.03


def shared(
    ask: Ask,
    stop: str,
    ledger: Ledger | None,
    *,
    started_at: datetime,
    deadline_at: float,
    clock: Callable[[], datetime] = utc_now,
) -> Ask:
    """
    Give a judge that asks once for all processes with the same `stop`.

    The first to come asks and publishes its judgement, whatever it is; the others wait for it until `deadline_at` and
    get it without calls of their own. An answer published before `started_at`, the start of this hook's process, is one
    to an earlier question, and is asked for anew. Where nothing can be claimed, everyone asks.
    """

    def ask_or_wait(turn: Turn) -> Judgement:
        if ledger is None:
            return ask(turn)
        try:
            claimed = ledger.claim_judgement(stop, clock(), started_at=started_at)
        except StoreError:
            return ask(turn)

        return _ask_and_publish(ask, turn, stop, ledger, clock) if claimed else _wait(stop, ledger, deadline_at)

    return ask_or_wait


def _ask_and_publish(ask: Ask, turn: Turn, stop: str, ledger: Ledger, clock: Callable[[], datetime]) -> Judgement:
    # What an owner that breaks leaves behind for those who wait.
    judgement = Judgement("error", detail="the hook that asked about this stop broke off")
    try:
        judgement = ask(turn)
        return judgement
    finally:
        _publish(stop, judgement, ledger, clock())


def _publish(stop: str, judgement: Judgement, ledger: Ledger, now: datetime) -> None:
    try:
        ledger.publish_judgement(stop, write_judgement(judgement), now)
    except StoreError:
        return  # those who wait give up at their deadline


def _wait(stop: str, ledger: Ledger, deadline_at: float) -> Judgement:
    while time.monotonic() < deadline_at:
        try:
            answer = ledger.published_judgement(stop)
        except StoreError as error:
            return Judgement("error", detail=str(error))
        if answer is not None:
            return read_judgement(answer)
        time.sleep(max(0.0, min(POLL_S, deadline_at - time.monotonic())))

    return Judgement("timeout", detail="another hook asks about this stop, and had no answer in time")


def write_judgement(judgement: Judgement) -> str:
    """
    Write a judgement as JSON, without the calls: they belong to the one who paid for them.
    """
    return json.dumps(judgement._replace(calls=())._asdict())


def read_judgement(text: str) -> Judgement:
    """
    Read back what `write_judgement` wrote; anything else is a judgement of outcome `error`.
    """
    try:
        fields = cast("dict[str, Any]", json.loads(text))
        outcome, verdict = fields["outcome"], fields["verdict"]
        if outcome not in get_args(AskOutcome):
            raise ValueError(outcome)
        return Judgement(
            outcome,
            None if verdict is None else _verdict(*verdict),
            fields["detail"],
            fields["rubric"],
            fields["rubric_hash"],
        )
    except (ValueError, TypeError, KeyError):
        return Judgement("error", detail="the judgement shared by another hook cannot be read")


def _verdict(findings: list[list[str]], dropped: int) -> Verdict:
    return Verdict(tuple(Finding(*finding) for finding in findings), dropped)
