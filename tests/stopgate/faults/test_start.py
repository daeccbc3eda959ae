"""
What a service can find in its state directory, and several that start at once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.judge.service.sockets import LOCK_NAME

from ..hook_runner import CLAIM, RUNNING_TASK
from .service_stage import AMPLE_S, ANSWERED, Stage, is_running, wait_for

MANY = 6
AUTOSTART = {"TURNGATE_SERVICE_AUTOSTART": "on"}


def garbage_for_a_pid(stage: Stage) -> None:
    (stage.hook.state / LOCK_NAME).write_bytes(b"\xff\0garbage" * 1000)


def the_pid_of_another(stage: Stage) -> None:
    (stage.hook.state / LOCK_NAME).write_text(f"{os.getpid()}\n")


@pytest.mark.parametrize("leave", [garbage_for_a_pid, the_pid_of_another], ids=["garbage", "the-pid-of-another"])
def test_a_lock_file_that_names_no_service(stage: Stage, leave: Callable[[Stage], None]) -> None:
    """
    Only a lock that is held keeps a service from starting; until one does, hooks decide by themselves.
    """
    os.kill(stage.pid, signal.SIGKILL)
    wait_for(lambda: not is_running(stage.pid))
    leave(stage)
    stopped = stage.stop(stage.nobody, background_tasks=[RUNNING_TASK])

    assert stopped.ran.holds
    stage.assert_survived(stopped, outcome="block_background", same_service=False)


def test_services_that_start_at_once(stage: Stage) -> None:
    """
    One of them serves; the others end.
    """
    os.kill(stage.pid, signal.SIGKILL)
    wait_for(lambda: not is_running(stage.pid))
    started = [stage.serve() for _ in range(MANY)]
    wait_for(lambda: sum(one.poll() is None for one in started) == 1 and stage.status())
    stage.service = next(one for one in started if one.poll() is None)
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = stage.stop(api, deadline_s=60.0)

    assert stopped.ran.holds
    stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED], same_service=False)
    assert stage.pid == stage.service.pid


def test_a_service_beside_a_running_one(stage: Stage) -> None:
    """
    It ends, and changes nothing.
    """
    other = stage.serve()
    other.wait(AMPLE_S)
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = stage.stop(api, deadline_s=AMPLE_S)

    stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])


def test_hooks_that_start_a_service_at_once(stage: Stage) -> None:
    """
    All are answered, and one service is there afterwards; the client waits for none of it.
    """
    os.kill(stage.pid, signal.SIGKILL)
    wait_for(lambda: not is_running(stage.pid))
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = stage.stop_all([stage.begin(api, deadline_s=60.0, environ=AUTOSTART) for _ in range(MANY)])
    wait_for(stage.status)

    assert all(one.ran.holds for one in stopped)
    stage.assert_survived(*stopped, outcome="block_verdict", tries=[ANSWERED] * MANY, same_service=False)


def test_a_service_that_is_killed_again_and_again(stage: Stage) -> None:
    """
    Each stop is judged all the same, by a service that its hook starts.
    """
    stopped = []
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        for _ in range(2):
            status = stage.status()
            assert status
            os.kill(status["pid"], signal.SIGKILL)
            wait_for(lambda pid=status["pid"]: not is_running(pid))
            stopped.append(stage.stop(api, deadline_s=60.0, environ=AUTOSTART))
            wait_for(stage.status)

    assert all(one.ran.holds for one in stopped)
    stage.assert_survived(*stopped, outcome="block_verdict", tries=[ANSWERED] * 2, same_service=False)
