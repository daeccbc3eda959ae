"""
What a service can find in its state directory, several that start at once, and what can happen before its first answer.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.judge.service.sockets import LOCK_NAME

from ..hook_runner import CLAIM, PYTHON, RUNNING_TASK
from .service_stage import AMPLE_S, ANSWERED, KILLED, MidCall, Stage, is_running, wait_for

MANY = 6
AUTOSTART = {"TURNGATE_SERVICE_AUTOSTART": "on"}
CHILD_OF_A_HOOK = (
    PYTHON,
    "-I",
    "-c",
    "from turngate.stopgate import hook, starting; starting.WAIT_S = 60; hook.main()",
)
"""The hook, but that it never decides by itself because a busy machine takes long to start its service."""

# The SDK's owner comes to the end of its import once the one file is there, and each opening of a model is a line in the other.
SLOW_IMPORT = """
import importlib.util, sys, time
from pathlib import Path

may_import, opened = map(Path, sys.argv[1:])

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "turngate.judge.models.anthropic_api":
            sys.meta_path.remove(Finder)
            spec = importlib.util.find_spec(name)
            spec.loader.exec_module = late(spec.loader.exec_module)
            return spec

def late(exec_module):
    # Not in the finder: all imports of a process wait for one that looks for its module.
    def waits(module):
        while not may_import.exists():
            time.sleep(0.02)
        exec_module(module)
    return waits

sys.meta_path.insert(0, Finder)
from turngate.judge import connect

def open_model(target, *rest, real=connect.open_model):
    with opened.open("a") as file:
        file.write(target.endpoint + chr(10))
    return real(target, *rest)

connect.open_model = open_model
from turngate.stopgate.serving import main
main()
"""


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


def test_killed_in_the_first_call_of_a_service_that_the_hook_started(stage: Stage) -> None:
    """
    The call is paid for, so the hook makes no second one by itself.
    """
    os.kill(stage.pid, signal.SIGKILL)
    wait_for(lambda: not is_running(stage.pid))
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stop = MidCall(stage, api, deadline_s=60.0, environ=AUTOSTART, command=CHILD_OF_A_HOOK)
        status = stage.status()
        assert status
        os.kill(status["pid"], signal.SIGKILL)
        stopped = stop.ended()
        stop.judge.answer()

    assert stopped.ran.out == b""
    assert len(api.requests) == 1
    stage.assert_survived(stopped, outcome="pass_service_error", tries=[KILLED], same_service=False)


class SlowImport:
    """
    A user whose service comes to no end with its first import of the SDK, until it may.
    """

    def __init__(self, folder: Path) -> None:
        self.stage = Stage(folder)
        self._may_import = folder / "may-import"
        self._opened = folder / "opened"

    def start(self) -> None:
        command = (sys.executable, "-I", "-c", SLOW_IMPORT, str(self._may_import), str(self._opened))
        self.stage.service = self.stage.serve(command)
        wait_for(self.stage.status)
        self.stage.pid = self.stage.service.pid

    def may_import(self) -> None:
        self._may_import.touch()

    def opened(self, url: str) -> int:
        """
        Give how often a model was opened at this address.
        """
        return self._opened.read_text().splitlines().count(url)


@pytest.fixture(name="slow")
def start_slowly(short_path: Path) -> Iterator[SlowImport]:
    slow = SlowImport(short_path)
    try:
        slow.start()
        yield slow
    finally:
        slow.stage.end()


def test_an_import_of_the_sdk_that_takes_longer_than_the_deadline(slow: SlowImport) -> None:
    """
    Stops end by their deadline meanwhile, and wait for one and the same import; the first one after it is judged.
    """
    stage = slow.stage
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        late = stage.stop_all([stage.begin(api) for _ in range(2)])
        asked = len(api.requests)
        slow.may_import()
        stopped = stage.stop(api, deadline_s=60.0)

    assert [one.ran.out for one in late] == [b""] * 2
    assert asked == 0
    assert stopped.ran.holds
    assert slow.opened(api.url) == 1
    stage.assert_survived(*late, outcome="pass_judge_timeout")
    stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])
