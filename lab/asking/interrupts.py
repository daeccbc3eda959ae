"""
Ctrl-C, as something that a coroutine can wait for.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


@contextmanager
def interrupts() -> Generator[asyncio.Queue[None]]:
    """
    Give a queue that gets an entry for each Ctrl-C while the block is open; none where the process was started to ignore it.
    """
    import asyncio

    pressed: asyncio.Queue[None] = asyncio.Queue()
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is signal.SIG_IGN:
        yield pressed
        return

    loop = asyncio.get_running_loop()

    def press(*_: object) -> None:
        loop.call_soon_threadsafe(pressed.put_nowait, None)

    signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, usual)
