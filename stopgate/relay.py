"""
One event sent to the judge service over its Unix socket, and what came back: the hook's side of the hook route.

On every hook's way: a Python that does nothing takes 9 ms, and `socket`, `json`, `re` or `typing` would double that. The answer is
read strictly: what is not exactly what the service promises is broken, and a broken answer never reaches the client.
"""

# ruff: noqa: PTH109, PTH116
from __future__ import annotations

import _socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    import signal as _signal
    from collections.abc import Mapping, Sequence
    from typing import Final, Literal

    Status = Literal["answered", "absent", "elsewhere", "replace", "hung_up", "broken"]
else:
    import _signal  # `signal` without its enumerations, which cost 3 ms

    try:
        import posix as os  # what `os` is made of, without the 2 ms that it costs
    except ImportError:  # Windows
        import os

VERSION: Final = "0.1.0"
"""Turngate's, written down: to ask the installation costs 40 ms. A test holds that they are the same."""

SOCKET_NAME: Final = b"/turngate.sock"
DEADLINE_S: Final = 8.0
"""The judge's, where no variable names another. The service says so where its settings do."""

LOOKING_S: Final = 5.0
"""For the files of the project that say which service may be spoken to."""

GRACE_S: Final = 0.5
"""After the deadline, for the service to say that the judge did not answer."""

TOOL_CHECK_S: Final = 1.0
"""For the check before a tool runs, which asks no model."""

STARTING_S: Final = 0.25
"""For a new service, where a tool waits for the check."""

_TOOL_CHECKS: Final = (b'"hook_event_name":"PreToolUse"', b'"hook_event_name": "PreToolUse"')
_LONGEST_ADDRESS: Final = 107
LONGEST_VARIABLES: Final = 200_000
"""In bytes; the service takes a head of 256 KB."""
_LONGEST_HEAD_BACK: Final = 16_000
_LONGEST_BODY_BACK: Final = 1_000_000
_LONGEST_NOTICE: Final = 2_000
_MOST_NEEDS: Final = 16
_QUEUE_PAUSE_S: Final = 0.005

RELAYED: Final = frozenset(
    (
        *(b"ANTHROPIC_API_KEY", b"ANTHROPIC_BASE_URL", b"CLAUDE_CODE_USE_BEDROCK", b"CLAUDE_CODE_USE_VERTEX"),
        *(b"CLAUDE_CONFIG_DIR", b"CLAUDE_PROJECT_DIR", b"CLAUDE_CODE_ENTRYPOINT", b"CLAUDE_CODE_SESSION_ATTENDED"),
        *(b"CLAUDECODE", b"HOME", b"XDG_CONFIG_HOME", b"XDG_STATE_HOME"),
    )
)
"""The variables that a stop is decided with, beside all `TURNGATE_*` and those that the service asks for."""

_PATHS: Final = frozenset((b"TURNGATE_CONFIG", b"TURNGATE_STATE_DIR"))
_WORD: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_SAFE: Final = _WORD + b"-./:~"
_BASE_32: Final = b"0123456789abcdefghjkmnpqrstvwxyz"
_HEX: Final = b"0123456789ABCDEFabcdef"
_TOKEN: Final = _WORD + b"!#$%&'*+-.^`|~"
_CONTROLS: Final = bytes((*range(32), 127))


class Relayed:
    """
    How it went. Only `answered` has something to write; `detail` is one line for the log.

    `absent`: nobody listens. `elsewhere`: a stop that this service does not take. `replace`: the service ends, another is to be
    started. `hung_up`: it ended the connection without a byte. `broken`: anything else.
    """

    def __init__(self, status: Status, detail: str = "", *, stdout: bytes = b"", notice: bytes = b"") -> None:
        self.status: Final = status
        self.detail: Final = detail
        self.stdout: Final = stdout
        self.notice: Final = notice
        self.decision_id = ""
        """By which the service logs its decision, should it come to one."""


