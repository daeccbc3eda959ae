"""
A team's service as a judge, over real HTTP on loopback.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.connect import Judge, NoJudge, Target, choose, connect
from turngate.judge.context import CallContext
from turngate.judge.judgement import AskOutcome, Judgement
from turngate.judge.remote import MAX_REPLY_BYTES, RemoteJudge
from turngate.judge.scripted_api import (
    EMPTY,
    HTML,
    Dribbles,
    Hangs,
    Received,
    Resets,
    ScriptedMessagesApi,
    Sends,
    redirects,
)
from turngate.judge.service.wire import answer_request, read_request, write_reply
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Facts, ToolCall, Turn
from turngate.rubric.verdict import Finding, Verdict

TOKEN = "tok-0123456789-of-the-team"
VARIABLE = "TURNGATE_REMOTE_TOKEN"

CLAIM = Finding("claim", "All tests pass.", "The reply says that all tests pass; no test run is shown.")
ANSWERED = Judgement("answered", Verdict((CLAIM,), 1), "", "turn_end@1", "0123456789ab", ("01jd0000000000a",))

ServiceAnswer = Sends | Hangs | Dribbles | Resets


def referred(judgement: Judgement = ANSWERED) -> Judgement:
    """
    The same as the caller keeps it: its calls stand in the service's ledger, and are named in one line.
    """
    named = f"calls of the team's service: {', '.join(judgement.calls)}"
    return judgement._replace(detail=f"the team's service: {judgement.detail}; {named}" if judgement.detail else named)


def judged(judgement: Judgement = ANSWERED) -> Sends:
    """
    Give the answer of a service that came to this judgement.
    """
    return Sends(body=write_reply(judgement))


class ScriptedService(ScriptedMessagesApi):
    """
    A server that takes any request and answers from a script; the last answer stays.
    """

    def __init__(self, *answers: ServiceAnswer | Callable[[Received], ServiceAnswer]) -> None:
        super().__init__()
        self.script = list(answers)

    def respond(self, received: Received) -> ServiceAnswer:
        """
        Record a request and choose its answer.
        """
        self.requests.append(received)
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return answer(received) if callable(answer) else answer


def judge_at(url: str, turn: Turn, *, deadline_s: float = 5.0, ledger: Ledger | None = None) -> Judgement:
    """
    Ask the service at this address once, as a hook does.
    """
    judge = connect(
        JudgeSettings(backend="remote", base_url=url),
        {VARIABLE: TOKEN},
        ledger,
        CallContext(decision_id="d1", session_id="s1"),
        deadline_at=time.monotonic() + deadline_s,
    )
    assert isinstance(judge, Judge)
    return judge(turn)


def test_the_service_gets_the_turn_and_its_judgement_comes_back(turn: Turn) -> None:
    """
    Both ends read what the other wrote: the whole turn one way, verdict, rubric and call ids the other way.
    """
    asked: list[tuple[Turn, float]] = []
    sent = turn._replace(
        tool_calls=(ToolCall("Edit", "Edit: retry.ts -> ok", "edit"),), facts=Facts(edited_files=("retry.ts",))
    )

    async def ask(turn: Turn, deadline_s: float) -> Judgement:
        asked.append((turn, deadline_s))
        return ANSWERED

    def service(received: Received) -> Sends:
        return Sends(*asyncio.run(answered(json.dumps(received.body).encode(), received.headers["content-type"])))

    async def answered(body: bytes, content_type: str) -> tuple[int, bytes]:
        return await answer_request(body, content_type, ask)

    with ScriptedService(service) as server:
        judgement = judge_at(server.url, sent, deadline_s=5.0)

    assert judgement == referred()
    assert [received.path for received in server.requests] == ["/v1/judge"]
    assert asked[0][0] == sent
    assert 0.1 <= asked[0][1] < 5.0


@pytest.mark.parametrize("outcome", [outcome for outcome in get_args(AskOutcome) if outcome != "answered"])
def test_the_services_own_outcomes_pass_through(outcome: AskOutcome, turn: Turn) -> None:
    """
    A spent budget or an open breaker of the service is that, and not a failure of the way there.
    """
    there = Judgement(outcome, None, "because of the service", "turn_end@1", "0123456789ab", ("01jd0000000000a",))

    with ScriptedService(judged(there)) as server:
        assert judge_at(server.url, turn) == referred(there)

    assert len(server.requests) == 1


def test_only_our_own_headers_are_sent(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    No library's name, no cookie and no proxy of the environment: what leaves is what is documented.
    """
    with ScriptedService(judged()) as other, ScriptedService(judged()) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, other.url)
        judge_at(server.url, turn)

    (received,) = server.requests
    assert other.requests == []
    assert received.headers == {
        "host": server.url.removeprefix("http://"),
        "user-agent": "turngate",
        "accept": "application/json",
        "accept-encoding": "identity",
        "connection": "keep-alive",
        "content-type": "application/json",
        "content-length": received.headers["content-length"],
        "authorization": f"Bearer {TOKEN}",
    }


