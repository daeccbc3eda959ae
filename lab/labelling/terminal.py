"""
The labeller's terminal: taken over, given back, and which keys come from it.
"""

from __future__ import annotations

import codecs
import os
import re
import select
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ...stopgate.console import CommandError, print_text
from ...stopgate.ended_by_signals import ended_by_signals
from ..errors import LabError
from .session import BACKSPACE, ENTER, ESCAPE, PAGE_BACK, PAGE_ON, PASTED

REDRAW: Final = "redraw"
"""Ctrl-L, and what a terminal of another size asks for."""

_SEQUENCE_S: Final = 0.05
"""How long Esc may be the beginning of a sequence."""

_TELL_PASTES: Final = "\x1b[?2004h"
_OPEN: Final = "\x1b[?1049h\x1b[H\x1b[J" + _TELL_PASTES
_CLOSE: Final = "\x1b[?2004l\x1b[?1049l"


def keys_from(read: Callable[[], bytes]) -> Iterator[str]:
    """
    Give the keys of a terminal: characters, and names for those that write none; pasted text is one key. Ends with the input, or with
    Ctrl-D. An escape sequence without a name here is none: nothing of it is a character.
    """
    decode = codecs.getincrementaldecoder("utf-8")("ignore").decode
    unfinished = ""
    pasted: list[str] | None = None
    while data := read():
        text = unfinished + decode(data)
        cut_off = _UNFINISHED.search(text)
        end = cut_off.start() if cut_off else len(text)
        unfinished = text[end:]
        for found in _KEY.finditer(text, 0, end):
            if found[0] == PASTED:
                pasted = []
            elif found[0] == _PASTE_ENDS and pasted is not None:
                yield PASTED + "".join(pasted)
                pasted = None
            elif pasted is not None:
                pasted.append(found[0])
            elif found[0] == "\x04":
                return
            elif key := _NAMED.get(found[0], found[0] if found[0].isprintable() else ""):
                yield key


_PASTE_ENDS: Final = "\x1b[201~"
# A sequence with its end, Alt with a key, or a character.
_KEY: Final = re.compile(r"\x1b+(?:\[\[?[0-?]*[ -/]*[@-~]|O?[^\x1b])|.", re.DOTALL)
_UNFINISHED: Final = re.compile(r"\x1b+(?:\[\[?[0-?]*[ -/]*|O)\Z")
_NAMED: Final = {
    "\x0c": REDRAW,
    "\r": ENTER,
    "\n": ENTER,
    "\x7f": BACKSPACE,
    "\b": BACKSPACE,
    "\x1b": ESCAPE,
    "\x1b[5~": PAGE_BACK,
    "\x1b[6~": PAGE_ON,
    "\x1b[A": PAGE_BACK,
    "\x1b[B": PAGE_ON,
}


@contextmanager
def taken_over(*, moves: bool) -> Generator[Callable[[], bytes]]:
    """
    Have each key at once, on a screen of our own; give what reads them. Whatever happens, the terminal is given back as it was.
    """
    try:
        import termios
        import tty
    except ImportError:  # Windows
        raise LabError("this terminal gives no single keys: give the labels with --answers FILE") from None

    before = termios.tcgetattr(0)
    with ended_by_signals(), _woken() as woken:

        def read() -> bytes:
            ready, _, _ = select.select([0, woken], [], [])
            if woken not in ready:
                return _read(0)
            os.read(woken, 1024)
            # A shell that had the terminal meanwhile has set it as it likes it.
            tty.setcbreak(0)
            if moves:
                print_text(_TELL_PASTES)
            return b"\x0c"

        try:
            tty.setcbreak(0)
            if moves:
                print_text(_OPEN)
            yield read
        finally:
            # A terminal that is gone takes neither.
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSADRAIN, before)
            if moves:
                with suppress(CommandError):
                    print_text(_CLOSE)


def _read(descriptor: int) -> bytes:
    try:
        data = os.read(descriptor, 1024)
        # A sequence may come in two pieces; whoever presses Esc presses nothing else so soon.
        if data.endswith(b"\x1b") and select.select([descriptor], [], [], _SEQUENCE_S)[0]:
            data += os.read(descriptor, 1024)
    except OSError:  # how Linux says that the terminal is gone
        return b""
    return data


@contextmanager
def _woken() -> Generator[int]:
    """
    Give a descriptor that has something to read when the terminal got another size, we go on after Ctrl-Z, or a signal ends us.

    Python runs what a signal calls between two steps of its own: one that comes just before `select` would wait with it for a key.
    """
    import signal

    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)

    def nothing(*_: object) -> None:
        pass

    before = {number: signal.signal(number, nothing) for number in (signal.SIGWINCH, signal.SIGCONT)}
    woken_before = signal.set_wakeup_fd(theirs, warn_on_full_buffer=False)
    try:
        yield ours
    finally:
        signal.set_wakeup_fd(woken_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(ours)
        os.close(theirs)
