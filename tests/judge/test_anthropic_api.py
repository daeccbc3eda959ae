"""
What leaves for an endpoint: the request's fields and headers, and nothing of the process's own environment.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.judgement import Judgement
from turngate.judge.scripted_api import Resets, ScriptedMessagesApi, Sends, fails

AskOnce = Callable[..., Judgement]

KEY = "sk-ant-test-0123456789"
CLEAN: dict[str, Any] = {"findings": []}


def fields(body: dict[str, Any]) -> set[str]:
    """
    Name the optional fields of a request.
    """
    output: dict[str, Any] = body.get("output_config", {})
    found = {f"output_config.{name}" for name in output}
    return found | ({"thinking"} & body.keys()) | ({"cache_control"} if isinstance(body["system"], list) else set())


def test_a_request_has_the_fields_that_the_api_takes(ask: AskOnce) -> None:
    """
    A schema, an effort, no thinking in front of the answer, and few tokens to answer with.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(api)

    body = api.requests[0].body
    assert (body["model"], body["max_tokens"], body["thinking"]) == (
        "claude-sonnet-5-5",
        1024,
        {"type": "between_tools"},
    )
    assert body["output_config"]["effort"] == "medium"
    assert body["output_config"]["format"]["type"] == "json_schema"
    assert body["output_config"]["format"]["schema"]["type"] == "object"
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert "stream" not in body


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-sonnet-5-5", {"type": "between_tools"}),
        ("claude-sonnet-5-5-20260901", {"type": "between_tools"}),
        ("claude-opus-5-5", {"type": "between_tools"}),
        ("claude-haiku-5-5", {"type": "disabled"}),
        ("claude-haiku-4-5", None),
        ("qwen3-30b", None),
    ],
)
def test_each_model_is_told_in_its_own_way_not_to_think(
    ask: AskOnce, model: str, thinking: dict[str, str] | None
) -> None:
    """
    Models that do not think unless asked are not told anything.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(api, model=model)

    assert api.requests[0].body.get("thinking") == thinking


def test_settings_reach_the_request(ask: AskOnce) -> None:
    """
    Effort and length are the user's.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(api, effort="low", max_tokens=256)

    assert api.requests[0].body["output_config"]["effort"] == "low"
    assert api.requests[0].body["max_tokens"] == 256


def test_only_known_headers_are_sent(ask: AskOnce) -> None:
    """
    The key as the SDK sends it, and nothing that tells about the machine.
    """
    with ScriptedMessagesApi([CLEAN]) as api:
        ask(api)

    headers = dict(api.requests[0].headers)
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["anthropic-version"]
    assert set(headers) == {
        "host",
        "connection",
        "accept",
        "accept-encoding",
        "user-agent",
        "content-type",
        "content-length",
        "authorization",
        "anthropic-version",
    }


LEAKS = {
    "ANTHROPIC_AUTH_TOKEN": "leaked-token",
    "ANTHROPIC_API_KEY": "leaked-key",
    "ANTHROPIC_CUSTOM_HEADERS": "authorization: Bearer leaked-header\nx-leaked: leaked-value",
    "ANTHROPIC_PROFILE": "leaked-profile",
    "ANTHROPIC_LOG": "debug",
    "ANTHROPIC_OPEN_TELEMETRY": "true",
}


def test_the_processs_own_environment_reaches_nobody(ask: AskOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A service asks with the key of the session that asks it, never with its own; the same holds for headers and address.
    """
    with ScriptedMessagesApi(otherwise=CLEAN) as elsewhere, ScriptedMessagesApi([CLEAN]) as api:
        for name, value in {**LEAKS, "ANTHROPIC_BASE_URL": elsewhere.url}.items():
            monkeypatch.setenv(name, value)
        assert ask(api).outcome == "answered"

    assert elsewhere.requests == []
    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "leaked" not in json.dumps([dict(api.requests[0].headers), api.requests[0].body])


def test_loopback_is_asked_without_a_proxy(ask: AskOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A proxy for the world outside does not see what stays on the machine.
    """
    with ScriptedMessagesApi() as proxy, ScriptedMessagesApi([CLEAN]) as api:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert ask(api).outcome == "answered"

    assert proxy.requests == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SSL_CERT_FILE", "/nonexistent/ca.pem"),
        ("HTTPS_PROXY", "nonsense://\x7f"),
        ("ALL_PROXY", "socks5://127.0.0.1:1"),
    ],
)
def test_an_environment_that_no_client_can_use_is_an_error(
    ask: AskOnce, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """
    A certificate file that is gone or a proxy that is none gives an outcome, and no call.
    """
    monkeypatch.setenv(name, value)

    judgement = ask("https://gateway.example")

    assert judgement.outcome == "error"
    assert judgement.detail
    assert ledger.calls() == []


def test_a_fresh_process_writes_nothing_by_itself(tmp_path: Path) -> None:
    """
    Asking, with everything switched on that makes libraries talk, leaves stdout and stderr empty.
    """
    code = """
import sys, time
from turngate.judge.connect import connect
from turngate.judge.context import CallContext
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn
settings = JudgeSettings(backend="anthropic", base_url=sys.argv[1], model=sys.argv[2])
environ = {"ANTHROPIC_API_KEY": "k1"}
for _ in range(2):
    ask = connect(settings, environ, None, CallContext(), deadline_at=time.monotonic() + 20)
    assert ask(Turn("Go.", "Done.")).outcome == "answered"
"""
    # Claude Sonnet 4.5 is one of the models about which the SDK warns.
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ANTHROPIC_LOG": "debug"}
    with ScriptedMessagesApi(otherwise=CLEAN) as api:
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-c", code, api.url, "claude-sonnet-4-5"],
            capture_output=True,
            text=True,
            env={**os.environ, **environ},
        )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