class Response:
    """
    An HTTP response; the names of its headers are in lower case.
    """

    def __init__(self, status: int, headers: Mapping[bytes, bytes], body: bytes) -> None:
        self.status: Final = status
        self.headers: Final = headers
        self.body: Final = body


class Garbage(Exception):
    """
    Not an answer of the service; the text says why.
    """


def relayed_event(data: bytes, started_at: float) -> Relayed | None:
    """
    Have an event of this process answered, by a service that is started where there is none; None where there can be none.

    `started_at`: when the hook was, on `time.monotonic`'s clock.
    """
    if not hasattr(_socket, "AF_UNIX"):
        return None
    from posix import environ

    from .service_folder import service_folder

    end_after(LOOKING_S)
    folder = service_folder(environ)
    end_after(0)
    if folder is None:
        return None
    found = relay(folder, data, environ, started_at)
    if found.status not in ("absent", "replace"):
        return found
    from .starting import answered_by_a_new_service

    # A tool waits: the service is started for the next one, and this one is soon decided here.
    until = (
        time.monotonic() + STARTING_S if is_tool_check(data) else _gives_up_at(data, _deadline_in(environ), started_at)
    )
    return answered_by_a_new_service(lambda: relay(folder, data, environ, started_at), found, folder, until)


def end_after(seconds: float) -> None:
    """
    End the process in silence after so long, where a disk does not answer; 0: no more.
    """
    _signal.signal(_signal.SIGALRM, _end)
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def _end(_number: int, _frame: object) -> None:
    os._exit(0)


def relay(folder: bytes, data: bytes, environ: Mapping[bytes, bytes], started_at: float) -> Relayed:
    """
    Have an event answered by the service of this state directory.
    """
    decision_id = new_decision_id()
    relayed = _relayed(folder + SOCKET_NAME, data, environ, started_at, decision_id)
    relayed.decision_id = decision_id.decode()
    return relayed


def new_decision_id() -> bytes:
    """
    Make an id as `costing.stamps.new_id` does, whose imports cost too much here.
    """
    number = int(time.time() * 1000) << 30 | int.from_bytes(os.urandom(4)) >> 2
    return bytes(_BASE_32[number >> 5 * place & 31] for place in range(14, -1, -1))


def _relayed(
    address: bytes, data: bytes, environ: Mapping[bytes, bytes], started_at: float, decision_id: bytes
) -> Relayed:
    if len(address) > _LONGEST_ADDRESS:
        return Relayed("elsewhere", "the socket's path is too long")
    try:
        return _answered(address, data, environ, started_at, decision_id)
    except Garbage as error:
        return Relayed("broken", f"the service's answer cannot be used: {error}")
    except TimeoutError:
        return Relayed("broken", "the service did not answer in time")


def _gives_up_at(data: bytes, deadline_s: float, started_at: float) -> float:
    """
    Give the time at which the relay waits no longer.
    """
    return started_at + (TOOL_CHECK_S if is_tool_check(data) else deadline_s + GRACE_S)


def is_tool_check(data: bytes) -> bool:
    """
    Say whether the event is one before a tool. Inside of a JSON string these bytes cannot stand.
    """
    return any(mark in data for mark in _TOOL_CHECKS)


def _deadline_in(environ: Mapping[bytes, bytes]) -> float:
    """
    Give the judge's deadline as far as a variable tells it.
    """
    try:
        return _seconds(environ.get(b"TURNGATE_JUDGE_DEADLINE_S", b""))
    except Garbage:
        return DEADLINE_S


def _answered(
    address: bytes, data: bytes, environ: Mapping[bytes, bytes], started_at: float, decision_id: bytes
) -> Relayed:
    deadline_s = _deadline_in(environ)
    needs: Sequence[bytes] = ()
    for _ in range(2):
        try:
            variables = encoded_variables(environ, needs)
        except FileNotFoundError:
            return Relayed("elsewhere", "a relative path leads from a working directory that is gone")
        if len(variables) > LONGEST_VARIABLES:
            return Relayed("elsewhere", "the variables are too long for a header")
        head = _head(variables, deadline_s, started_at, decision_id, len(data))
        found = _exchanged(address, head + data, _gives_up_at(data, deadline_s, started_at))
        if isinstance(found, Relayed):
            return found
        if found.status != 428:
            return _meaning(found)
        needs, deadline_s = _needs(found, deadline_s)
    raise Garbage("it asks for more a second time")


