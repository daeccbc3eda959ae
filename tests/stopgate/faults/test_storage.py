"""
What can happen to the state directory, its disk and the clock while the service runs.
"""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest

from turngate.judge.scripted_api import ScriptedMessagesApi, fails

from ..hook_runner import CLAIM, RUNNING_TASK
from .service_stage import AMPLE_S, ANSWERED, MidCall, Stage, is_running, wait_for

TASKS = [RUNNING_TASK]

Fault = Callable[[Stage], AbstractContextManager[None]]

# `time.time` and `datetime.now` of this process follow the file, which holds seconds. `-I` leaves no other way in.
CLOCK_OF_A_FILE = """
import datetime, sys, time

def offset(path=sys.argv.pop()):
    with open(path) as file:
        return float(file.read())

class Shifted(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(seconds=offset())

real = time.time
time.time = lambda: real() + offset()
datetime.datetime = Shifted
from turngate.stopgate.serving import main
main()
"""


@contextmanager
def a_locked_store(stage: Stage) -> Generator[None]:
    """
    Keep everybody else from writing, for longer than anybody waits.
    """
    with closing(sqlite3.connect(stage.hook.state / "turngate.db", isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def a_full_file(stage: Stage) -> Generator[None]:
    """
    Let no file of the service grow any more.
    """
    before = resource.prlimit(stage.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(stage.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    yield
    resource.prlimit(stage.pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def a_full_disk(stage: Stage) -> Generator[None]:
    """
    Fill the file system of the state directory to its last byte.
    """
    assert os.path.ismount(stage.hook.state)
    with closing(sqlite3.connect(stage.hook.state / "turngate.db")) as database:
        # The log that SQLite writes ahead keeps its room otherwise.
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    filler = stage.hook.state / "turngate.filler"
    with filler.open("wb", buffering=0) as file:
        size = 1 << 16
        while size:
            try:
                file.write(b"x" * size)
            except OSError:
                size //= 2
    yield
    filler.unlink()


@pytest.fixture(name="small_disk", scope="module")
def mount_a_small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """
    A user whose state directory is a file system of 4 MB.
    """
    stage = Stage(tmp_path_factory.mktemp("disk"))
    stage.hook.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700", "none", str(stage.hook.state)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here: it takes root")
    try:
        yield stage
    finally:
        stage.end()
        subprocess.run(["umount", str(stage.hook.state)], check=True)


STORES = [pytest.param(a_locked_store, id="locked"), pytest.param(a_full_file, id="no-file-may-grow")]


@pytest.mark.parametrize("fault", STORES)
def test_a_store_that_cannot_be_written(stage: Stage, fault: Fault) -> None:
    """
    Nothing is held that could not be counted; the lines are owed, and written once that is possible.
    """
    check_unwritable(stage, fault)


def test_a_disk_without_any_room(small_disk: Stage) -> None:
    """
    The same on a real file system that is full.
    """
    small_disk.ready()
    check_unwritable(small_disk, a_full_disk)


def check_unwritable(stage: Stage, fault: Fault) -> None:
    with ScriptedMessagesApi(otherwise=CLAIM) as api, fault(stage):
        first = stage.stop(api)
        waits = stage.stop(api, background_tasks=TASKS)
        claims = stage.stop(api)
        before = stage.status()
    assert before
    assert before["pid"] == stage.pid
    assert (first.ran.out, waits.ran.out, claims.ran.out) == (b"", b"", b"")
    assert b"turngate.db" in claims.ran.err
    # From the first on lines are owed, and nobody is asked: nothing could be held, and no budget would know of the call.
    stage.assert_survived(first, outcome="pass_state_error", tries=[ANSWERED])
    stage.assert_survived(waits, claims, outcome="pass_state_error", tries=[])


def test_a_store_that_becomes_full_in_the_middle_of_a_call(stage: Stage) -> None:
    """
    The call was written down before; its verdict holds nothing.
    """
    with ScriptedMessagesApi() as api:
        stop = MidCall(stage, api, deadline_s=AMPLE_S)
        with a_full_file(stage):
            stop.judge.answer()
            stopped = stop.ended()

    assert stopped.ran.out == b""
    stage.assert_survived(stopped, outcome="pass_state_error", tries=[ANSWERED])


def test_state_directory_removed_while_idle(stage: Stage) -> None:
    """
    Its service ends by itself; the stop is decided without it, and the next one by a new one.
    """
    before = stage.pid
    shutil.rmtree(stage.hook.state)
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = stage.stop(api, deadline_s=60.0)

    assert stopped.ran.holds
    stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED], same_service=False)
    wait_for(lambda: not is_running(before))


def test_state_directory_removed_in_the_middle_of_a_call(stage: Stage) -> None:
    """
    What would be counted where nobody looks is not held: the same turn would be held without end. The call was paid for all the same, and
    is in the new ledger.
    """
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stop = MidCall(stage, api, deadline_s=AMPLE_S)
        shutil.rmtree(stage.hook.state)
        stop.judge.answer()
        stopped = stop.ended()
        assert stopped.ran.out == b""
        stage.ready()

        again = [stage.stop(api, session=stop.session, deadline_s=AMPLE_S) for _ in range(3)]
    assert [one.ran.holds for one in again] == [True, True, False]
    outcomes = ("pass_state_error", "block_verdict", "pass_cap_spent")
    stage.assert_survived(stopped, *again, outcome=outcomes, tries=[ANSWERED] * 3)
    assert len(api.requests) == 3


def test_store_removed_while_the_service_runs(stage: Stage) -> None:
    """
    A new one is made, by the same service.
    """
    for path in stage.hook.state.glob("turngate.db*"):
        path.unlink()
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        stopped = stage.stop(api, deadline_s=AMPLE_S)

    assert stopped.ran.holds
    stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])