class TestRefusedFields:
    """
    Endpoints that do not know every field of the Messages API.
    """

    @pytest.mark.parametrize(
        ("refused", "left"),
        [
            ("thinking", {"output_config.effort", "output_config.format", "cache_control"}),
            ("output_config.format", {"output_config.effort", "thinking", "cache_control"}),
            ("output_config.effort", {"output_config.format", "thinking", "cache_control"}),
            ("output_config", {"thinking", "cache_control"}),
            ("cache_control", {"output_config.effort", "output_config.format", "thinking"}),
            ("system.blocks", {"output_config.effort", "output_config.format", "thinking"}),
        ],
    )
    def test_a_named_field_is_left_out_from_then_on(
        self, ask: AskOnce, ledger: Ledger, refused: str, left: set[str]
    ) -> None:
        """
        The same question goes out once more without it, and the next stop's question without it at once.
        """
        with ScriptedMessagesApi([CLEAN] * 2, refused_fields=[refused]) as api:
            outcomes = [ask(api, cache="on").outcome for _ in range(2)]

        assert outcomes == ["answered", "answered"]
        assert [fields(received.body) == left for received in api.requests] == [False, True, True]
        assert [call.end and call.end.outcome for call in ledger.calls()] == ["rejected", "answered", "answered"]

    def test_several_fields_are_found_one_after_the_other(self, ask: AskOnce) -> None:
        """
        An endpoint that knows none of them is still asked at the first stop.
        """
        refused = ["thinking", "output_config", "cache_control"]
        with ScriptedMessagesApi([CLEAN], refused_fields=refused) as api:
            assert ask(api, cache="on").outcome == "answered"

        assert fields(api.requests[-1].body) == set()
        assert isinstance(api.requests[-1].body["system"], str)

    @pytest.mark.parametrize("status", [400, 422])
    def test_a_refusal_that_names_nothing_drops_all(self, ask: AskOnce, status: int) -> None:
        """
        Asked once more with what every Messages API knows, and remembered.
        """
        with ScriptedMessagesApi([fails(status, "bad request"), CLEAN, CLEAN]) as api:
            outcomes = [ask(api, cache="off").outcome for _ in range(2)]

        assert outcomes == ["answered", "answered"]
        assert [fields(received.body) == set() for received in api.requests] == [False, True, True]

    def test_what_did_not_help_is_not_remembered(self, ask: AskOnce) -> None:
        """
        A 400 for another cause ends after one more try, and the next stop asks in full again.
        """
        with ScriptedMessagesApi([fails(400, "no"), fails(400, "no"), CLEAN]) as api:
            outcomes = [ask(api).outcome for _ in range(2)]

        assert outcomes == ["error", "answered"]
        assert [bool(fields(received.body)) for received in api.requests] == [True, False, True]

    @pytest.mark.parametrize(
        "message",
        [
            "Your credit balance is too low to access the API.",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length exceeds the context window",
        ],
    )
    def test_credit_and_length_are_not_about_fields(self, ask: AskOnce, message: str) -> None:
        """
        No second request for what no field can change.
        """
        with ScriptedMessagesApi([fails(400, message), CLEAN]) as api:
            judgement = ask(api)

        assert (judgement.outcome, len(api.requests)) == ("error", 1)
        assert message[:20] in judgement.detail

    def test_memory_is_of_one_endpoint_and_model(self, ask: AskOnce) -> None:
        """
        Another model behind the same endpoint is asked in full.
        """
        with ScriptedMessagesApi([fails(400, "thinking: unknown"), CLEAN, CLEAN]) as api:
            ask(api)
            ask(api, model="claude-opus-5-5")

        assert ["thinking" in received.body for received in api.requests] == [True, False, True]

    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"not json",
            b"[]",
            b'{"error": null}',
            b'{"error": "thinking is unknown"}',
            b'{"error": {"message": 5}}',
            b'{"detail": [{"loc": ["body", "thinking"]}]}',
            b"<html>",
        ],
    )
    def test_any_form_of_a_400_is_understood_or_taken_as_unnamed(self, ask: AskOnce, body: bytes) -> None:
        """
        Gateways write errors in their own ways.
        """
        with ScriptedMessagesApi([Sends(400, body), CLEAN]) as api:
            assert ask(api).outcome == "answered"

        assert "thinking" not in api.requests[1].body


