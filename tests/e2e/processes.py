"""
Processes known by a variable in their environment, wherever they were adopted to, and what they hold (Linux only; else none).
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Process(NamedTuple):
    """
    A process as it was found.
    """

    pid: int
    command: str

    @property
    def is_alive(self) -> bool:
        """
        Whether it still runs; one that has ended and was not waited for does not.
        """
        try:
            return (_PROC / str(self.pid) / "stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
        except OSError:
            return False

    @property
    def cwd(self) -> str:
        """
        Its working directory.
        """
        return str((_PROC / str(self.pid) / "cwd").readlink())

    @property
    def descriptors(self) -> dict[int, str]:
        """
        What lies behind each of its descriptors, in the system's words: a path, or as `socket:[12345]`.
        """
        found: dict[int, str] = {}
        for link in (_PROC / str(self.pid) / "fd").iterdir():
            # One that was closed meanwhile is not held.
            with suppress(FileNotFoundError):
                found[int(link.name)] = str(link.readlink())
        return found


def processes_with(variable: str) -> list[Process]:
    """
    Find the processes that run with this `NAME=value`.
    """
    found: list[Process] = []
    for place in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            if variable.encode() in (place / "environ").read_bytes().split(b"\0"):
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found.append(Process(int(place.name), command))
    return found


def kill_all_with(variable: str) -> None:
    """
    Kill them.
    """
    for process in processes_with(variable):
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
