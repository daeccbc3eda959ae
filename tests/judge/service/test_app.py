"""
The service's routes: on the hook's route always an answer that lets the turn end, on the others a status and one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote_from_bytes

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.judge.service import app
from turngate.judge.service.app import HookReply, RelayedEvent

from .running import DECISION, PATIENCE_S, TOKEN, Running, a_hook_request, read_answer, running

MB = 1024 * 1024


@pytest.fixture(name="run", scope="module")
def run_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("app") / "state", port=True) as run:
        yield run


@pytest.fixture(autouse=True)
def _afresh(run: Running) -> None:  # pyright: ignore[reportUnusedFunction]
    for kept in (run.relayed, run.refused, run.failed, run.judged):
        kept.clear()


@pytest.fixture(name="client")
def client_fixture(run: Running) -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(uds=run.path)
    with httpx.Client(transport=transport, base_url="http://turngate", timeout=PATIENCE_S) as client:
        yield client


def test_an_event_reaches_the_handler_as_it_was_relayed(run: Running) -> None:
    """
    Body, version, age, deadline and variables are those of the hook; a name alone is a variable that is not set.
    """
    environ = "HOME=/home/u&TURNGATE_X=a%26b%3Dc%25&EMPTY=&LACKING&RAW=%FF%0A"
    started_ms = int(time.monotonic() * 1000)
    headers = {"turngate-environ": environ, "turngate-deadline-s": "0.5", "turngate-started-ms": str(started_ms)}

    answer = read_answer(run.send(a_hook_request(b'{"a":1}', headers=headers)))

    assert (answer.status, answer.body) == (200, b'{"decision":"block"}')
    [relayed] = run.relayed
    assert relayed._replace(is_connected=bool) == RelayedEvent(
        b'{"a":1}',
        started_ms / 1000,
        0.5,
        {"HOME": "/home/u", "TURNGATE_X": "a&b=c%", "EMPTY": "", "RAW": "\udcff\n"},
        bool,
        frozenset({"LACKING"}),
        DECISION,
    )


@pytest.mark.parametrize("away_s", [-3601, 5], ids=["of-an-hour-ago", "in-the-future"])
def test_a_start_that_cannot_be_is_now(run: Running, away_s: int) -> None:
    """
    The clock of another container tells nothing here; the stop is decided all the same.
    """
    before = time.monotonic()

    run.send(a_hook_request(turngate_started_ms=str(max(0, int((before + away_s) * 1000)))))

    [relayed] = run.relayed
    assert before <= relayed.started_at <= time.monotonic()


@given(st.dictionaries(st.binary(min_size=1, max_size=8), st.binary(max_size=12), max_size=4))
def test_every_environment_arrives_whole(run: Running, environ: dict[bytes, bytes]) -> None:
    """
    Whatever bytes a variable holds, the handler sees what the hook's process would see.
    """
    header = "&".join(
        f"{quote_from_bytes(name, safe='/:')}={quote_from_bytes(value, safe='/:')}" for name, value in environ.items()
    )
    run.relayed.clear()

    run.send(a_hook_request(turngate_environ=header))

    expected = {
        name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape")
        for name, value in environ.items()
    }
    assert [relayed.environ for relayed in run.relayed] == [expected]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("turngate-started-ms", "-1"),
        ("turngate-started-ms", "1.5"),
        ("turngate-started-ms", ""),
        ("turngate-started-ms", "12345678901234567890"),
        ("turngate-started-ms", "\xb2"),
        ("turngate-decision", ""),
        ("turngate-decision", "01JD0000000000A"),
        ("turngate-decision", "01jd0000000000a0"),
        ("turngate-deadline-s", "0"),
        ("turngate-deadline-s", "601"),
        ("turngate-deadline-s", "nan"),
        ("turngate-deadline-s", "eight"),
        ("turngate-environ", "HOME=%"),
        ("turngate-environ", "HOME=%4"),
        ("turngate-environ", "HOME=%zz"),
        ("turngate-environ", "HOME=a b"),
        ("turngate-environ", "HOME=a+b"),
        ("turngate-environ", "HOME=a=b"),
        ("turngate-environ", "HOME=caf\xe9"),
        ("turngate-environ", "=value"),
        ("turngate-environ", "A=1&A=2"),
        ("turngate-environ", "A=1&A"),
        ("turngate-environ", "A=1&&B=2"),
    ],
)
def test_a_bad_header_lets_the_turn_end(run: Running, header: str, value: str) -> None:
    """
    A header that cannot be read is told in one line that names it, and nothing is decided.
    """
    answer = read_answer(run.send(a_hook_request(headers={header: value})))

    assert (answer.status, answer.body) == (200, b"")
    assert run.relayed == []
    [line] = run.refused
    assert line.startswith(f"{header}: ")
    assert "\n" not in line


@pytest.mark.parametrize(
    "header",
    ["turngate-decision", "turngate-started-ms", "turngate-deadline-s", "turngate-environ", "turngate-version"],
)
def test_a_lacking_header_lets_the_turn_end(run: Running, header: str) -> None:
    """
    Somebody who is no hook of ours gets an empty answer, and ends no service.
    """
    answer = read_answer(run.send(a_hook_request(without=header)))

    assert (answer.status, answer.body) == (200, b"")
    assert run.refused == [f"{header}: expected once, found 0 times"]
    assert not run.service.is_ending


def test_a_header_of_200_kb_is_read(run: Running) -> None:
    """
    The variables of a full environment fit into the header.
    """
    assert read_answer(run.send(a_hook_request(turngate_environ="A=" + "x" * 200_000))).body
    assert len(run.relayed[0].environ["A"]) == 200_000


def test_a_header_without_end_is_400(run: Running) -> None:
    """
    Memory is bounded whatever is sent.
    """
    assert read_answer(run.send(a_hook_request(turngate_environ="A=" + "x" * 2 * MB))).status == 400
    assert run.relayed == []


@pytest.mark.parametrize("chunked", [False, True], ids=["with-length", "chunked"])
def test_an_event_of_4_mb_is_read_and_a_longer_one_passes(run: Running, client: httpx.Client, chunked: bool) -> None:
    """
    What is longer than any event lets the turn end without being read to its end.
    """

    def post(size: int) -> httpx.Response:
        body = (b"x" * 65536 for _ in range(size // 65536)) if chunked else b"x" * size
        headers = {
            "turngate-version": "0.1.0",
            "turngate-decision": "01jd0000000000a",
            "turngate-started-ms": "1",
            "turngate-deadline-s": "8",
            "turngate-environ": "",
        }
        return client.post("/v1/hook/claude-code", content=body, headers=headers)

    assert post(4 * MB).content == b'{"decision":"block"}'
    longer = post(100 * MB)

    assert (longer.status_code, longer.content) == (200, b"")
    assert [len(relayed.body) for relayed in run.relayed] == [4 * MB]
    assert run.refused == ["a body of more than 4259840 bytes"]


def test_a_length_that_is_too_much_is_answered_before_the_body_comes(run: Running) -> None:
    """
    Nothing is read that would be thrown away.
    """
    on_hook = read_answer(run.send(a_hook_request(b"", length=4_259_841)))
    on_judge = read_answer(run.send(b"POST /v1/judge HTTP/1.1\r\nhost: t\r\ncontent-length: 1048577\r\n\r\n"))

    assert (on_hook.status, on_hook.body) == (200, b"")
    assert on_judge.status == 413


def test_a_body_that_does_not_come_is_408(run: Running, client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Whoever announces more than comes is not waited for, on either route.
    """
    monkeypatch.setattr(app, "BODY_WAIT_S", 0.1)

    on_hook = read_answer(run.send(a_hook_request(length=100)))
    on_judge = read_answer(run.send(b"POST /v1/judge HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\nabc"))

    assert (on_hook.status, on_judge.status) == (408, 408)
    assert json.loads(on_judge.body) == {"error": "the body did not come within 0.1 s"}
    assert client.get("/metrics").status_code == 200