def test_an_error_that_repeats_the_key_is_written_without_it(ask: AskOnce, ledger: Ledger) -> None:
    """
    Neither judgement nor ledger holds the key, and the detail is one short line.
    """
    with ScriptedMessagesApi([fails(401, f"invalid key {KEY}\n" + "x" * 5000)]) as api:
        judgement = ask(api)

    assert "invalid key" in judgement.detail
    assert KEY not in judgement.detail
    assert KEY not in repr(ledger.calls())
    assert KEY.encode() not in Path(ledger.database.path).read_bytes()
    assert len(judgement.detail) <= 200
    assert "\n" not in judgement.detail


def test_an_answer_that_repeats_the_key_is_read_without_it(ask: AskOnce, ledger: Ledger) -> None:
    """
    Neither the verdict's reason, which goes to the agent, nor the ledger's line gets it.
    """
    finding = {"fault": "claim", "quote": "All tests pass.", "reason": f"The key {KEY} is yours."}
    with ScriptedMessagesApi([{"findings": [finding]}]) as api:
        judgement = ask(api)

    assert judgement.verdict is not None
    assert judgement.verdict.findings
    assert KEY not in repr(judgement)
    assert KEY not in repr(ledger.calls())


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


def a_message(text: str, **more: object) -> dict[str, object]:
    content = [{"type": "text", "text": text}]
    return {"content": content, "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}, **more}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(a_message(json.dumps(CLEAN), model="HERE"), id="model"),
        pytest.param(
            a_message(json.dumps(CLEAN), usage={"input_tokens": 1, "output_tokens": 1, "HERE": ["HERE"]}), id="usage"
        ),
        pytest.param(
            a_message('{"findings": [{"fault": "claim", "quote": "All tests pass.", "reason": "Key HERE."}]}'),
            id="reason",
        ),
        pytest.param(
            a_message('{"findings": [{"fault": "claim", "quote": "HERE", "reason": "A key."}]}'),
            id="quote",
        ),
    ],
)
@pytest.mark.parametrize("twice", [False, True], ids=["once", "in-the-inner-json-too"])
def test_a_key_written_with_escapes_is_found(
    ask: AskOnce, ledger: Ledger, body: dict[str, object], twice: bool
) -> None:
    """
    Wherever it stands in the answer, it reaches neither judgement nor ledger.
    """
    written = json.dumps(body).replace("HERE", escaped(KEY).replace("\\", "\\\\") if twice else escaped(KEY))
    with ScriptedMessagesApi([Sends(200, written.encode())]) as api:
        judgement = ask(api)

    assert judgement.outcome == "answered"
    assert KEY not in repr(judgement)
    assert KEY not in repr(ledger.calls())
    if "model" in body and not twice:
        assert KEY.encode() not in Path(ledger.database.path).read_bytes()


@pytest.mark.parametrize("key", ["text", "type", "a", "model"])
def test_a_short_key_does_not_break_what_is_read(ask: AskOnce, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Local servers take any key: one that is a word of the API leaves the answer whole.
    """
    monkeypatch.setattr(sys.modules[ask.__module__], "KEY", key)
    with ScriptedMessagesApi([CLEAN]) as api:
        assert ask(api).outcome == "answered"

    assert api.requests[0].headers["authorization"] == f"Bearer {key}"


@pytest.mark.parametrize(
    ("encoding", "pack", "outcome"),
    [
        pytest.param("gzip", gzip.compress, "answered", id="gzip"),
        pytest.param("deflate", zlib.compress, "answered", id="deflate"),
        pytest.param("gzip", lambda body: body, "error", id="not-gzip"),
        pytest.param("br", lambda body: body, "error", id="br"),
        pytest.param("gzip, gzip", lambda body: gzip.compress(gzip.compress(body)), "error", id="twice"),
    ],
)
def test_a_compressed_answer_is_unpacked_or_an_error(
    ask: AskOnce, encoding: str, pack: Callable[[bytes], bytes], outcome: str
) -> None:
    """
    A plain answer is asked for; proxies compress all the same.
    """
    body = pack(json.dumps(a_message(json.dumps(CLEAN))).encode())
    with ScriptedMessagesApi([Sends(200, body, (("content-encoding", encoding),))]) as api:
        assert ask(api).outcome == outcome


def test_a_small_answer_that_unpacks_to_much_takes_little_memory(ask: AskOnce) -> None:
    """
    200 MB in 200 kB are not unpacked beyond the limit for any answer.
    """
    packed = gzip.compress(b" " * 200_000_000, 1)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ScriptedMessagesApi([Sends(200, packed, (("content-encoding", "gzip"),))]) as api:
        assert ask(api).outcome == "error"

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 50_000


def test_troubles_are_told_in_words(ask: AskOnce) -> None:
    """
    A person reads no name of an exception class.
    """
    details = [ask("http://127.0.0.1:1", deadline_s=0.5).detail]
    for answer in (Resets(), Resets(in_body=True)):
        with ScriptedMessagesApi(otherwise=answer) as api:
            details.append(ask(api, deadline_s=0.5).detail)

    assert not [detail for detail in details if "Error" in detail or "Exception" in detail]
