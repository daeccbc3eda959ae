"""
`turngate serve`: the resident service of one state directory, from its first line to its last.

The socket is bound before anything heavy is imported, so that a hook that starts the service can connect at once; the judge's SDK is
imported after the first answers are possible.
"""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import Thread, Timer
from typing import TYPE_CHECKING, Final

from ..judge.service.sockets import AlreadyServed, CannotServe, claim, listen_on_port
from .failed_start import forget_failure, remember_failure
from .places import state_dir
from .relay import VERSION
from .settings import BadSetting, Settings, read_settings
from .small_files import read_small
from .starting import NEVER_SERVED

if TYPE_CHECKING:
    import socket

    from ..judge.service.app import HookReply, RelayedEvent
    from ..judge.service.sockets import Claim

TOKEN_VARIABLE: Final = "TURNGATE_SERVICE_TOKEN"  # noqa: S105 - the variable's name
TOKEN_FILE: Final = "turngate.token"  # noqa: S105

FLUSH_S: Final = 2.0
"""At the service's end, for the ledger's last lines."""

HARD_END_S: Final = 5.0
"""After that, for a thread that holds the ledger: then the process ends without it."""


def serve(
    environ: Mapping[str, str],
    say: Callable[[str], None] = lambda _: None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """
    Serve the state directory that the environment names, until there is a reason to end. `say` gets one line once hooks can
    connect, `on_ready` is called before the first of them is answered.

    Raises `CannotServe`, and `BadSetting`.
    """
    folder = state_dir(environ)
    if folder is None:
        raise CannotServe("there is no state directory: set TURNGATE_STATE_DIR or HOME")
    settings = read_settings(environ).settings
    claimed = claim(folder)
    try:
        token = _token(environ, folder) if settings.service_http_port else ""
        port = listen_on_port(settings.service_http_port) if settings.service_http_port else None
        where = f" and 127.0.0.1:{settings.service_http_port}" if port else ""
        say(f"turngate {VERSION} serves {claimed.path}{where}\n")
        _run(claimed, folder, environ, settings, port, token, on_ready)
    finally:
        claimed.release()


def _run(
    claimed: Claim,
    folder: str,
    environ: Mapping[str, str],
    settings: Settings,
    port: socket.socket | None,
    token: str,
    on_ready: Callable[[], None],
) -> None:
    from ..judge.service.app import Handlers, build_app
    from ..judge.service.guard import on_loopback_port, on_unix_socket
    from ..judge.service.server import Service
    from .resident import Resident

    resident = Resident(folder, environ, VERSION)
    service = Service(
        claimed,
        version=VERSION,
        deadline_s=settings.judge.deadline_s,
        idle_exit_s=settings.service_idle_exit_s or None,
        on_tick=resident.tick,
        on_end=resident.close_models,
    )

    async def hook(relayed: RelayedEvent) -> HookReply:
        service.let_run(relayed.deadline_s)
        return await resident.hook(relayed)

    async def judge(body: bytes, content_type: str) -> tuple[int, bytes]:
        # Its library takes 90 ms to import, and most services have no caller but hooks.
        from ..judge.service.wire import answer_request

        return await answer_request(body, content_type, resident.judge)

    handlers = Handlers(
        hook=hook,
        judge=judge,
        health=resident.health,
        metrics=resident.metrics.exposition,
        is_ending=lambda: service.is_ending,
        on_other_version=service.stop,
        refused=resident.refused,
        failed=resident.failed,
    )
    port_app, page = None, None
    if port is not None:
        from .web_page import WebPage

        page, number = WebPage(resident, folder, environ, token), port.getsockname()[1]
        port_app = on_loopback_port(build_app(handlers, VERSION, hooks=False), token, page.app, page.app.takes)
        handlers = handlers._replace(entrance=partial(page.app.entrance, number))
    Thread(target=_import_slow_parts, daemon=True).start()
    forget_failure(folder)
    on_ready()
    try:
        service.serve(on_unix_socket(build_app(handlers, VERSION, hooks=True)), port_socket=port, port_app=port_app)
    finally:
        last = Timer(FLUSH_S + HARD_END_S, os._exit, (0,))
        last.daemon = True
        last.start()
        resident.end(wait_s=FLUSH_S)
        if page is not None:
            page.close()
        last.cancel()


def _token(environ: Mapping[str, str], folder: str) -> str:
    """
    Give the token of the port: the variable's, else that of the file, which is made where it is missing.
    """
    given = environ.get(TOKEN_VARIABLE, "").strip()
    if given:
        return _sendable(given, TOKEN_VARIABLE)
    path = os.path.join(folder, TOKEN_FILE)
    try:
        with suppress(FileExistsError):
            import secrets

            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        if os.stat(path).st_mode & 0o077:  # noqa: PTH116
            raise CannotServe(f"{path}: others may read the token; close it with chmod 600")
        return _sendable((read_small(path, 10_000) or b"").decode().strip(), path)
    except (OSError, ValueError) as error:
        raise CannotServe(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _sendable(token: str, source: str) -> str:
    if not re.fullmatch(r"[!-~]+", token):
        raise CannotServe(f"{source}: not a token: it is empty, or has characters that a header cannot carry")
    return token


def _import_slow_parts() -> None:
    # Whoever needs one of them before waits for the import's own lock.
    with suppress(Exception):
        from ..costing import metrics, prices
        from ..judge.models import anthropic_api as _  # noqa: F401
        from .jobs.check import checked

        prices.warm()
        metrics.warm()
        checked("true")
    # What was imported stays: the collector need not look through it again, which takes 100 ms each time.
    gc.collect()
    gc.freeze()


def main() -> None:
    """
    Serve as a hook starts it: in the background, with nobody to speak to but those who look for the reason later.
    """
    code, has_served = 0, False

    def ready() -> None:
        nonlocal has_served
        has_served = True

    try:
        # Whoever started the client may have kept signals from it, and so from its hooks: this process is ended by one.
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        serve(os.environ, on_ready=ready)
    except AlreadyServed:
        code = 0
    except Exception as error:
        code = 1 if has_served else NEVER_SERVED
        own = isinstance(error, CannotServe | BadSetting)
        reason = str(error) if own else f"internal error: {type(error).__name__}: {error}"
        if folder := state_dir(os.environ):
            remember_failure(folder, reason)
    finally:
        # Threads that still wait for a network keep nothing alive.
        os._exit(code)


if __name__ == "__main__":
    main()