def test_who_hangs_up_in_its_body_is_no_failure(run: Running, client: httpx.Client) -> None:
    """
    A hook that was killed while it sent is simply gone.
    """
    with run.connected() as connection:
        connection.sendall(a_hook_request(b"{", length=100))

    assert client.get("/metrics").status_code == 200
    assert (run.failed, run.refused, run.relayed) == ([], [], [])


@pytest.mark.parametrize(
    ("reply", "status", "headers", "body"),
    [
        pytest.param(HookReply(), 200, {}, b"", id="pass"),
        pytest.param(
            HookReply(notice="a \u201cline\u201d, 100%\n"),
            200,
            {"turngate-notice": "a%20%E2%80%9Cline%E2%80%9D%2C%20100%25%0A"},
            b"",
            id="notice",
        ),
        pytest.param(
            HookReply(428, needs=("A_KEY", "B C"), deadline_s=20.0),
            428,
            {"turngate-needs": "A_KEY,B%20C", "turngate-deadline-s": "20"},
            b"",
            id="needs",
        ),
        pytest.param(HookReply(421), 421, {}, b"", id="elsewhere"),
    ],
)
def test_a_reply_is_status_headers_and_body(
    tmp_path: Path, reply: HookReply, status: int, headers: dict[str, str], body: bytes
) -> None:
    """
    The handler's reply reaches the hook in headers that need no JSON to be read.
    """

    async def hook(_relayed: RelayedEvent) -> HookReply:
        return reply

    with running(tmp_path / "state", hook) as run:
        answer = read_answer(run.send(a_hook_request()))

    ours = {name: value for name, value in answer.headers.items() if name.startswith("turngate-")}
    assert (answer.status, ours, answer.body) == (status, {"turngate-version": "0.1.0", **headers}, body)


