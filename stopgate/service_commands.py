"""
`turngate serve`, `status` and `stop`: the service, as a person meets it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, cast

from ..costing.screen import one_line
from ..judge.service.sockets import LOCK_NAME, SOCKET_NAME
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


def status_text(found: Mapping[str, Any] | None) -> str:
    """
    Say it in lines for a person.
    """
    if found is None:
        return "no service is running: the next stop starts one\n"
    return "".join(f"{name:<15}{one_line(value)}\n" for name, value in _lines(found))


def end_service(environ: Mapping[str, str]) -> str:
    """
    End the service and wait for it; running judge calls finish first. Raises `ServiceTrouble`.
    """
    lock = os.path.join(_folder(environ), LOCK_NAME)
    holder = _holder(lock)
    if holder is None:
        return "no service is running\n"
    try:
        os.kill(holder, signal.SIGTERM)
    except ProcessLookupError:
        return "no service is running\n"
    except OSError as error:
        raise ServiceTrouble(f"process {holder} cannot be ended: {error.strerror}") from error
    give_up_at = time.monotonic() + END_WAIT_S
    while time.monotonic() < give_up_at:
        if not _is_alive(holder):
            return f"the service is ended (process {holder})\n"
        time.sleep(0.05)
    raise ServiceTrouble(
        f"process {holder} has not ended after {END_WAIT_S:g} s; kill -9 {holder} loses nothing but its open calls"
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


def _holder(lock: str) -> int | None:
    """
    Give the process that holds the lock; None where nobody does.
    """
    import fcntl

    try:
        with open(lock, "rb") as file:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            said = file.read(20).strip()
    except OSError:
        return None
    if not said.isdigit() or int(said) < 2:
        raise ServiceTrouble(f"{lock}: names no process")
    return int(said)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    # A child of ours that has ended stays in the table until it is waited for.
    with suppress(OSError), open(f"/proc/{process}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] != b"Z"
    return True


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
        ("last error", "none" if not error else "{at} {endpoint}: {outcome}: {detail}".format(**error)),
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
    origin = judge["endpoint_from"] or "the vendor's own address"
    key = f", key from {judge['key_from']}" if judge["key_from"] else ""
    return f"{judge['model']} ({judge['backend']}) at {judge['endpoint']} by {origin}{key}"
