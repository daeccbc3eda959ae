"""
`turngate serve`: the resident service of one state directory, from its first line to its last.

The socket is bound before anything heavy is imported, so that a hook that starts the service can connect at once; the judge's SDK is
imported after the first answers are possible.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Final

from ..judge.service.sockets import CannotServe, claim, listen_on_port
from .places import state_dir
from .relay import VERSION
from .settings import Settings, read_settings

if TYPE_CHECKING:
    import socket

    from ..judge.service.sockets import Claim
    from .resident import Resident

TOKEN_VARIABLE: Final = "TURNGATE_SERVICE_TOKEN"  # noqa: S105 - the variable's name
TOKEN_FILE: Final = "turngate.token"  # noqa: S105

FLUSH_S: Final = 2.0
"""At the service's end, for the ledger's last lines."""


def serve(environ: Mapping[str, str], say: Callable[[str], None] = lambda _: None) -> None:
    """
    Serve the state directory that the environment names, until there is a reason to end; `say` gets one line once hooks can connect.

    Raises `CannotServe`, and `BadSetting`.
    """
    folder = state_dir(environ)
    if folder is None:
        raise CannotServe("there is no state directory: set TURNGATE_STATE_DIR or HOME")
    settings = read_settings(environ).settings
    claimed = claim(folder)
    try:
        port = listen_on_port(settings.service_http_port) if settings.service_http_port else None
        token = _token(environ, folder) if port else ""
        where = f" and 127.0.0.1:{settings.service_http_port}" if port else ""
        say(f"turngate {VERSION} serves {claimed.path}{where}\n")
        _run(claimed, folder, environ, settings, port, token)
    finally:
        claimed.release()


def _run(
    claimed: Claim, folder: str, environ: Mapping[str, str], settings: Settings, port: socket.socket | None, token: str
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
    )
    handlers = Handlers(
        hook=resident.hook,
        judge=_judge_route(resident),
        health=resident.health,
        metrics=resident.metrics.exposition,
        is_ending=lambda: service.is_ending,
        on_other_version=service.stop,
        refused=resident.refused,
        failed=resident.failed,
    )
    app = build_app(handlers, VERSION)
    Thread(target=_import_slow_parts, daemon=True).start()
    try:
        service.serve(
            on_unix_socket(app), port_socket=port, port_app=on_loopback_port(app, token) if port is not None else None
        )
    finally:
        resident.end(wait_s=FLUSH_S)


def _judge_route(resident: Resident) -> Callable[[bytes, str], Awaitable[tuple[int, bytes]]]:
    async def route(body: bytes, content_type: str) -> tuple[int, bytes]:
        # Its library takes 90 ms to import, and most services have no caller but hooks.
        from ..judge.service.wire import judge_route

        return await judge_route(resident.judge)(body, content_type)

    return route


def _token(environ: Mapping[str, str], folder: str) -> str:
    """
    Give the token of the port: the variable's, else that of the file, which is made where it is missing.
    """
    import secrets

    given = environ.get(TOKEN_VARIABLE, "").strip()
    if given:
        return given
    path = os.path.join(folder, TOKEN_FILE)
    try:
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
        with open(path, encoding="ascii") as file:
            token = file.read(10_000).strip()
    except (OSError, ValueError) as error:
        raise CannotServe(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not token:
        raise CannotServe(f"{path}: the file is empty; remove it, and a new token is made")
    return token


def _import_slow_parts() -> None:
    # Whoever needs one of them before waits for the import's own lock.
    with suppress(Exception):
        from ..costing import metrics, prices
        from ..judge.models import anthropic_api as _  # noqa: F401

        prices.warm()
        metrics.warm()
    # What was imported stays: the collector need not look through it again, which takes 100 ms each time.
    gc.collect()
    gc.freeze()


def main() -> None:
    """
    Serve as a hook starts it: in the background, with nobody to speak to.
    """
    with suppress(Exception):
        serve(os.environ)
    # Threads that still wait for a network keep nothing alive.
    os._exit(0)


if __name__ == "__main__":
    main()