def encoded_variables(environ: Mapping[bytes, bytes], needs: Sequence[bytes]) -> bytes:
    """
    Write the variables that the service decides with, and those that it needs, as one header's value.

    Raises FileNotFoundError where a relative path leads from a working directory that is gone.
    """
    wanted = {name: None for name in environ if name in RELAYED or name.startswith(b"TURNGATE_")}
    pairs: list[bytes] = []
    for name in (*wanted, *(name for name in needs if name not in wanted)):
        value = environ.get(name)
        if value and name in _PATHS and value[:1] not in b"/~":
            value = os.getcwdb() + b"/" + value
        pairs.append(_encoded(name) if value is None else _encoded(name) + b"=" + _encoded(value))
    return b"&".join(pairs)


def _encoded(text: bytes) -> bytes:
    if not text.translate(None, _SAFE):
        return text
    return b"".join(b"%c" % byte if byte in _SAFE else b"%%%02X" % byte for byte in text)


def _head(variables: bytes, deadline_s: float, started_at: float, decision_id: bytes, length: int) -> bytes:
    # The start on the clock that all processes of a machine share: the request may wait before anybody reads it.
    deadline = (b"%.3f" % deadline_s).rstrip(b"0").rstrip(b".")
    return (
        b"POST /v1/hook/claude-code HTTP/1.1\r\nhost: turngate\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\nconnection: close\r\nturngate-version: %b\r\nturngate-decision: %b\r\n"
        b"turngate-started-ms: %d\r\nturngate-deadline-s: %b\r\nturngate-environ: %b\r\n\r\n"
    ) % (length, VERSION.encode(), decision_id, int(started_at * 1000), deadline, variables)


def _exchanged(address: bytes, request: bytes, until: float) -> Response | Relayed:
    """
    Send the request and receive the response. Raises `Garbage`, and TimeoutError at the time `until`.
    """
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        try:
            _connect(connection, address, until)
        except TimeoutError:
            raise
        except OSError as error:
            return Relayed("absent", str(error.strerror))
        if _peer(connection, address) != os.geteuid():
            return Relayed("elsewhere", "the service is another user's")
        _send(connection, request, until)
        return _received(connection, until)
    finally:
        connection.close()


def _connect(connection: _socket.socket, address: bytes, until: float) -> None:
    while True:
        connection.settimeout(_left(until))
        try:
            return connection.connect(address)
        except BlockingIOError:
            # More hooks wait at the socket than its queue takes.
            time.sleep(_QUEUE_PAUSE_S)


def _peer(connection: _socket.socket, address: bytes) -> int:
    """
    Give the user who listens; where the system does not tell, the one who made the socket.
    """
    option = getattr(_socket, "SO_PEERCRED", None)
    if option is None:
        return os.stat(address).st_uid
    # Three ints: process, user, group.
    return int.from_bytes(connection.getsockopt(_socket.SOL_SOCKET, option, 12)[4:8], sys.byteorder)


def _send(connection: _socket.socket, request: bytes, until: float) -> None:
    connection.settimeout(_left(until))
    try:
        connection.sendall(request)
    except (BrokenPipeError, ConnectionResetError):
        # It may have answered before it had read everything.
        return


def _received(connection: _socket.socket, until: float) -> Response | Relayed:
    raw = b""
    while (response := parse_response(raw)) is None:
        connection.settimeout(_left(until))
        try:
            part = connection.recv(65_536)
        except ConnectionResetError:
            part = b""
        if not part:
            return Relayed("broken" if raw else "hung_up", "the service hung up before it had answered")
        raw += part
    return response