@pytest.mark.parametrize(
    "fault", [RuntimeError("ours"), TimeoutError("ours"), asyncio.CancelledError("ours")], ids=repr
)
def test_a_failing_handler_lets_the_turn_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], fault: BaseException
) -> None:
    """
    Whatever is raised, the hook gets an empty answer, the owner is told, and nothing is written to stderr.
    """

    async def hook(_relayed: RelayedEvent) -> HookReply:
        raise fault

    with running(tmp_path / "state", hook) as run:
        answer = read_answer(run.send(a_hook_request()))

    assert (answer.status, answer.body) == (200, b"")
    assert [str(error) for error in run.failed] == ["ours"]
    assert capfd.readouterr() == ("", "")


def test_a_failing_log_changes_nothing(tmp_path: Path) -> None:
    """
    Where even the telling fails, the turn ends all the same.
    """

    class Full:
        def append(self, _told: object) -> None:
            raise OSError("disk full")

    async def hook(_relayed: RelayedEvent) -> HookReply:
        raise RuntimeError

    folder = tmp_path / "state"
    with running(folder, hook, untold=Full()) as run:
        assert read_answer(run.send(a_hook_request())).body == b""
        assert read_answer(run.send(a_hook_request(without="turngate-started-ms"))).status == 200


def test_another_version_ends_the_service(tmp_path: Path) -> None:
    """
    A hook of another version is told to start another service, and nobody can connect to this one any more.
    """
    with running(tmp_path / "state") as run:
        answer = read_answer(run.send(a_hook_request(turngate_version="0.2.0")))

        assert answer.status == 409
        assert answer.headers["turngate-version"] == "0.1.0"
        assert run.service.is_ending
        assert run.relayed == []
        with pytest.raises((FileNotFoundError, ConnectionRefusedError)):
            run.connected()


