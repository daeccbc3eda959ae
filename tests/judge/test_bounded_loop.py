"""
An event loop that cannot be kept alive.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from turngate.judge.bounded_loop import DeadlinePassed, before, in_thread, run


def soon(seconds: float = 0.05) -> float:
    return time.monotonic() + seconds


def test_work_that_ends_in_time_gives_its_result() -> None:
    """
    Coroutines and threads alike.
    """

    async def work() -> tuple[int, int]:
        return await before(soon(5), asyncio.sleep(0, 1)), await before(soon(5), in_thread(lambda: 2))

    assert run(work()) == (1, 2)


def test_an_error_of_the_work_is_raised() -> None:
    """
    A deadline changes nothing about errors.
    """

    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run(before(soon(5), in_thread(fail)))


def test_a_thread_that_hangs_is_left_behind() -> None:
    """
    The deadline comes, whatever the thread does.
    """
    release = threading.Event()

    with pytest.raises(DeadlinePassed):
        run(before(soon(), in_thread(release.wait)))

    release.set()


def test_work_that_will_not_be_cancelled_is_left_behind() -> None:
    """
    A connection that hangs in closing keeps nobody.
    """

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(0.005)
            except asyncio.CancelledError:
                if time.monotonic() > give_up_at:
                    raise

    give_up_at = soon(0.3)

    with pytest.raises(DeadlinePassed):
        run(before(soon(), stubborn()))


def test_a_hanging_thread_does_not_keep_the_process_alive() -> None:
    """
    The interpreter's end would wait for the threads of the usual executor, such as a name lookup without an answer.
    """
    code = """
import time
from turngate.judge.bounded_loop import DeadlinePassed, before, in_thread, run
try:
    run(before(time.monotonic() + 0.1, in_thread(lambda: time.sleep(600))))
except DeadlinePassed:
    print("passed")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout, done.stderr) == (0, "passed\n", "")


def test_a_slow_name_lookup_runs_in_a_thread_of_that_kind() -> None:
    """
    The loop's own lookups take the same threads, none of which is joined at the end.
    """

    async def lookup() -> bool:
        await asyncio.get_running_loop().run_in_executor(None, lambda: names.append(threading.current_thread().daemon))
        return names == [True]

    names: list[bool] = []

    assert run(lookup())
