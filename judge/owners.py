"""
Who owns a claim: a process of a machine, and whether it is gone.
"""

from __future__ import annotations

import os


def this_process() -> str:
    """
    Name this process: its id, and where that id holds.
    """
    return f"{os.getpid()}@{_machine()}"


def is_gone(owner: str) -> bool:
    """
    Say whether a process has certainly ended; False where that cannot be known, as of another machine's.
    """
    pid, _, machine = owner.partition("@")
    # On Windows, os.kill would end what it asks about.
    if os.name != "posix" or machine != _machine() or not pid.isascii() or not pid.isdigit() or int(pid) == 0:
        return False
    return has_ended(int(pid))


def has_ended(pid: int) -> bool:
    """
    Say whether a process of this machine has certainly ended.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return _waits_for_its_parent(pid)


def _waits_for_its_parent(pid: int) -> bool:
    """
    Say whether a process has ended and only stands in the table still, as in a container whose first process waits for nobody.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:
        return False


def _machine() -> str:
    if os.name != "posix":
        return ""
    try:
        # Two containers may share a name and a store, and not their process ids.
        return f"{os.uname().nodename} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115
    except OSError:
        return os.uname().nodename
