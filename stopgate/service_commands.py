"""
`turngate serve`, `status` and `stop`: the service, as a person meets it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, cast

from ..costing.screen import one_line
from ..judge.owners import has_ended
from ..judge.service.sockets import PATH_LIMIT, SOCKET_NAME
from .failed_start import last_failure
from .places import state_dir

ANSWER_WAIT_S: Final = 5.0
END_WAIT_S: Final = 20.0
"""Longer than a service waits for its running judge calls, by the default deadline."""


class ServiceTrouble(Exception):
    """
    There is a service, and it does not do what it should; one line that says so.
    """


def standing(environ: Mapping[str, str]) -> dict[str, Any] | None:
    """
    Ask the service how it stands; None where none is running. Raises `ServiceTrouble`.
    """
    folder = _folder(environ)
    path = os.path.join(folder, SOCKET_NAME)
    if len(os.fsencode(path)) > PATH_LIMIT:
        return None
    connection = HTTPConnection("turngate", timeout=ANSWER_WAIT_S)
    try:
        connection.sock = _connected(path)
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        found: object = json.loads(response.read(1_000_000))
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (OSError, ValueError, HTTPException) as error:
        raise ServiceTrouble(
            f"{path}: the service does not answer: {getattr(error, 'strerror', None) or error}"
        ) from error
    finally:
        connection.close()
    if response.status != 200 or not isinstance(found, dict):
        raise ServiceTrouble(f"{path}: the service is ending, or is not turngate's")
    return cast("dict[str, Any]", found)


def status_text(found: Mapping[str, Any] | None, environ: Mapping[str, str]) -> str:
    """
    Say it in lines for a person.
    """
    if found is None:
        failure = last_failure(_folder(environ))
        return "no service is running\n" + (f"the last start failed: {one_line(failure)}\n" if failure else "")
    return "".join(f"{name:<15}{one_line(value)}\n" for name, value in _lines(found))


def end_service(environ: Mapping[str, str]) -> str:
    """
    End the service and wait for it; running judge calls finish first. Raises `ServiceTrouble`.
    """
    path = os.path.join(_folder(environ), SOCKET_NAME)
    process = _listener(path) if len(os.fsencode(path)) <= PATH_LIMIT else None
    if process is None:
        return "no service is running\n"
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        return "no service is running\n"
    except OSError as error:
        raise ServiceTrouble(f"process {process} cannot be ended: {error.strerror}") from error
    give_up_at = time.monotonic() + END_WAIT_S
    while time.monotonic() < give_up_at:
        if has_ended(process):
            return f"the service is ended (process {process})\n"
        time.sleep(0.05)
    raise ServiceTrouble(
        f"process {process} has not ended after {END_WAIT_S:g} s; kill -9 {process} ends it, and loses what its ledger could not "
        "take yet"
    )


def _folder(environ: Mapping[str, str]) -> str:
    folder = state_dir(environ)
    if folder is None:
        raise ServiceTrouble("no home directory is known: set TURNGATE_STATE_DIR")
    return folder


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_WAIT_S)
    try:
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection


def _listener(path: str) -> int | None:
    """
    Give the process that listens on the socket; None where nobody does.
    """
    try:
        with _connected(path) as connection:
            # Three ints: process, user, group.
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except OSError as error:
        raise ServiceTrouble(f"{path}: {error.strerror or error}") from error
    process = int.from_bytes(credentials[:4], sys.byteorder)
    if process < 2:
        raise ServiceTrouble(f"{path}: belongs to a process of another container")
    return process


def _lines(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    judge, error = found.get("last_judge"), found.get("last_error")
    breaker = found.get("breaker_open")
    lines = [
        ("version", str(found.get("version"))),
        ("alive since", f"{found.get('alive_since')} (process {found.get('pid')})"),
        ("decisions", str(found.get("decisions"))),
        *((f"  {event}", _took(took)) for event, took in found.get("hook_ms", {}).items()),
        ("judge calls", f"{found.get('calls')}, {found.get('calls_in_flight')} in flight"),
        ("  each try", _took(found.get("judge_ms", {}))),
        ("ledger", str(found.get("ledger") or found.get("ledger_error"))),
        ("spent today", _spent(found)),
        ("breaker", "not known" if breaker is None else f"open for {', '.join(breaker)}" if breaker else "closed"),
        ("last judge", "none asked yet" if not judge else _judge(judge)),
        ("last error", "none" if not error else "{at} {what}: {detail}".format(**error)),
    ]
    if found.get("ledger") and found.get("ledger_error"):
        lines.append(("ledger error", str(found["ledger_error"])))
    return lines


def _took(took: Mapping[str, Any]) -> str:
    p50, p95 = took.get("p50"), took.get("p95")
    return "none timed yet" if p50 is None else f"p50 {p50} ms, p95 {p95} ms"


def _spent(found: Mapping[str, Any]) -> str:
    if found.get("spent_today_usd") is None:
        return "not known"
    unpriced = found.get("unpriced_calls_today")
    return f"${found['spent_today_usd']} (UTC day)" + (f", and {unpriced} calls of unknown cost" if unpriced else "")


def _judge(judge: Mapping[str, str]) -> str:
    key = f", key from {judge['key_from']}" if judge["key_from"] else ""
    return f"{judge['model']} ({judge['backend']}) at {judge['endpoint']} by {judge['endpoint_from']}{key}"
