"""
A command that a signal ends tidies up first.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


class _Ended(BaseException):
    """
    A signal that ends the process.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def ended_by_signals() -> Generator[None]:
    """
    Let SIGTERM, SIGHUP and SIGQUIT end the process as they do, but after the block has put its things in order.
    """
    import signal

    def end(number: int, _frame: object) -> None:
        for one in usual:
            signal.signal(one, signal.SIG_IGN)
        raise _Ended(number)

    usual = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)}
    usual = {number: before for number, before in usual.items() if before is not signal.SIG_IGN}
    for number in usual:
        signal.signal(number, end)
    try:
        yield
    except _Ended as ended:
        signal.signal(ended.number, signal.SIG_DFL)
        signal.raise_signal(ended.number)
    finally:
        for number, before in usual.items():
            signal.signal(number, before)