def test_socket_removed_while_the_service_runs(stage: Stage) -> None:
    """
    A service that nobody can reach ends.
    """
    before = stage.pid
    stage.socket.unlink()
    stopped = stage.stop(stage.nobody, background_tasks=TASKS)
    wait_for(lambda: not is_running(before))

    assert stopped.ran.holds
    stage.assert_survived(stopped, outcome="block_background", same_service=False)


def test_a_file_in_place_of_the_state_directory(stage: Stage) -> None:
    """
    Nothing can be counted, so nothing is held; the line on standard error says why.
    """
    shutil.rmtree(stage.hook.state)
    stage.hook.state.write_bytes(b"")
    stopped = stage.stop(stage.nobody, background_tasks=TASKS)
    stage.hook.state.unlink()

    assert stopped.ran.out == b""
    assert stopped.ran.err
    # There was no ledger for its line.
    stage.assert_survived(stopped, outcome=(), lines=range(1), same_service=False)


@pytest.fixture(name="clock_stage", scope="module")
def serve_by_a_clock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("clock"))
    clock = stage.hook.home / "clock"
    clock.write_text("0")
    stage.ready((sys.executable, "-I", "-c", CLOCK_OF_A_FILE, str(clock)))
    yield stage
    stage.end()


@pytest.fixture(name="clock")
def set_a_clock(clock_stage: Stage) -> Iterator[Path]:
    """
    The file by which the clock of the service goes.
    """
    clock = clock_stage.hook.home / "clock"
    yield clock
    clock.write_text("0")


BACK = str(-3600)


def test_clock_set_back_an_hour_between_two_stops_of_a_turn(clock: Path, clock_stage: Stage) -> None:
    """
    The turn was held once and is not held more than once again; other turns are judged as ever.
    """
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        first = clock_stage.stop(api, deadline_s=AMPLE_S)
        clock.write_text(BACK)
        later = [clock_stage.stop(api, session=first.session, deadline_s=AMPLE_S) for _ in range(3)]

    assert first.ran.holds
    outcomes = ("block_verdict", "pass_state_error", "pass_cap_spent")
    tries = [ANSWERED] * len(api.requests)
    clock_stage.assert_survived(first, *later, outcome=outcomes, tries=tries)


def test_clock_set_back_an_hour_in_the_middle_of_a_call(clock: Path, clock_stage: Stage) -> None:
    """
    The verdict holds, and the stop after it is judged.
    """
    with ScriptedMessagesApi() as api:
        stop = MidCall(clock_stage, api, deadline_s=AMPLE_S)
        clock.write_text(BACK)
        stop.judge.answer()
        stopped = stop.ended()

    assert stopped.ran.holds
    clock_stage.assert_survived(stopped, outcome="block_verdict", tries=[ANSWERED])


def test_clock_set_back_an_hour_while_an_endpoint_is_left_alone(clock: Path, clock_stage: Stage) -> None:
    """
    Failures of the future keep nobody from asking.
    """
    with ScriptedMessagesApi(otherwise=fails(500)) as api:
        for _ in range(2):
            clock_stage.stop(api, deadline_s=AMPLE_S)
        clock.write_text(BACK)
        asked = len(api.requests)
        stopped = clock_stage.stop(api, deadline_s=AMPLE_S)
        assert len(api.requests) > asked

    clock_stage.assert_survived(
        stopped, outcome="pass_judge_error", tries=[("error", False)] * (len(api.requests) - asked)
    )
