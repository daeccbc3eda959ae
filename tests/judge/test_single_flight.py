"""
One call for all threads that ask about the same stop at once.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from turngate.judge.judgement import Judgement
from turngate.judge.single_flight import SingleFlight

FAR = 60.0


class Call:
    """
    A call that ends when it is told to, and counts how often it was made.
    """

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.times = 0

    def __call__(self) -> Judgement:
        self.times += 1
        self.begun.set()
        self.may_end.wait(FAR)
        return Judgement("answered", detail="the one answer", calls=("c1",))


def test_all_who_ask_about_one_stop_at_once_share_one_call() -> None:
    """
    Sixty-four threads, one call; only the one who paid has its line.
    """
    flights, call = SingleFlight(), Call()

    def ask() -> Judgement:
        return flights.ask("stop", call, deadline_at=time.monotonic() + FAR)

    with ThreadPoolExecutor(64) as threads:
        first = threads.submit(ask)
        call.begun.wait(FAR)
        others = [threads.submit(ask) for _ in range(63)]
        call.may_end.set()
        answers = [first.result(), *(other.result() for other in others)]

    assert {answer.detail for answer in answers} == {"the one answer"}
    # Whoever came only after the end has made a call of their own.
    assert sum(answer.calls == ("c1",) for answer in answers) == call.times


def test_another_stop_is_another_call() -> None:
    """
    What is asked about one stop does not wait for another.
    """
    flights, slow = SingleFlight(), Call()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: flights.ask("one", slow, deadline_at=time.monotonic() + FAR))
        slow.begun.wait(FAR)

        other = flights.ask("two", lambda: Judgement("refused"), deadline_at=time.monotonic() + FAR)
        assert not waiting.done()
        slow.may_end.set()

    assert other.outcome == "refused"
    assert waiting.result().outcome == "answered"


def test_who_waits_keeps_its_own_deadline() -> None:
    """
    A hook that came with little time left gives up before the one that asks.
    """
    flights, slow = SingleFlight(), Call()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: flights.ask("stop", slow, deadline_at=time.monotonic() + FAR))
        slow.begun.wait(FAR)

        late = flights.ask("stop", slow, deadline_at=time.monotonic())
        slow.may_end.set()

    assert late.outcome == "timeout"
    assert slow.times == 1


def test_a_call_that_breaks_leaves_an_error_and_no_trace() -> None:
    """
    Those who wait get an outcome, and the next who asks makes a call.
    """
    flights, begun, may_break = SingleFlight(), threading.Event(), threading.Event()

    def breaks() -> Judgement:
        begun.set()
        may_break.wait(FAR)
        raise RuntimeError("a fault of ours")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lambda: flights.ask("stop", breaks, deadline_at=time.monotonic() + FAR))
        begun.wait(FAR)
        second = threads.submit(
            lambda: flights.ask("stop", lambda: Judgement("error"), deadline_at=time.monotonic() + FAR)
        )
        may_break.set()

        with pytest.raises(RuntimeError, match="a fault of ours"):
            first.result()
        assert second.result(FAR).outcome == "error"

    assert flights.ask("stop", lambda: Judgement("refused"), deadline_at=time.monotonic() + FAR).outcome == "refused"
