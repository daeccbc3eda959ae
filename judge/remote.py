"""
A team's service as a judge; the only file that imports httpx.

The service calls the model, pays for it and writes the lines of its calls; here only their ids arrive. What it answers is read as
strictly as what a model answers.
"""

from __future__ import annotations

import json
import logging
import ssl
import time
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, cast

import httpx

from ..rubric.masking import MARK, clean, mask
from ..rubric.turn import Turn
from ..rubric.verdict import UnreadableVerdict, Verdict, parse_verdict
from .bounded_loop import DeadlinePassed, before, in_thread
from .errors import JudgeError, ModelUnavailable, NoMessage
from .judgement import Judgement
from .loopback import is_loopback
from .retrying import with_retries
from .sendable import sendable
from .service.wire import BadReply, read_reply, write_request

MAX_REPLY_BYTES: Final = 1_000_000
MAX_DETAIL_CHARS: Final = 200
WAY_BACK_S: Final = 0.25
"""The service gets so much less than there is left, so that its own `timeout` arrives in time."""
SLACK_S: Final = 1.0
"""The client's own timeouts come after the deadline: a deadline that passes is no broken connection."""

_PASSING: Final = (429, 503)
"""Statuses after which the next try may fare better. Others of a proxy may come after a call that was paid for."""

for _name in ("httpx", "httpcore"):
    # Their debug lines hold headers.
    logging.getLogger(_name).setLevel(logging.CRITICAL)


class RemoteJudge:
    """
    A service at `endpoint`, asked with a token that came out of the variable of this name. One event loop uses it.

    Raises `ModelUnavailable` where a proxy or a certificate named in the environment cannot be used.
    """

    def __init__(self, endpoint: str, *, token: str, variable: str) -> None:
        self._url: Final = f"{endpoint}/v1/judge"
        self._token: Final = token
        self._variable: Final = variable
        try:
            self._client = httpx.AsyncClient(
                follow_redirects=False,
                # Proxies and certificates of the environment are for the world outside.
                trust_env=not is_loopback(endpoint),
                headers={
                    "user-agent": "turngate",
                    "accept": "application/json",
                    "accept-encoding": "identity",
                    "content-type": "application/json",
                    "authorization": f"Bearer {token}",
                },
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        except (httpx.InvalidURL, ImportError, OSError, TypeError, ValueError) as error:
            raise ModelUnavailable(self._line(f"no client could be made: {_why(error)}")) from error

    async def judge(self, turn: Turn, *, deadline_at: float) -> Judgement:
        """
        Give the service's judgement by `deadline_at`, on `time.monotonic`'s clock.

        Raises nothing for what a network or a service does.
        """
        try:
            return await before(deadline_at, self._judged(turn, deadline_at))
        except DeadlinePassed:
            return Judgement("timeout", detail="no answer of the team's service before the deadline")
        except JudgeError as error:
            return Judgement("error", detail=error.detail)
        except Exception as error:  # other people's code, and what an answer makes it do
            return Judgement("error", detail=self._line(f"the team's service could not be asked: {_why(error)}"))

    async def close(self) -> None:
        """
        Close the connections.
        """
        await self._client.aclose()

    async def _judged(self, turn: Turn, deadline_at: float) -> Judgement:
        sent = await in_thread(lambda: sendable(turn))

        async def attempt() -> Judgement:
            return await self._try(sent, deadline_at)

        return await with_retries(attempt, deadline_at=deadline_at)

    async def _try(self, turn: Turn, deadline_at: float) -> Judgement:
        left_s = deadline_at - time.monotonic()
        body = write_request(turn, left_s - WAY_BACK_S)
        try:
            async with self._client.stream("POST", self._url, content=body, timeout=left_s + SLACK_S) as response:
                content = await _read_at_most(response, MAX_REPLY_BYTES)
        except httpx.TransportError as error:
            raise self._no_connection(error) from error
        if response.status_code != 200:
            raise self._from_status(response, content)
        try:
            return self._believed(read_reply(content))
        except (BadReply, UnreadableVerdict) as error:
            raise NoMessage(self._line(f"what the team's service answered is no judgement: {error}")) from error

    def _believed(self, judgement: Judgement) -> Judgement:
        texts = (judgement.rubric, judgement.rubric_hash, *judgement.calls)
        rubric, rubric_hash, *calls = map(self._without_token, texts)
        verdict = None if judgement.verdict is None else self._read_like_a_models(judgement.verdict)
        # The lines of its calls stand in the service's ledger: here they are only referred to.
        named = f"calls of the team's service: {', '.join(calls)}" if calls else ""
        said = f"the team's service: {judgement.detail}" if judgement.detail else ""
        detail = self._line("; ".join(filter(None, (said, named))))
        return Judgement(judgement.outcome, verdict, detail, rubric, rubric_hash, tuple(calls))

    def _read_like_a_models(self, verdict: Verdict) -> Verdict:
        # A key may be spelled with escapes: it is looked for in the texts, not in the JSON.
        findings = [dict(zip(f._fields, map(self._without_token, f), strict=True)) for f in verdict.findings]
        faults = {finding.fault for finding in verdict.findings}
        read = parse_verdict(json.dumps({"findings": findings}, ensure_ascii=False), faults)
        return read._replace(dropped=read.dropped + verdict.dropped)

    def _from_status(self, response: httpx.Response, content: bytes) -> JudgeError:
        status = response.status_code
        error = ModelUnavailable(self._line(self._told(status, content)), status=status)
        error.retryable = status in _PASSING
        error.retry_after_s = _retry_after_s(response.headers.get("retry-after", ""))
        return error

    def _told(self, status: int, content: bytes) -> str:
        if status == 401:
            return f"the team's service refused the token in {self._variable}"
        if 300 <= status < 400:
            return f"the team's service answered with status {status}; redirects are not followed"
        return ": ".join(filter(None, (f"the team's service answered with status {status}", _error_line(content))))

    def _no_connection(self, error: httpx.TransportError) -> ModelUnavailable:
        unavailable = ModelUnavailable(self._line(f"no connection to the team's service: {_why(error)}"))
        # After the connection stands the service may have called the model: asked again, it would pay twice.
        unavailable.retryable = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)) and not _is_tls(error)
        return unavailable

    def _without_token(self, text: str) -> str:
        return text.replace(self._token, MARK)

    def _line(self, text: str) -> str:
        line = " ".join(mask(clean(self._without_token(text))).split())
        return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1] + "…"


async def _read_at_most(response: httpx.Response, limit: int) -> bytes:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise NoMessage("the team's service answered in an encoding that was not asked for")
    content = bytearray()
    async for piece in response.aiter_raw():
        content += piece
        if len(content) > limit:
            raise NoMessage(f"the team's service answered with more than {limit:,} bytes")
    return bytes(content)


def _error_line(content: bytes) -> str:
    try:
        body: object = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    line = cast("dict[str, Any]", body).get("error") if isinstance(body, dict) else None
    return line if isinstance(line, str) else ""


def _retry_after_s(text: str) -> float | None:
    """
    Read a number of seconds; a date is not worth its reading here.
    """
    return float(text) if text.isascii() and text.isdigit() else None


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _is_tls(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False
