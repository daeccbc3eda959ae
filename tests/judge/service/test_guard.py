"""
Who may speak to the service: on the port who knows the token, on the socket who may open it, and never a foreign web page.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngate.judge.service.guard import on_loopback_port

from .running import PATIENCE_S, TOKEN, Answer, Running, read_all, read_answer, running


@pytest.fixture(name="run", scope="module")
def run_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("guard") / "state", port=True) as run:
        yield run


def request(target: str, *headers: str, host: str | None = "127.0.0.1", protocol: str = "HTTP/1.1") -> bytes:
    fields = [*([f"host: {host}"] if host is not None else []), *headers, "connection: close"]
    return "\r\n".join([f"{target} {protocol}", *fields, "", ""]).encode("latin-1")


def on_port(run: Running, *arguments: str, **options: str | None) -> Answer:
    with socket.create_connection(("127.0.0.1", run.port or 0), timeout=PATIENCE_S) as connection:
        connection.sendall(request(*arguments, **options))  # pyright: ignore[reportArgumentType]
        return read_answer(read_all(connection))


BEARER = f"authorization: Bearer {TOKEN}"


@pytest.mark.parametrize("target", ["POST /v1/judge", "POST /v1/hook/claude-code", "GET /metrics", "GET /nothing"])
def test_without_the_token_nothing_is_answered_on_the_port(run: Running, target: str) -> None:
    """
    Whoever does not know the token learns nothing, not even which routes there are.
    """
    answer = on_port(run, target)

    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["turngate-version"] == "0.1.0"
    assert json.loads(answer.body) == {"error": "a bearer token is needed, and this is not it"}


@pytest.mark.parametrize(
    "credentials",
    [
        "authorization: Bearer wrong",
        f"authorization: Bearer {TOKEN}x",
        f"authorization: Bearer {TOKEN[:-1]}",
        "authorization: Bearer",
        "authorization: Bearer \xff\xfe",
        f"authorization: Basic {TOKEN}",
        f"authorization: {TOKEN}",
        f"authorization: Bearer {TOKEN}, Bearer {TOKEN}",
        f"authorization: Bearer {TOKEN}\r\nauthorization: Bearer {TOKEN}",
        f"x-authorization: Bearer {TOKEN}",
    ],
)
def test_a_wrong_token_is_401(run: Running, credentials: str) -> None:
    """
    Only the whole token counts, sent once and as a bearer token.
    """
    assert on_port(run, "GET /metrics", credentials).status == 401


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:8080", "[::1]", "[::1]:1", "127.0.0.1:65535"])
def test_the_token_opens_the_port_under_every_loopback_name(run: Running, host: str) -> None:
    """
    With the token and a loopback name, all routes are answered.
    """
    assert on_port(run, "GET /metrics", BEARER, host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil.example:80",
        "127.0.0.1@evil.example",
        "0.0.0.0",
        "",
        "[::1",
        "127.0.0.1:",
    ],
)
def test_a_foreign_host_is_403(run: Running, host: str) -> None:
    """
    A name that was made to point at loopback stands in the Host header: that is how a web page reaches local services.
    """
    answer = on_port(run, "GET /healthz", BEARER, host=host)

    assert answer.status == 403
    assert "Host" in json.loads(answer.body)["error"]


def test_no_host_at_all_is_403(run: Running) -> None:
    """
    An old client that names no host is not let in.
    """
    assert on_port(run, "GET /healthz", BEARER, host=None, protocol="HTTP/1.0").status == 403


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:3000", 200),
        ("http://127.0.0.1", 200),
        ("https://[::1]:8443", 200),
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("null", 403),
        ("", 403),
        ("file://", 403),
        ("http://localhost:3000, http://evil.example", 403),
        ("http://localhost\r\norigin: http://evil.example", 403),
    ],
)
def test_a_page_of_another_origin_is_403(run: Running, origin: str, status: int) -> None:
    """
    A web page cannot speak to the port, even with the token.
    """
    assert on_port(run, "GET /metrics", BEARER, f"origin: {origin}").status == status


def test_bare_health_needs_no_token_and_tells_little(run: Running) -> None:
    """
    A load balancer asks without a token and learns that the service is up; with the token, or on the socket, one learns the rest.
    """
    bare = on_port(run, "GET /healthz")
    full = on_port(run, "GET /healthz", BEARER)
    on_socket = read_answer(run.send(request("GET /healthz")))

    assert (bare.status, json.loads(bare.body)) == (200, {"status": "ok"})
    assert json.loads(full.body) == json.loads(on_socket.body) == {"status": "ok", "spend": "0.01"}


def test_health_with_a_wrong_token_is_401(run: Running) -> None:
    """
    Who sends a token wants to know whether it is right.
    """
    assert on_port(run, "GET /healthz", "authorization: Bearer wrong").status == 401


@pytest.mark.parametrize("origin", ["http://localhost", "https://evil.example", "null", ""])
def test_no_browser_speaks_to_the_socket(run: Running, origin: str) -> None:
    """
    No browser can open a Unix socket: what carries an Origin was forwarded from one.
    """
    assert read_answer(run.send(request("GET /metrics", f"origin: {origin}"))).status == 403


def test_the_socket_needs_neither_token_nor_host(run: Running) -> None:
    """
    The mode of the socket's file says who may use it.
    """
    assert read_answer(run.send(request("GET /metrics", host="turngate"))).status == 200


def test_an_empty_token_is_no_token() -> None:
    """
    A port whose token everybody knows is not opened.
    """

    async def app(*_: object) -> None:
        raise AssertionError

    with pytest.raises(ValueError, match="token"):
        on_loopback_port(app, "")


def test_a_stranger_leaves_no_trace_in_the_handlers(tmp_path: Path) -> None:
    """
    What is refused at the door reaches no handler.
    """
    with running(tmp_path / "state", port=True) as run:
        on_port(run, "POST /v1/judge", "content-length: 0")
        on_port(run, "POST /v1/hook/claude-code", "content-length: 0")

        assert (run.judged, run.relayed, run.refused, run.failed) == ([], [], [], [])


MALFORMED = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\nno colon\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(request("GET /healthz"), 200, id="health-of-a-stranger"),
        pytest.param(request("GET /healthz", BEARER), 200, id="health"),
        pytest.param(request("GET /metrics", BEARER), 200, id="metrics"),
        pytest.param(request("GET /metrics"), 401, id="no-token"),
        pytest.param(request("GET /metrics", host="evil.example"), 403, id="host"),
        pytest.param(request("GET /metrics", "origin: http://evil.example"), 403, id="origin"),
        pytest.param(request("GET /nothing", BEARER), 404, id="no-route"),
        pytest.param(request("PUT /v1/judge", BEARER), 405, id="method"),
        pytest.param(request("POST /v1/judge", BEARER, "content-length: 0"), 200, id="judge"),
        pytest.param(request("POST /v1/judge", BEARER, "content-length: 9999999"), 413, id="too-long"),
        pytest.param(MALFORMED, 400, id="no-http"),
    ],
)
def test_every_answer_of_the_port_is_safe_in_a_browser(run: Running, sent: bytes, status: int) -> None:
    """
    Whoever wrote the answer: nothing in it runs, is guessed at, is kept, or tells others its address.
    """
    with socket.create_connection(("127.0.0.1", run.port or 0), timeout=PATIENCE_S) as connection:
        connection.sendall(sent)
        answer = read_answer(read_all(connection))

    assert answer.status == status
    assert answer.headers["content-security-policy"].startswith("default-src 'none';")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "same-origin"
