"""
An event loop that nothing can keep alive: no thread, no name lookup and no closing connection outlives its result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

IDLE_S = 5.0
"""A thread without work ends after so long."""

FAREWELL_S = 0.05
"""For cancelled tasks to end properly; those that do not are left behind."""


class DeadlinePassed(Exception):
    """
    The deadline came first.
    """


def run(work: Coroutine[Any, Any, T]) -> T:
    """
    Run a coroutine in a loop of its own, and leave behind whatever it started and did not end.
    """
    import asyncio

    loop = asyncio.new_event_loop()
    loop.set_default_executor(_DaemonThreads())
    loop.set_exception_handler(_say_nothing)
    loop.set_debug(False)  # PYTHONASYNCIODEBUG and -X dev would write to stderr
    try:
        return loop.run_until_complete(work)
    finally:
        _end_tasks(loop)
        loop.close()


async def before(deadline_at: float, work: Awaitable[T]) -> T:
    """
    Wait for some work until `deadline_at` (on `time.monotonic`'s clock), then raise DeadlinePassed.

    The work is told to stop and not waited for: `asyncio.timeout` would wait, and a connection may hang in closing.
    """
    import asyncio

    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=max(0.0, deadline_at - time.monotonic()))
    finally:
        if not task.done():
            task.cancel()
    # Not `task.done()`: what is no task of its own, such as a shield, is done as soon as it is cancelled.
    if not done:
        raise DeadlinePassed

    return task.result()


async def in_thread(work: Callable[[], T]) -> T:
    """
    Do slow work, such as an import, while the loop goes on.
    """
    import asyncio

    return await asyncio.get_running_loop().run_in_executor(None, work)


class _DaemonThreads(ThreadPoolExecutor):
    """
    A daemon thread for each piece of work, an idle one where there is one.

    The interpreter joins the threads of the usual executor at its end: one hanging name lookup would keep a hook alive.
    """

    def __init__(self) -> None:
        super().__init__()
        self._given: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._waiting = 0
        """Threads that wait for work and to which none was given yet."""
        self._changing = threading.Lock()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as exc:
                future.set_exception(exc)
            else:
                future.set_result(result)

        with self._changing:
            is_taken = self._waiting > 0
            self._waiting -= is_taken
        if is_taken:
            self._given.put(work)
        else:
            threading.Thread(target=self._work_on, args=(work,), daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """
        Let idle threads end; nothing is waited for.
        """
        with self._changing:
            idle, self._waiting = self._waiting, 0
        for _ in range(idle):
            self._given.put(None)

    def _work_on(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            work()
            del work  # what it refers to is not kept while there is nothing to do
            with self._changing:
                self._waiting += 1
            work = self._next()

    def _next(self) -> Callable[[], None] | None:
        while True:
            try:
                return self._given.get(timeout=IDLE_S)
            except Empty:
                with self._changing:
                    if self._waiting:
                        self._waiting -= 1
                        return None


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=FAREWELL_S))


def _say_nothing(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    # What is left behind would be reported on stderr, which belongs to the hook.
    return
