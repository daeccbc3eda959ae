"""
A service started by a hook that found none, or one that ends; of several hooks one starts it, and all wait for it.

The client waits for whoever still holds the pipes of its hook, so the service gets nothing of this process: no descriptor, no
working directory, no session, and of the environment only what a service needs.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Timer
from typing import TYPE_CHECKING, Final, NamedTuple

from .failed_start import has_failed_lately
from .process_environ import trusted_environ
from .relay import Relayed
from .settings import BadSetting, read_settings

if TYPE_CHECKING:
    from subprocess import Popen

LOCK_NAME: Final = "turngate.starting.lock"
COMMAND: Final = ("-I", "-m", "turngate.stopgate.serving")
WAIT_S: Final = 1.0
"""For the new service's socket; after that the stop is decided without it."""

LONGER_WAIT_S: Final = 3.0
"""Where another hook is starting one: many hooks that decide by themselves at once take longer, each with an SDK to load."""

NEVER_SERVED: Final = 3
"""The exit code of a service that ended before it could answer anybody."""

LAST_RESORT_S: Final = 3.0
"""Then the process ends by itself: a settings file on a dead network drive must not trap the turn."""

_PAUSE_S: Final = 0.01
_ENDING_S: Final = 0.3

_INHERITED: Final = frozenset(
    (
        *("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    )
)


def answered_by_a_new_service(attempt: Callable[[], Relayed], found: Relayed, folder: bytes, until: float) -> Relayed:
    """
    Start a service and give its answer; where there is none in time, what was found last. `attempt` relays the event once.
    """
    waits = _Waits(min(until, time.monotonic() + WAIT_S), min(until, time.monotonic() + LONGER_WAIT_S))
    timer = Timer(LAST_RESORT_S, os._exit, (0,))
    timer.daemon = True
    timer.start()
    try:
        environ = trusted_environ()
        if not read_settings(environ).settings.service_autostart:
            return found
        start = _Start(os.fsdecode(folder), environ)
    except (BadSetting, OSError):
        return found
    finally:
        timer.cancel()
    return _awaited(attempt, found, start, waits)


class _Waits(NamedTuple):
    """
    Until when a hook waits for a service that it started, and for one that another hook is starting.
    """

    for_ours: float
    for_anothers: float


def _awaited(attempt: Callable[[], Relayed], found: Relayed, start: _Start, waits: _Waits) -> Relayed:
    while found.status in ("absent", "replace") and not start.has_failed:
        if time.monotonic() >= (waits.for_anothers if start.is_anothers else waits.for_ours):
            break
        if found.status == "absent" and start.is_our_turn():
            # One may have come up while this hook read its settings.
            found = attempt()
            if found.status != "absent":
                continue
            start.begin()
        time.sleep(_PAUSE_S)
        found = attempt()
    if found.status == "hung_up" and start.never_served():
        return Relayed("elsewhere", "the new service broke off on its way up")
    return found


class _Start:
    """
    One start of a service, made by whichever hook holds the lock; it is given back when the hook's process ends.
    """

    def __init__(self, folder: str, environ: Mapping[str, str]) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103
        self._folder: Final = folder
        self._lock: Final = os.open(os.path.join(folder, LOCK_NAME), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        self._environ: Final = service_environ(environ, folder)
        self._child: Popen[bytes] | None = None
        self._has_lock = False
        self._was_anothers = False
        self._is_hopeless = False

    def never_served(self) -> bool:
        """
        Say whether this hook started a service that answered nobody, and so has paid for nothing.
        """
        if self._child is None:
            return False
        with suppress(OSError):  # another thread of a library may have waited for it
            give_up_at = time.monotonic() + _ENDING_S
            while self._child.poll() is None and time.monotonic() < give_up_at:
                time.sleep(_PAUSE_S)
        return self._child.returncode == NEVER_SERVED

    @property
    def is_anothers(self) -> bool:
        """
        Whether another hook is starting a service now.
        """
        return self._was_anothers and not self._has_lock

    @property
    def has_failed(self) -> bool:
        """
        Whether no service is to be expected any more.
        """
        return self._is_hopeless or (self._child is not None and self._child.poll() not in (None, 0))

    def is_our_turn(self) -> bool:
        """
        Say once, as soon as no other hook starts one, that this one may.
        """
        if self._has_lock:
            return False
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._was_anothers = True
            return False
        self._has_lock = True
        return True

    def begin(self) -> None:
        """
        Start the service, unless another hook has just tried in vain.
        """
        if self._was_anothers or has_failed_lately(self._folder):
            self._is_hopeless = True
            return
        from subprocess import DEVNULL, Popen

        try:
            self._child = Popen(  # noqa: S603
                (sys.executable, *COMMAND),
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
                close_fds=True,
                cwd="/",
                env=self._environ,
                start_new_session=True,
            )
        except OSError:
            self._is_hopeless = True


def service_environ(environ: Mapping[str, str], folder: str) -> dict[str, str]:
    """
    Give what a service of this state directory gets of a trusted environment: nobody's key, and of tokens only that of its own port.
    """
    kept = {name: value for name, value in environ.items() if _is_inherited(name)}
    return {**kept, "TURNGATE_STATE_DIR": folder}


def _is_inherited(name: str) -> bool:
    if name == "TURNGATE_SERVICE_TOKEN":
        return True
    if name.startswith("TURNGATE_"):
        return "TOKEN" not in name and not name.endswith("KEY")
    return name in _INHERITED or name.startswith("LC_") or name.endswith(("_PROXY", "_proxy"))