def test_a_judge_can_be_asked_again_and_at_once(turn: Turn) -> None:
    """
    A service of one's own machine keeps it open; a cookie of the other side is not given back.
    """
    with ScriptedService(judged()._replace(headers=(("set-cookie", "node=1; Path=/"),))) as server:

        async def ask() -> list[Judgement]:
            judge = RemoteJudge(server.url, token=TOKEN, variable=VARIABLE)
            first = await judge.judge(turn, deadline_at=time.monotonic() + 5)
            later = (judge.judge(turn, deadline_at=time.monotonic() + 5) for _ in range(3))
            both = [first, *await asyncio.gather(*later)]
            await judge.close()
            return both

        assert asyncio.run(ask()) == [referred()] * 4

    assert len(server.requests) == 4
    assert not any("cookie" in received.headers for received in server.requests)


def test_a_refused_token_is_told_by_its_variables_name(turn: Turn) -> None:
    """
    A person sees which variable to look at, and is not asked twice.
    """
    with ScriptedService(Sends(401, b'{"error": "wrong token"}')) as server:
        judgement = judge_at(server.url, turn)

    assert judgement == Judgement("error", detail=f"the team's service refused the token in {VARIABLE}")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 403, 404, 405, 408, 413, 415, 421, 422, 500, 501])
def test_a_status_that_says_no_ends_in_an_error(status: int, turn: Turn) -> None:
    """
    The service's own line is told, and nobody is asked twice: a 500 may come after a paid call.
    """
    with ScriptedService(Sends(status, b'{"error": "turn.reply: expected a text"}')) as server:
        judgement = judge_at(server.url, turn)

    assert judgement.outcome == "error"
    assert str(status) in judgement.detail
    assert "turn.reply: expected a text" in judgement.detail
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_passing_status_is_tried_again(status: int, turn: Turn) -> None:
    """
    A service that starts anew behind its proxy is asked again, within the deadline.
    """
    with ScriptedService(Sends(status, b"<html>bad gateway</html>", content_type="text/html"), judged()) as server:
        judgement = judge_at(server.url, turn)

    assert judgement == referred()
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [429, 503])
def test_a_wait_beyond_the_deadline_ends_the_tries(status: int, turn: Turn) -> None:
    """
    A retry-after of an hour is an answer.
    """
    with ScriptedService(Sends(status, headers=(("retry-after", "3600"),))) as server:
        judgement = judge_at(server.url, turn)

    assert judgement.outcome == "error"
    assert str(status) in judgement.detail
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int, turn: Turn) -> None:
    """
    The turn goes to the address in the settings, and to no other.
    """
    with ScriptedService(judged()) as other, ScriptedService(redirects(f"{other.url}/v1/judge", status)) as server:
        judgement = judge_at(server.url, turn)

    assert judgement.outcome == "error"
    assert str(status) in judgement.detail
    assert other.requests == []
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(HTML, id="a-sign-in-page"),
        pytest.param(EMPTY, id="empty"),
        pytest.param(Sends(body=b"null"), id="null"),
        pytest.param(Sends(body=b"[" * 300_000), id="deep"),
        pytest.param(Sends(body=b"\xff\xfe"), id="not-utf-8"),
        pytest.param(Sends(body=b'{"findings": []}'), id="a-models-answer"),
        pytest.param(Sends(body=write_reply(ANSWERED)[:-1]), id="cut-off"),
        pytest.param(Sends(body=write_reply(ANSWERED).replace(b'"version": 1', b'"version": 2')), id="a-newer-version"),
        pytest.param(Sends(body=write_reply(ANSWERED).replace(b"answered", b"fine")), id="an-unknown-outcome"),
        pytest.param(Sends(204), id="no-content"),
        pytest.param(Sends(201, write_reply(ANSWERED)), id="another-success"),
        pytest.param(Sends(body=write_reply(ANSWERED) + b" " * MAX_REPLY_BYTES), id="too-long"),
        pytest.param(Sends(body=b" " * 10_000_000), id="ten-megabytes"),
        pytest.param(
            Sends(body=gzip.compress(write_reply(ANSWERED)), headers=(("content-encoding", "gzip"),)), id="packed"
        ),
    ],
)
def test_what_is_no_judgement_ends_in_an_error(answer: Sends, turn: Turn) -> None:
    """
    Garbage is neither yes nor no, and is not asked for twice.
    """
    with ScriptedService(answer) as server:
        judgement = judge_at(server.url, turn)

    assert judgement.outcome == "error"
    assert judgement.verdict is None
    assert "team's service" in judgement.detail
    assert "\n" not in judgement.detail
    assert len(judgement.detail) <= 200
    assert len(server.requests) == 1


