"""
One call for all who ask about the same stop at once: two installs of the gate, or one entered twice in the settings.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast, get_args

from ..costing.store import StoreError
from ..rubric.verdict import Finding, Verdict, masked
from .clock import utc_now
from .judgement import Ask, AskOutcome, Judgement
from .owners import is_gone, this_process

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
    to an earlier question, and is asked for anew. Where the one who asks is killed, one of the others asks in its place.
    Where nothing can be claimed, everyone asks.
    """

    def ask_or_wait(turn: Turn) -> Judgement:
        if ledger is None:
            return ask(turn)
        try:
            claimed = ledger.claim_judgement(stop, clock(), started_at=started_at, owner=this_process())
        except StoreError:
            return ask(turn)

        published = None if claimed else _wait(stop, ledger, deadline_at, clock)
        return published or _ask_and_publish(ask, turn, stop, ledger, clock)

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


def _wait(stop: str, ledger: Ledger, deadline_at: float, clock: Callable[[], datetime]) -> Judgement | None:
    """
    Wait for the answer; None where the one who was asking is gone and the asking is now ours.
    """
    while time.monotonic() < deadline_at:
        try:
            answer = ledger.published_judgement(stop)
            if answer is None and _is_ours_now(stop, ledger, clock()):
                return None
        except StoreError as error:
            return Judgement("error", detail=str(error))
        if answer is not None:
            return read_judgement(answer)
        time.sleep(max(0.0, min(POLL_S, deadline_at - time.monotonic())))

    return Judgement("timeout", detail="another hook asks about this stop, and had no answer in time")


def _is_ours_now(stop: str, ledger: Ledger, now: datetime) -> bool:
    owner = ledger.claim_owner(stop)
    return is_gone(owner) and ledger.take_over_claim(stop, now, gone=owner, owner=this_process())


def write_judgement(judgement: Judgement) -> str:
    """
    Write a judgement as JSON, masked, and without the calls: they belong to the one who paid for them.
    """
    verdict = None if judgement.verdict is None else masked(judgement.verdict)
    return json.dumps(judgement._replace(verdict=verdict, calls=())._asdict())


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
            _known_text(fields["detail"]),
            _known_text(fields["rubric"]),
            _known_text(fields["rubric_hash"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return Judgement("error", detail="the judgement shared by another hook cannot be read")


def _verdict(findings: list[list[object]], dropped: object) -> Verdict:
    if not isinstance(dropped, int):
        raise TypeError(dropped)
    return Verdict(tuple(Finding(*map(_known_text, finding)) for finding in findings), dropped)


def _known_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
