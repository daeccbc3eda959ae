"""
How little memory the service keeps for pages that were shown: it stays for days, and shows few.
"""

from __future__ import annotations

from typing import Final

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8
"""Of glibc's `malloc.h`."""

LARGE: Final = 128 * 1024
"""Bytes: what is larger goes back to the machine as soon as it is not needed, always, and not until the first has gone."""


def keep_little() -> None:
    """
    Have the C library keep one heap for all threads; without it each that made a page once keeps what that took.

    For a process whose threads are not yet there. Does nothing where the C library is another.
    """
    try:
        import ctypes

        set_option = ctypes.CDLL(None).mallopt
    except (ImportError, OSError, AttributeError, TypeError):  # not glibc
        return
    set_option(_ARENA_MAX, 1)
    set_option(_MMAP_THRESHOLD, LARGE)
