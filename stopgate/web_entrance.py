"""
An address that lets a browser in, from the service that runs; where none with a port runs, one is started.

A service keeps nothing that another would miss, so that one without a port may be replaced.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, cast

from ..judge.service.sockets import SOCKET_NAME
from .console import CommandError, warn
from .failed_start import last_failure
from .process_environ import trusted_environ
from .service_commands import end_service
from .settings import read_settings
from .starting import COMMAND, service_environ

PREFERRED_PORT: Final = 8764
"""Where `service.http_port` names none; any other where it is taken."""

START_WAIT_S: Final = 10.0
ANSWER_WAIT_S: Final = 5.0
TRIES: Final = 3
"""A hook may start a service without a port in between."""


def entrance(folder: str, environ: Mapping[str, str]) -> str:
    """
    Give an address that is good once. Raises `CommandError`, `BadSetting` and `ServiceTrouble`.
    """
    path = os.path.join(folder, SOCKET_NAME)
    for _ in range(TRIES):
        status, found = _asked(path)
        if status == 200:
            return str(found["url"])
        if status == 409:
            warn("the service that runs has no port: it is replaced by one that has (set service.http_port to keep it)")
            end_service(environ)
        elif status not in (0, 503):
            raise CommandError(f"{path}: the service that runs is another version: `turngate stop`, then try again")
        _start(folder, environ, path)
    raise CommandError(
        "no service with a port could be started: set service.http_port, and `turngate stop` the one that runs"
    )


def _asked(path: str) -> tuple[int, dict[str, Any]]:
    """
    Ask the service for an address; status 0 where no service runs.
    """
    connection = HTTPConnection("turngate", timeout=ANSWER_WAIT_S)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.settimeout(ANSWER_WAIT_S)
    try:
        connection.sock.connect(path)
        connection.request("POST", "/v1/entrance")
        response = connection.getresponse()
        found: object = json.loads(response.read(100_000))
    except (FileNotFoundError, ConnectionRefusedError):
        return 0, {}
    except (OSError, ValueError, HTTPException) as error:
        raise CommandError(
            f"{path}: the service does not answer: {getattr(error, 'strerror', None) or error}"
        ) from error
    finally:
        connection.close()
    return response.status, cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _start(folder: str, environ: Mapping[str, str], path: str) -> None:
    """
    Start a service in the background, and wait until it answers, or until it is clear that it will not.
    """
    from subprocess import DEVNULL, Popen

    port = read_settings(environ).settings.service_http_port or _free_port()
    # As the hook's service: nothing of a project's own settings, and nobody's key.
    trusted = {**service_environ(trusted_environ(), folder), "TURNGATE_SERVICE_HTTP_PORT": str(port)}
    child = Popen(  # noqa: S603
        (sys.executable, *COMMAND),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        close_fds=True,
        cwd="/",
        env=trusted,
        start_new_session=True,
    )
    give_up_at = time.monotonic() + START_WAIT_S
    while time.monotonic() < give_up_at:
        with suppress(CommandError):  # one that ends at once breaks off
            if _asked(path)[0] in (200, 409):
                return
        code = child.poll()
        if code:
            reason = last_failure(folder)
            raise CommandError(f"the service could not be started: {reason or f'exit code {code}'}")
        time.sleep(0.05)
    raise CommandError(f"the service did not come up within {START_WAIT_S:g} s")


def _free_port() -> int:
    for port in (PREFERRED_PORT, 0):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(tried.getsockname()[1])
    raise CommandError("no port of this machine is free")
