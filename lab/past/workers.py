"""
The processes that read transcripts side by side.
"""

from __future__ import annotations

import signal
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def workers(jobs: int) -> Generator[ProcessPoolExecutor]:
    """
    Give a pool of processes. At the end, what is not begun is dropped and what is begun is waited for: none runs on.
    """
    # Ctrl-C is the parent's: it tells what is done.
    pool = ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        yield pool
    finally:
        # Not by the pool's own `with`, which would do what is left.
        pool.shutdown(cancel_futures=True)
