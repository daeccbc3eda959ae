"""
`turngate-hook`: from standard input to standard output, for the client. It always exits 0 and prints nothing but its answer.

This is the one place where exceptions end. Imports are made where they are needed: most stops are relayed to a service, and need none
that costs.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

else:
    try:
        import posix as os  # what `os` is made of, without the 2 ms that it costs
    except ImportError:  # Windows
        import os

GUARD = "TURNGATE_GUARD"
"""Set in the environment of every client that turngate itself starts, so that the hooks in there do nothing."""

INPUT_LIMIT = 4 * 1024 * 1024
"""Many times an event of the client; masking and reading a longer one would outlast the hook's timeout."""

INPUT_WAIT_S = 5.0
"""The client sends its input at once and closes; who does not is not waited for."""

LAST_WORDS_S = 2.0
"""For the line about a failure, which may come after the deadline."""

_NOWHERE = "nul" if sys.platform == "win32" else "/dev/null"


def main() -> None:
    """
    Answer one event and end the process.
    """
    try:
        if _is_guarded():
            _read_input()
        else:
            _answer_once()
    finally:
        # Not `sys.exit`: a library's thread that still waits for the network must not keep the client waiting. And whatever
        # was raised where it could not be caught yet ends here, without a traceback.
        os._exit(0)


def _is_guarded() -> bool:
    """
    Whether this client was started by turngate itself. A project that sets the guard would switch the gate off: that does not count.
    """
    # `posix` knows the variables as bytes.
    if {GUARD, GUARD.encode()}.isdisjoint(os.environ):
        return False
    from .process_environ import trusted_environ
    from .relay import LOOKING_S, end_after

    end_after(LOOKING_S)
    guarded = bool(trusted_environ().get(GUARD))
    end_after(0)
    return guarded


def _answer_once() -> None:
    monotonic = _started_at()
    out, err = _own_channels()
    data = b""
    try:
        data = _read_input()
        stdout, stderr = _answer(data, monotonic)
        _write(out, stdout)
        _say(err, stderr)
    except BaseException as error:
        _report(error, data, monotonic, err)


def _answer(data: bytes, monotonic: float) -> tuple[bytes, bytes]:
    """
    Give what to write to standard output and to standard error.
    """
    from .relay import is_tool_check, relayed_event

    relayed = relayed_event(data, monotonic)
    if relayed and relayed.status == "answered":
        return relayed.stdout, relayed.notice
    is_lost = relayed is not None and relayed.status in ("broken", "hung_up")
    if is_lost and is_tool_check(data):
        return b"", b""  # a tool waits: there is no time to write down why
    _find_libraries()
    from os import environ

    from .answering import clock_since
    from .in_process import answer_event, log_outcome

    clock = clock_since(monotonic)
    if relayed and is_lost:
        # Not decided here: the service may have paid for an answer already.
        _end_by_itself()
        answer = log_outcome("pass_service_error", relayed.detail, data, environ, clock, relayed.decision_id)
    else:
        answer = answer_event(data, environ, clock)
    return answer.stdout, answer.stderr


def _find_libraries() -> None:
    """
    Make up for `python -S`, which spares most stops the search for libraries that they do not need.
    """
    if sys.flags.no_site and "site" not in sys.modules:
        import site

        site.main()


def _end_by_itself() -> None:
    """
    End the process soon, whatever hangs: a turn must not be trapped by the wish to log why.
    """
    from threading import Timer

    timer = Timer(LAST_WORDS_S, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _started_at() -> float:
    """
    Give the time of `time.monotonic` at which this process was started: before its first line, by the interpreter's own start.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            # Told in whole ticks, rounded down. The next one: no process may seem older than the stop that it followed.
            ticks = int(file.read().rpartition(b")")[2].split()[19]) + 1
        running_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        running_s = 0.0
    return time.monotonic() - (running_s if 0 <= running_s <= INPUT_WAIT_S else 0.0)


def _own_channels() -> tuple[int, int]:
    """
    Take the standard channels for ourselves, so that nothing that a library prints reaches the client.
    """
    # The number of a closed channel would be given to the next file that is opened, the database among them.
    while (spare := os.open(_NOWHERE, os.O_RDWR)) <= 2:
        pass
    out, err = os.dup(1), os.dup(2)
    os.dup2(spare, 1)
    os.dup2(spare, 2)
    return out, err


def _read_input() -> bytes:
    parts: list[bytes] = []
    size = 0
    give_up_at = time.monotonic() + INPUT_WAIT_S
    while (left_s := give_up_at - time.monotonic()) > 0 and _is_readable(left_s) and (part := os.read(0, 1 << 20)):
        size += len(part)
        # Too much is read to its end all the same: the client must not meet a broken pipe.
        if size <= INPUT_LIMIT:
            parts.append(part)
    return b"".join(parts)


def _is_readable(seconds: float) -> bool:
    if sys.platform == "win32":
        return True
    from select import select

    return bool(select([0], [], [], seconds)[0])


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _say(err: int, line: bytes) -> None:
    """
    Write the line for the client's debug log. Whether anybody can read it changes nothing.
    """
    try:
        _write(err, line)
    except OSError:
        return


def _report(error: BaseException, data: bytes, monotonic: float, err: int) -> None:
    """
    Say in one line that the gate failed, and log it where that is possible. The turn ends.
    """
    try:
        _find_libraries()
        _end_by_itself()
        from os import environ

        from .answering import clock_since
        from .in_process import log_failure

        _say(err, log_failure(error, data, environ, clock_since(monotonic)))
    except BaseException:
        return


if __name__ == "__main__":
    main()
