"""
Many stops at once: each is answered in time, and one turn is held once at one stop.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from turngate.judge.scripted_api import Says, ScriptedMessagesApi

from ..hook_runner import CLAIM, PYTHON, RUNNING_TASK
from .service_stage import ANSWERED, Stage, thaw, wait_for, waiting_at
from .test_upstream import A_CLAIM

LONG_S = 30.0
"""A machine with two cores takes seconds to start two hundred processes."""

MOSTLY = 0.95
"""The rest may find the store busy for too long."""

PATIENT = (PYTHON, "-I", "-c", "from turngate.stopgate import hook; hook.INPUT_WAIT_S = 60; hook.main()")
"""The hook, but that it waits for its input until all the others have started too."""

WITHOUT_SERVICE = (
    PYTHON,
    "-I",
    "-c",
    "from turngate.stopgate import hook, relay; relay.relayed_event = lambda *_: None; hook.main()",
)
"""The hook, but that it decides in its own process."""


def test_64_stops_of_one_turn_that_are_judged(stage: Stage) -> None:
    """
    One call is made, one continuation is spent, and one hook answers with it.
    """
    session = stage.new_session()
    with ScriptedMessagesApi(otherwise=Says(A_CLAIM, delay_s=0.2)) as api:
        begun = [stage.begin(api, session=session, deadline_s=LONG_S, command=PATIENT) for _ in range(64)]
        stopped = stage.stop_all(begun)

    assert sum(one.ran.holds for one in stopped) == 1
    assert len(api.requests) == 1
    stage.assert_survived(*stopped, outcome=("block_verdict", "pass_state_error"), tries=[ANSWERED])


def test_64_stops_of_one_turn_that_wait_for_a_task(stage: Stage) -> None:
    """
    The same without a model: the task holds one of them.
    """
    session = stage.new_session()
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        begun = [
            stage.begin(api, session=session, deadline_s=LONG_S, command=PATIENT, background_tasks=[RUNNING_TASK])
            for _ in range(64)
        ]
        stopped = stage.stop_all(begun)

    assert sum(one.ran.holds for one in stopped) == 1
    assert not api.requests
    stage.assert_survived(*stopped, outcome=("block_background", "pass_state_error"))


def test_two_installs_of_which_one_waits_in_the_queue(stage: Stage) -> None:
    """
    A stop is as old as its hook, however late the service comes to read it: what was held since then is not held again.
    """
    session = stage.new_session()
    stage.freeze()
    try:
        waits = stage.begin(stage.nobody, session=session, deadline_s=LONG_S, background_tasks=[RUNNING_TASK])
        waits.feed()
        wait_for(lambda: waiting_at(stage.socket) > 0)
        other = RUNNING_TASK | {"id": "b2"}
        held = stage.stop(stage.nobody, session=session, command=WITHOUT_SERVICE, background_tasks=[other])
        # Another turn's stop, so that more time has passed than the first hook took to send its own.
        stage.stop(stage.nobody, command=WITHOUT_SERVICE, background_tasks=[other])
    finally:
        thaw(stage.pid)
    late = stage.noted(waits.ended())

    assert (held.ran.holds, late.ran.holds) == (True, False)
    stage.assert_survived(held, late, outcome=("block_background", "pass_state_error"))


def test_stops_of_one_turn_without_end(stage: Stage) -> None:
    """
    Hooks that stop one after the other, eight at a time, spend two continuations in all.
    """
    session = stage.new_session()
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = [
            one
            for _ in range(4)
            for one in stage.stop_all(
                [stage.begin(api, session=session, deadline_s=LONG_S, command=PATIENT) for _ in range(8)]
            )
        ]

    assert sum(one.ran.holds for one in stopped) == 2
    outcomes = ("block_verdict", "pass_state_error", "pass_cap_spent")
    stage.assert_survived(*stopped, outcome=outcomes, tries=[ANSWERED] * 2)


def test_200_parallel_turns(stage: Stage, record_property: Callable[[str, object], None]) -> None:
    """
    Each of them is judged by a call of its own, and held; few may pass because the store has no time to count them.
    """
    turns = 200
    with ScriptedMessagesApi(otherwise=Says(A_CLAIM, delay_s=0.5)) as api, ThreadPoolExecutor(turns) as pool:
        stopped = list(pool.map(lambda _: stage.stop(api, deadline_s=LONG_S), range(turns)))

    held = sum(one.ran.holds for one in stopped)
    p95_s = sorted(one.took_s for one in stopped)[int(MOSTLY * turns)]
    record_property("figure", f"{held} of {turns} held, 95 % of the hooks took less than {p95_s:.1f} s")
    assert held >= MOSTLY * turns
    assert len(api.requests) == turns
    stage.assert_survived(*stopped, outcome=("block_verdict", "pass_state_error"), tries=[ANSWERED] * turns)