def test_the_handler_sees_whether_the_hook_is_still_there(tmp_path: Path) -> None:
    """
    No tokens need be paid for a hook that is gone.
    """
    gone = threading.Event()

    async def hook(relayed: RelayedEvent) -> HookReply:
        assert relayed.is_connected()
        while relayed.is_connected():
            await asyncio.sleep(0.005)
        gone.set()
        return HookReply()

    with running(tmp_path / "state", hook) as run:
        with run.connected() as connection:
            connection.sendall(a_hook_request())
            assert run.hook_is_running.wait(PATIENCE_S)
        assert gone.wait(PATIENCE_S)
        assert run.failed == []


def test_the_judge_gets_body_and_content_type(run: Running, client: httpx.Client) -> None:
    """
    The judge's route passes on what came and answers what it is given.
    """
    answer = client.post("/v1/judge", content=b'{"version":1}', headers={"content-type": "text/x"})

    assert (answer.status_code, answer.json()) == (200, {"outcome": "ok"})
    assert answer.headers["content-type"] == "application/json"
    assert run.judged == [(b'{"version":1}', "text/x")]


@pytest.mark.parametrize("on_port", [False, True], ids=["socket", "port"])
def test_a_long_body_for_the_judge_is_413(run: Running, client: httpx.Client, on_port: bool) -> None:
    """
    Whoever sends too much reads why, though the rest was never read, and the next request is answered.
    """
    body = b"x" * (20 * MB)
    url = f"http://127.0.0.1:{run.port}/v1/judge" if on_port else "/v1/judge"
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx.Client(trust_env=False, timeout=PATIENCE_S) as tcp:
        caller = tcp if on_port else client
        refused = caller.post(url, content=body, headers=headers)

        assert (refused.status_code, refused.json()) == (413, {"error": "the body is longer than 1,000,000 bytes"})
        assert run.judged == []
        assert caller.post(url, content=body[:1_000_000], headers=headers).status_code == 200


def test_a_fault_of_ours_is_500_in_one_line(
    run: Running, client: httpx.Client, capfd: pytest.CaptureFixture[str]
) -> None:
    """
    No traceback goes out, neither to the caller nor to stderr; the owner is told.
    """
    answer = client.post("/v1/judge", content=b"break")

    assert (answer.status_code, answer.json()) == (500, {"error": "internal error: RuntimeError"})
    assert [str(error) for error in run.failed] == ["a fault of ours"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/healthz/", 404),
        ("POST", "/v1/judge/", 404),
        ("GET", "/v1/judge", 405),
        ("GET", "/v1/hook/claude-code", 405),
        ("POST", "/metrics", 405),
        ("DELETE", "/healthz", 405),
    ],
)
def test_an_unknown_route_or_method_is_one_json_line(client: httpx.Client, method: str, path: str, status: int) -> None:
    """
    A mistyped address is told in one line of JSON, and nowhere else.
    """
    answer = client.request(method, path)

    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert answer.text.count("\n") == 1
    assert answer.headers["turngate-version"] == "0.1.0"


@pytest.mark.parametrize(
    "garbage", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 300_000]
)
def test_what_is_no_http_is_400_with_our_version(run: Running, garbage: bytes) -> None:
    """
    Even then the answer is recognisably this service's.
    """
    answer = read_answer(run.send(garbage))

    assert (answer.status, answer.headers["turngate-version"]) == (400, "0.1.0")
    assert list(json.loads(answer.body)) == ["error"]


def test_a_broken_chunk_ends_only_its_connection(run: Running, client: httpx.Client) -> None:
    """
    A body that stops being HTTP while it is read is answered or hung up on, and nothing is decided.
    """
    run.send(a_hook_request(b"zz\r\n", without="content-length", transfer_encoding="chunked"))

    assert (run.relayed, run.failed) == ([], [])
    assert client.get("/metrics").status_code == 200


def test_an_upgrade_is_not_followed(run: Running) -> None:
    """
    There are no web sockets here.
    """
    answer = read_answer(
        run.send(b"GET /metrics HTTP/1.1\r\nhost: t\r\nupgrade: websocket\r\nconnection: close, upgrade\r\n\r\n")
    )

    assert answer.status == 200
