"""
What an endpoint can do to a judge, each through the real hook and the real service: the turn ends, and every try is in the ledger.
"""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

import pytest

from turngate.judge.scripted_api import (
    EMPTY,
    HTML,
    REFUSAL,
    Dribbles,
    Hangs,
    Resets,
    Says,
    Script,
    ScriptedMessagesApi,
    Sends,
    Writes,
    fails,
    redirects,
)

from ..hook_runner import CLAIM
from .service_stage import AMPLE_S, ANSWERED, DEADLINE_S, Stage, Try, a_closed_port

FAILED: Try = ("error", False)
REJECTED: Try = ("rejected", False)
CUT_OFF: Try = ("timeout", False)
MOST_TRIES = 3

A_CLAIM = json.dumps(CLAIM)
USAGE = {"input_tokens": 700, "output_tokens": 50}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


class Upstream(NamedTuple):
    """
    An endpoint's answers, the last one for ever, and what comes of them.
    """

    answers: Sequence[Script]
    outcome: str
    tries: Sequence[Try]
    deadline_s: float = AMPLE_S

    @property
    def is_held(self) -> bool:
        return self.outcome == "block_verdict"


def error(answer: Script, tries: Sequence[Try] = (FAILED,) * MOST_TRIES) -> Upstream:
    return Upstream([answer], "pass_judge_error", tries)


def rejected(answer: Script) -> Upstream:
    return error(answer, [REJECTED])


def silent(answer: Script) -> Upstream:
    return Upstream([answer], "pass_judge_timeout", [CUT_OFF], DEADLINE_S)


def unreadable(text: str, stop_reason: str = "end_turn") -> Upstream:
    return Upstream([Says(text, stop_reason)], "pass_judge_unreadable", [("unreadable", True)])


def a_message(**changed: object) -> Sends:
    """
    A message as the vendor writes it, but for the fields that are changed; None leaves one out.
    """
    body = {"type": "message", "model": "m", "content": [{"type": "text", "text": A_CLAIM}], "usage": USAGE} | changed
    return Sends(body=json.dumps({name: value for name, value in body.items() if value is not None}).encode())


def later(answer: Sends, seconds: str) -> Sends:
    return answer._replace(headers=(("retry-after", seconds),))


def held_after(*answers: Script, tries: Sequence[Try] = ()) -> Upstream:
    return Upstream([*answers, CLAIM], "block_verdict", [*tries, ANSWERED])