def _left(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def parse_response(raw: bytes) -> Response | None:
    """
    Read an HTTP/1.1 response from all bytes that came so far, None while some are missing. Raises `Garbage`.
    """
    head, end, body = raw.partition(b"\r\n\r\n")
    if len(head) > _LONGEST_HEAD_BACK:
        raise Garbage("its head is too long")
    if not end:
        return None
    first, *lines = head.split(b"\r\n")
    status = _status(first)
    headers = _headers(lines)
    length = headers.get(b"content-length", b"")
    if not length.isdigit() or len(length) > 9 or b"transfer-encoding" in headers:
        raise Garbage("its length is not told")
    if len(body) > int(length) or int(length) > _LONGEST_BODY_BACK:
        raise Garbage("its body is too long")
    return Response(status, headers, body) if len(body) == int(length) else None


def _status(line: bytes) -> int:
    version, _, rest = line.partition(b" ")
    code, _, reason = rest.partition(b" ")
    if version != b"HTTP/1.1" or len(code) != 3 or not code.isdigit() or _has_controls(reason):
        raise Garbage("it is not HTTP/1.1")
    return int(code)


def _headers(lines: Sequence[bytes]) -> dict[bytes, bytes]:
    headers: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        if not name or not colon or name.translate(None, _TOKEN) or name in headers or _has_controls(value):
            raise Garbage("a header cannot be read")
        headers[name] = value
    return headers


def _has_controls(text: bytes) -> bool:
    return len(text.translate(None, _CONTROLS)) != len(text)


def _meaning(response: Response) -> Relayed:
    _check_origin(response)
    if response.status == 421:
        return Relayed("elsewhere", "the service keeps another state directory")
    if response.status in (409, 503):
        return Relayed("replace", "the service ends")
    if response.status != 200:
        raise Garbage(f"status {response.status}")
    notice = _notice(response.headers.get(b"turngate-notice", b""))
    return Relayed("answered", stdout=_checked_body(response.body), notice=notice)


def _check_origin(response: Response) -> None:
    if not response.headers.get(b"turngate-version"):
        raise Garbage("it is not turngate's")


def _checked_body(body: bytes) -> bytes:
    if body and not (body[:1] == b"{" and body[-1:] == b"}"):
        raise Garbage("its body is no object")
    try:
        body.decode()
    except UnicodeDecodeError as error:
        raise Garbage("its body is not UTF-8") from error
    return body


def _notice(encoded: bytes) -> bytes:
    """
    Give the line for standard error, as a gate in this process would have written it.
    """
    if not encoded:
        return b""
    text = _decoded(encoded).strip()
    if _has_controls(text) or len(text) > _LONGEST_NOTICE:
        raise Garbage("its notice is not one line")
    return b"turngate: " + text.removeprefix(b"turngate: ") + b"\n"


def _decoded(text: bytes) -> bytes:
    first, *rest = text.split(b"%")
    if any(len(part) < 2 or part[:2].translate(None, _HEX) for part in rest):
        raise Garbage("its notice cannot be read")
    return first + b"".join(b"%c" % int(part[:2], 16) + part[2:] for part in rest)


def _needs(response: Response, deadline_s: float) -> tuple[Sequence[bytes], float]:
    """
    Give what a 428 asks for: names of variables, and the deadline to assume.
    """
    _check_origin(response)
    names = response.headers.get(b"turngate-needs", b"")
    seconds = response.headers.get(b"turngate-deadline-s", b"")
    if not names and not seconds:
        raise Garbage("it asks for more, and not for what")
    needs = [name.strip() for name in names.split(b",")] if names else []
    if len(needs) > _MOST_NEEDS or any(not 0 < len(name) <= 64 or name.translate(None, _WORD) for name in needs):
        raise Garbage("it asks for what is no variable")
    return needs, _seconds(seconds) if seconds else deadline_s


def _seconds(text: bytes) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise Garbage("a deadline is no number") from error
    if not 0.1 <= number <= 600:
        raise Garbage("a deadline is out of range")
    return number