@pytest.mark.parametrize("answer", [Hangs(), Dribbles()], ids=["silence", "one-byte-at-a-time"])
def test_the_deadline_holds_whatever_the_service_does(answer: ServiceAnswer, turn: Turn) -> None:
    """
    An answer that does not come in time is a timeout.
    """
    with ScriptedService(answer) as server:
        judgement = judge_at(server.url, turn, deadline_s=0.7)

    assert judgement == Judgement("timeout", detail="no answer of the team's service before the deadline")
    assert len(server.requests) == 1


def test_a_deadline_that_has_passed_asks_nobody(turn: Turn) -> None:
    """
    Where the gate itself took all the time, nothing is sent.
    """
    with ScriptedService(judged()) as server:
        judgement = judge_at(server.url, turn, deadline_s=-1.0)

    assert judgement.outcome == "timeout"
    assert server.requests == []


@pytest.mark.parametrize("answer", [Resets(), Resets(in_body=True)], ids=["before-the-answer", "in-its-body"])
def test_a_connection_that_breaks_off_is_not_tried_again(answer: ServiceAnswer, turn: Turn) -> None:
    """
    The service may have called the model already: asked again, it would pay twice.
    """
    with ScriptedService(answer) as server:
        judgement = judge_at(server.url, turn)

    assert judgement.outcome == "error"
    assert "no connection to the team's service" in judgement.detail
    assert len(server.requests) == 1


def test_a_service_that_is_not_there_is_an_error(turn: Turn) -> None:
    """
    Nobody listens: said within the deadline.
    """
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        judgement = judge_at(f"http://127.0.0.1:{bound.getsockname()[1]}", turn)

    assert judgement.outcome == "error"
    assert "no connection to the team's service" in judgement.detail


def test_a_service_that_is_about_to_listen_is_tried_again(turn: Turn) -> None:
    """
    A refused connection costs nothing, so it is tried again.
    """
    reply = write_reply(ANSWERED)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))

        def listen_and_answer() -> None:
            listener.listen()
            connection, _ = listener.accept()
            with connection:
                connection.recv(100_000)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(reply), reply))

        late = threading.Timer(0.15, listen_and_answer)
        late.start()
        judgement = judge_at(f"http://127.0.0.1:{listener.getsockname()[1]}", turn)
        late.join()

    assert judgement == referred()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "nonsense"),
        ("HTTPS_PROXY", "ftp://proxy.invalid"),
        ("HTTPS_PROXY", "http://["),
        ("SSL_CERT_FILE", "/nowhere/ca.pem"),
    ],
)
def test_an_unusable_proxy_or_certificate_is_an_error(
    name: str, value: str, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A bad variable of the environment ends in a judgement, not in a traceback.
    """
    monkeypatch.setenv(name, value)

    judgement = judge_at("https://service.invalid", turn, deadline_s=2.0)

    assert judgement.outcome in ("error", "timeout")
    assert judgement.detail
    assert "\n" not in judgement.detail


@contextmanager
def tls_listener(certificate: Path) -> Generator[tuple[str, list[bytes]]]:
    """
    Serve TLS with a certificate that nobody vouches for; give the address and what arrived under it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    arrived: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                try:
                    with context.wrap_socket(connection, server_side=True) as secure:
                        arrived.append(secure.recv(100_000))
                except OSError:
                    arrived.append(b"")

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}", arrived
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the command openssl to make a certificate")
def test_a_service_without_a_valid_certificate_gets_nothing(turn: Turn, tmp_path: Path) -> None:
    """
    The certificate is checked before a byte of the turn is sent, and a bad one is not tried again.
    """
    made = tmp_path / "service.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(made)]
    subprocess.run(["openssl", "req", *kind, *subject, *files], check=True, capture_output=True)
    made.write_text(made.read_text() + (tmp_path / "key.pem").read_text())

    with tls_listener(made) as (url, arrived):
        judgement = judge_at(url, turn)

    assert judgement.outcome == "error"
    assert "certificate" in judgement.detail
    assert arrived == [b""]


