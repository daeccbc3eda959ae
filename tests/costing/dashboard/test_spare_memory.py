"""
One heap for all threads, where the C library lets us choose.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

IS_GLIBC = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_info")

COUNT_HEAPS = """
import ctypes, threading
from turngate.costing.dashboard.spare_memory import keep_little
{call}
everybody = threading.Barrier(5)
def work():
    held = [bytearray(4000) for _ in range(50)]
    everybody.wait(20)
    everybody.wait(20)
threads = [threading.Thread(target=work) for _ in range(4)]
for one in threads: one.start()
everybody.wait(20)
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
everybody.wait(20)
"""


def heaps(call: str) -> int:
    ran = subprocess.run(
        [sys.executable, "-c", COUNT_HEAPS.format(call=call)], capture_output=True, text=True, check=True, timeout=60
    )
    return ran.stdout.count("<heap nr=")


@pytest.mark.skipif(not IS_GLIBC, reason="the C library is not glibc")
def test_threads_share_one_heap() -> None:
    """
    Without it each of several threads has one of its own, which never shrinks to nothing.
    """
    assert heaps("keep_little()") == 1
    assert heaps("") > 1