FAULTS = {
    "reset-before-the-answer": error(Resets()),
    "reset-in-the-body": error(Resets(in_body=True)),
    "reset-once": held_after(Resets(), tries=[FAILED]),
    "closed-without-a-byte": error(Writes()),
    "silence": silent(Hangs()),
    "headers-then-silence": silent(Hangs(after_head=True)),
    "one-byte-a-second": silent(Dribbles(pause_s=1.0)),
    "bytes-without-end": silent(Dribbles(pause_s=0.005)),
    "an-answer-after-the-deadline": silent(Says(A_CLAIM, delay_s=30.0)),
    # A field of the request may be what is refused, so it is asked once more without those that can be left out.
    "400": error(fails(400, kind="invalid_request_error"), [REJECTED, REJECTED]),
    "400-for-want-of-credit": rejected(fails(400, "Your credit balance is too low", "invalid_request_error")),
    "401": rejected(fails(401, kind="authentication_error")),
    "402": rejected(fails(402, kind="billing_error")),
    "403": rejected(fails(403, kind="permission_error")),
    "404": rejected(fails(404, kind="not_found_error")),
    "408": error(fails(408, kind="timeout_error")),
    "413": rejected(fails(413, kind="request_too_large")),
    "422": error(fails(422, kind="invalid_request_error"), [REJECTED, REJECTED]),
    "429": error(fails(429, kind="rate_limit_error")),
    "429-once-and-retry-after-1": held_after(later(fails(429), "1"), tries=[FAILED]),
    "429-and-retry-after-3600": error(later(fails(429), "3600"), [FAILED]),
    "429-and-retry-after-a-date": error(later(fails(429), "Fri, 31 Dec 2100 23:59:59 GMT"), [FAILED]),
    "429-and-retry-after-nonsense": error(later(fails(429), "soon")),
    "500": error(fails(500)),
    "500-once": held_after(fails(500), tries=[FAILED]),
    "503": error(fails(503)),
    "529": error(fails(529, kind="overloaded_error")),
    "307-to-another-host": error(redirects("http://127.0.0.1:9/v1/messages"), [FAILED]),
    "html-200": error(HTML, [FAILED]),
    "empty-200": error(EMPTY, [FAILED]),
    "json-that-is-no-object": error(Sends(body=b"[1, 2]"), [FAILED]),
    "json-without-end": error(Sends(body=b'{"content":' + b"[" * 200_000), [FAILED]),
    "json-without-content": error(a_message(content=None), [("error", True)]),
    "content-that-is-a-text": error(a_message(content=A_CLAIM), [("error", True)]),
    "content-without-a-text": Upstream([a_message(content=[])], "pass_judge_unreadable", [("unreadable", True)]),
    "usage-missing": Upstream([a_message(usage=None)], "block_verdict", [("answered", False)]),
    "usage-of-nonsense": Upstream([a_message(usage={"input_tokens": -7})], "block_verdict", [("answered", False)]),
    "max-tokens-in-the-middle-of-json": unreadable(A_CLAIM[: len(A_CLAIM) // 2], "max_tokens"),
    "prose": unreadable("The reply seems fine to me."),
    "refusal": Upstream([REFUSAL], "pass_judge_refused", [("refused", True)]),
    "thinking-block-first": Upstream([Says(A_CLAIM, thinking="Did a test run? " * 50)], "block_verdict", [ANSWERED]),
    "10-mb-of-text": error(Says("x" * 10_000_000), [FAILED]),
    "10-mb-of-nothing-after-the-verdict": error(Says(A_CLAIM + " " * 10_000_000), [FAILED]),
    "10-mb-in-a-header": error(Writes(HEAD + b"x-long: " + b"x" * 10_000_000 + b"\r\n\r\n{}")),
    "gzip-that-unpacks-to-100-mb": error(
        Sends(body=gzip.compress(b" " * 100_000_000), headers=(("content-encoding", "gzip"),)), [FAILED]
    ),
    "no-http": error(Writes(b"SSH-2.0-OpenSSH_9.6\r\n")),
    "shorter-than-its-length": error(Writes(HEAD + b"content-length: 5000\r\n\r\n{")),
    "a-chunk-of-no-length": error(Writes(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n")),
    "an-unknown-charset": Upstream(
        [a_message()._replace(content_type="application/json; charset=zlib")], "block_verdict", [("answered", True)]
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_turn_ends_whatever_the_endpoint_answers(stage: Stage, fault: Upstream) -> None:
    """
    The stop is answered within the deadline, held only for a verdict, and each request has its line.
    """
    *first, last = fault.answers
    with ScriptedMessagesApi(first, otherwise=last) as api:
        stopped = stage.stop(api, deadline_s=fault.deadline_s)
        assert stopped.ran.holds is fault.is_held
        stage.assert_survived(stopped, outcome=fault.outcome, tries=fault.tries)

    assert len(api.requests) == len(fault.tries)


def test_the_turn_ends_where_nobody_listens(stage: Stage) -> None:
    """
    A refused connection is tried again, and given up before the deadline.
    """
    stopped = stage.stop(a_closed_port(), deadline_s=AMPLE_S)

    assert stopped.ran.out == b""
    stage.assert_survived(stopped, outcome="pass_judge_error", tries=[FAILED] * MOST_TRIES)


def test_the_turn_ends_where_nobody_accepts(stage: Stage) -> None:
    """
    A connection that is never made is cut off by the deadline.
    """
    with closing(socket.socket()) as listening, closing(socket.socket()) as first:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        first.connect(listening.getsockname())
        host, port = listening.getsockname()
        stopped = stage.stop(f"http://{host}:{port}")

    assert stopped.ran.out == b""
    stage.assert_survived(stopped, outcome="pass_judge_timeout", tries=[CUT_OFF])


def test_five_failures_leave_an_endpoint_alone(stage: Stage) -> None:
    """
    The stop after them costs no call, other endpoints are asked as before.
    """
    with ScriptedMessagesApi(otherwise=fails(500)) as api:
        for _ in range(2):
            stage.stop(api, deadline_s=AMPLE_S)
        asked = len(api.requests)
        stopped = stage.stop(api)
        assert len(api.requests) == asked

    stage.assert_survived(stopped, outcome="pass_breaker_open")