def test_an_address_that_speaks_no_tls_gets_nothing(turn: Turn) -> None:
    """
    An https:// address of a plain server is an error.
    """
    with ScriptedService(judged()) as server:
        judgement = judge_at(server.url.replace("http://", "https://"), turn)

    assert judgement.outcome == "error"
    assert server.requests == []


def test_findings_are_read_as_strictly_as_a_models(turn: Turn) -> None:
    """
    A reason of nothing but markup, an empty quote or control characters from a service do not reach the agent.
    """
    verdict = Verdict(
        (
            CLAIM._replace(reason="**"),
            CLAIM._replace(quote="  "),
            CLAIM._replace(reason="\x1b[31mThe reply says so; use sk-ant-api03-0123456789abcdefghij.\u202e"),
        ),
        2,
    )
    body = json.loads(write_reply(ANSWERED))
    body["verdict"] = {"findings": [finding._asdict() for finding in verdict.findings], "dropped": 2}

    with ScriptedService(Sends(body=json.dumps(body).encode())) as server:
        judgement = judge_at(server.url, turn)

    kept = CLAIM._replace(reason="The reply says so; use [secret].")
    assert judgement.verdict == Verdict((kept,), dropped=4)


def echoes() -> Iterable[Any]:
    """
    Give the answers of a service that repeats the token, in each place where a text can stand.
    """
    finding = {"fault": "claim", "quote": f"All {TOKEN} pass.", "reason": f"The reply names {TOKEN}."}
    good = json.loads(write_reply(ANSWERED))
    yield pytest.param(good | {"verdict": {"findings": [finding], "dropped": 0}}, 200, id="finding")
    yield pytest.param(good | {"outcome": "error", "verdict": None, "detail": f"no {TOKEN}"}, 200, id="detail")
    yield pytest.param(good | {"calls": [TOKEN]}, 200, id="call-id")
    yield pytest.param(good | {TOKEN: 1}, 200, id="unknown-key")
    yield pytest.param({"error": f"wrong token {TOKEN}"}, 400, id="error-line")
    yield pytest.param({"error": f"wrong token {TOKEN}"}, 401, id="error-line-401")


