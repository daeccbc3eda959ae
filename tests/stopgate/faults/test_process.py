"""
What can happen to the service's process at any moment: it is killed, told to end, or does not run.
"""

from __future__ import annotations

import os
import signal

from turngate.judge.scripted_api import ScriptedMessagesApi

from ..hook_runner import CLAIM, RUNNING_TASK
from .service_stage import AMPLE_S, ANSWERED, KILLED, MidCall, Stage, is_running, thaw, wait_for, waiting_at


def kill(process: int, *numbers: int) -> None:
    for number in numbers:
        os.kill(process, number)


def test_killed_in_the_middle_of_a_call(stage: Stage) -> None:
    """
    The turn ends, the call stays open with unknown usage; the next service judges the same stop, and waits for no dead one.
    """
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stop = MidCall(stage, api, deadline_s=AMPLE_S)
        kill(stage.pid, signal.SIGKILL)
        stopped = stop.ended()
        stop.judge.answer()

        assert stopped.ran.out == b""
        stage.assert_survived(stopped, outcome="pass_service_error", tries=[KILLED], same_service=False)
        again = stage.stop(api, session=stop.session, deadline_s=AMPLE_S)
    assert again.ran.holds
    stage.assert_tries({stop.session}, [KILLED, ANSWERED])


def test_killed_while_a_hook_waits_in_its_queue(stage: Stage) -> None:
    """
    A service that never took the connection has decided nothing; the turn ends.
    """
    stage.freeze()
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        begun = stage.begin(api, deadline_s=AMPLE_S)
        begun.feed()
        wait_for(lambda: waiting_at(stage.socket) > 0)
        kill(stage.pid, signal.SIGKILL)
        stopped = stage.noted(begun.ended())

    assert stopped.ran.out == b""
    assert not api.requests
    stage.assert_survived(stopped, outcome="pass_service_error", same_service=False)


def test_told_to_end_in_the_middle_of_a_call_that_is_answered(stage: Stage) -> None:
    """
    A running call is finished first, and its verdict holds.
    """
    with ScriptedMessagesApi() as api:
        stop = MidCall(stage, api, deadline_s=AMPLE_S)
        kill(stage.pid, signal.SIGTERM)
        wait_for(lambda: not stage.socket.exists())
        stop.judge.answer()
        stopped = stop.ended()

    assert stopped.ran.holds
    stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED], same_service=False)


def test_told_to_end_in_the_middle_of_a_call_that_is_not_answered(stage: Stage) -> None:
    """
    The call is cut off by the deadline, and written down before the end.
    """
    with ScriptedMessagesApi() as api:
        stop = MidCall(stage, api)
        kill(stage.pid, signal.SIGTERM)
        stopped = stop.ended()
        stop.judge.answer()

    assert stopped.ran.out == b""
    stage.assert_survived(stopped, outcome="pass_judge_timeout", tries=[("timeout", False)], same_service=False)


def test_told_twice_to_end_in_the_middle_of_a_call(stage: Stage) -> None:
    """
    The second time it ends at once; the turn ends, and has one line, by whoever of the two wrote it.
    """
    process, before = stage.pid, len(stage.hook.log())
    with ScriptedMessagesApi() as api:
        stop = MidCall(stage, api, deadline_s=AMPLE_S)
        kill(process, signal.SIGTERM)
        wait_for(lambda: not stage.socket.exists())
        kill(process, signal.SIGTERM)
        stopped = stop.ended()
        wait_for(lambda: not is_running(process))
        stop.judge.answer()

    assert stopped.ran.out == b""
    # Neither the hook nor the service is there any more: nothing comes later, nor under no session's name.
    assert len(stage.hook.log()) == before + 1
    outcomes = ("pass_service_error", "pass_judge_error")
    stage.assert_survived(stopped, outcome=outcomes, tries=[KILLED], same_service=False)


def test_told_to_end_while_nothing_runs(stage: Stage) -> None:
    """
    It ends with exit code 0, and the stop after it is decided in the hook's process.
    """
    assert stage.service
    kill(stage.pid, signal.SIGTERM)
    assert stage.service.wait(AMPLE_S) == 0
    stopped = stage.stop(stage.nobody, background_tasks=[RUNNING_TASK])

    assert stopped.ran.holds
    stage.assert_survived(stopped, outcome="block_background", same_service=False)


def test_frozen_before_it_takes_the_stop(stage: Stage) -> None:
    """
    The hook waits no longer than the deadline; a service that wakes up later asks nobody for a hook that is gone.
    """
    stage.freeze()
    try:
        with ScriptedMessagesApi(otherwise=CLAIM) as api:
            stopped = stage.stop(api)
            thaw(stage.pid)
            wait_for(lambda: waiting_at(stage.socket) == 0)
            assert stopped.ran.out == b""
            stage.assert_survived(stopped, outcome="pass_service_error")
    finally:
        thaw(stage.pid)
    assert not api.requests


def test_frozen_in_the_middle_of_a_call(stage: Stage) -> None:
    """
    A verdict that comes when nobody waits for it any more spends no continuation.
    """
    with ScriptedMessagesApi() as api:
        stop = MidCall(stage, api)
        stage.freeze(connections=1)
        try:
            stop.judge.answer()
            stopped = stop.ended()
        finally:
            thaw(stage.pid)
        wait_for(lambda: stage.tries({stop.session})[0] != KILLED)
        came = stage.tries({stop.session})
        outcomes = ("pass_service_error", "pass_judge_timeout")
        stage.assert_survived(stopped, outcome=outcomes, tries=came)
        # Whether it wakes up first to the answer or to the deadline is left open.
        assert came in ([ANSWERED], [("timeout", False)])

    assert stopped.ran.out == b""
    assert {line["spent"] for line in stage.lines({stop.session})} <= {0, None}
