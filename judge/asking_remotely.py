"""
Asking a team's service from a process that is about one stop only.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from .bounded_loop import DeadlinePassed, before, in_thread, run
from .judgement import Ask, Judgement

if TYPE_CHECKING:
    from ..rubric.turn import Turn
    from .connect import Target
    from .remote import RemoteJudge

CLOSING_S = 0.1


def ask_remotely(target: Target, *, deadline_at: float) -> Ask:
    """
    Give a judge that returns by `deadline_at`, on `time.monotonic`'s clock.
    """

    def ask(turn: Turn) -> Judgement:
        return run(_open_and_judge(turn, target, deadline_at))

    return ask


def open_remote(target: Target) -> RemoteJudge:
    """
    Open the service that a target names. Slow the first time: it imports the HTTP client.
    """
    from .remote import RemoteJudge

    return RemoteJudge(target.endpoint, token=target.key, variable=target.key_variable)


async def _open_and_judge(turn: Turn, target: Target, deadline_at: float) -> Judgement:
    try:
        judge = await before(deadline_at, in_thread(lambda: open_remote(target)))
    except DeadlinePassed:
        return Judgement("timeout", detail="the deadline passed before the team's service could be asked")
    except Exception as error:  # importing a library runs other people's code
        return Judgement("error", detail=" ".join(str(error).split())[:200])

    judgement = await judge.judge(turn, deadline_at=deadline_at)
    with contextlib.suppress(Exception):  # the answer is there: nothing in closing may take it away
        await before(time.monotonic() + CLOSING_S, judge.close())
    return judgement