@pytest.mark.parametrize(("body", "status"), list(echoes()))
def test_the_token_stands_nowhere(
    body: dict[str, Any], status: int, turn: Turn, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """
    Not in a judgement, whatever the service repeats, not in a log line of any level, not on standard error.
    """
    caplog.set_level(logging.DEBUG)
    answer = Sends(status, json.dumps(body).encode(), headers=(("x-echo", TOKEN),))

    with ScriptedService(answer) as server:
        judgement = judge_at(server.url, turn)

    assert server.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in repr(judgement)
    assert TOKEN not in caplog.text
    assert TOKEN not in "".join(capfd.readouterr())


def test_the_token_is_in_no_repr() -> None:
    """
    What knows the token can be printed.
    """
    target = choose(JudgeSettings(backend="remote", base_url="https://turngate.example"), {VARIABLE: TOKEN})
    judge = RemoteJudge("https://turngate.example", token=TOKEN, variable=VARIABLE)

    assert isinstance(target, Target)
    assert target.key == TOKEN
    assert TOKEN not in repr(target) + repr(judge)


def test_no_call_is_written_down_here(turn: Turn, ledger: Ledger) -> None:
    """
    The machine that called the model writes the line; here only its id arrives.
    """
    with ScriptedService(judged()) as server:
        judgement = judge_at(server.url, turn, ledger=ledger)

    assert judgement.calls == ("01jd0000000000a",)
    assert list(ledger.calls()) == []


@pytest.mark.parametrize(
    ("settings", "environ", "named"),
    [
        pytest.param({"base_url": ""}, {VARIABLE: TOKEN}, "judge.base_url", id="no-address"),
        pytest.param(
            {"base_url": ""},
            {VARIABLE: TOKEN, "ANTHROPIC_BASE_URL": "https://gateway.example"},
            "judge.base_url",
            id="the-address-of-a-model",
        ),
        pytest.param({}, {}, VARIABLE, id="no-token"),
        pytest.param({}, {"ANTHROPIC_API_KEY": "k1"}, VARIABLE, id="a-models-key-is-no-token"),
        pytest.param({}, {VARIABLE: "a\r\nx: y"}, VARIABLE, id="a-token-that-no-header-carries"),
        pytest.param({"api_key_env": "TEAM_TOKEN"}, {VARIABLE: TOKEN}, "TEAM_TOKEN", id="another-variable"),
        pytest.param({"base_url": "http://turngate.example"}, {VARIABLE: TOKEN}, "https://", id="plain"),
        pytest.param({"base_url": "HTTP://turngate.example"}, {VARIABLE: TOKEN}, "https://", id="plain-in-capitals"),
        pytest.param({"base_url": "http://10.0.0.7:8787"}, {VARIABLE: TOKEN}, "https://", id="plain-in-the-house"),
        pytest.param({"base_url": "http://a.localhost"}, {VARIABLE: TOKEN}, "https://", id="a-name-that-is-resolved"),
        pytest.param(
            {"base_url": "http://127.0.0.1.evil.example"}, {VARIABLE: TOKEN}, "https://", id="looks-like-loopback"
        ),
        pytest.param({"base_url": "https://me:pw@turngate.example"}, {VARIABLE: TOKEN}, "password", id="password"),
    ],
)
def test_without_an_address_or_a_token_there_is_no_judge(
    settings: dict[str, Any], environ: dict[str, str], named: str
) -> None:
    """
    One line says what is missing; a turn never goes out readable, and a model's key never goes to a team's service.
    """
    found = choose(
        JudgeSettings(backend="remote")._replace(**{"base_url": "https://turngate.example"} | settings), environ
    )

    assert isinstance(found, NoJudge)
    assert named in found.reason
    assert "\n" not in found.reason
    assert TOKEN not in found.reason


@pytest.mark.parametrize(
    "url", ["https://turngate.example/team", "http://127.0.0.1:8787", "http://[::1]:8787", "http://localhost:8787"]
)
def test_a_service_is_named_by_address_and_token(url: str) -> None:
    """
    TLS, or this very machine.
    """
    environ = {"TEAM_TOKEN": TOKEN, "ANTHROPIC_API_KEY": "k1", "CLAUDE_CODE_USE_BEDROCK": "1"}

    found = choose(JudgeSettings(backend="remote", base_url=url, api_key_env="TEAM_TOKEN"), environ)

    assert isinstance(found, Target)
    assert (found.backend, found.endpoint, found.key, found.key_variable) == ("remote", url, TOKEN, "TEAM_TOKEN")


def test_connecting_to_a_service_imports_nothing_heavy() -> None:
    """
    Until somebody is asked, no HTTP client and no validation is loaded.
    """
    code = """
import sys
from turngate.judge.connect import Judge, connect
from turngate.judge.context import CallContext
from turngate.judge.settings import JudgeSettings
settings = JudgeSettings(backend="remote", base_url="https://turngate.example")
judge = connect(settings, {"TURNGATE_REMOTE_TOKEN": "t"}, None, CallContext(), deadline_at=0.0)
assert isinstance(judge, Judge) and judge.held_back() is None
print([name for name in ("httpx", "pydantic", "tenacity", "asyncio", "ssl", "anthropic") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_remote_judge_loads_no_models_library() -> None:
    """
    Who asks a team's service does not pay for importing an SDK.
    """
    with ScriptedService(judged()) as server:
        code = f"""
import sys, time
from turngate.judge.connect import connect
from turngate.judge.context import CallContext
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn
settings = JudgeSettings(backend="remote", base_url={server.url!r})
judge = connect(settings, {{"TURNGATE_REMOTE_TOKEN": "t"}}, None, CallContext(), deadline_at=time.monotonic() + 20)
print(judge(Turn("a", "b")).outcome, [name for name in ("anthropic", "genai_prices") if name in sys.modules])
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "answered []"
    assert done.stderr == ""
    assert read_request(json.dumps(server.requests[0].body).encode(), "application/json").asked() == Turn("a", "b")
