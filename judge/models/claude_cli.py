"""
The coding agent's own client as a model: one process a call, without tools, settings, memory or a session that is kept.

So a person on a subscription, without an API key, has a judge. The client reads files that a prompt mentions by `@` unless it is told
not to, thinks as its model does by default, and asks again by itself for an answer that was cut off (measured on client 2.1.328).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final, cast

from ...rubric.masking import MARK, mask
from ...rubric.render import Request
from ..errors import PASSING_STATUSES, FieldsRefused, JudgeError, ModelUnavailable, NoMessage
from .base import Completion
from .cli_process import CliProcess, Ended
from .client_login import GUARD, KEYS
from .messages import EFFORT, part_of, raw_usage

MOST_AT_ONCE: Final = 4
"""Each is a process of some 200 MB; who has to wait for longer than its deadline is not asked."""

THINKING_TOKENS: Final = 3072
"""Beside the answer's own: the client cannot keep every model from thinking, and an answer that is cut off is asked for again."""

MAX_DETAIL_CHARS: Final = 200

_SHORTEST_SECRET: Final = 8
_CLOSING_S: Final = 0.07
_CONNECTION_FAILED: Final = "connection_failed"

_ALONE: Final = {
    GUARD: "1",
    # The text that is judged may mention files: their content goes nowhere.
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_THINKING": "1",
    "DISABLE_AUTOUPDATER": "1",
    # Tries are counted and written down here.
    "CLAUDE_CODE_MAX_RETRIES": "0",
}


class ClaudeCliModel:
    """
    A client that is signed in. `program` is its path, `variables` are all that it gets of the person's environment.
    """

    def __init__(
        self, model: str, *, program: str, variables: tuple[tuple[str, str], ...], max_tokens: int, effort: str
    ) -> None:
        import asyncio

        self._model: Final = model
        self._program: Final = program
        self._effort: Final = effort
        self._environ: Final = {
            **dict(variables),
            **_ALONE,
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(max_tokens + THINKING_TOKENS),
        }
        self._secrets: Final = [value for name, value in variables if name in KEYS and len(value) >= _SHORTEST_SECRET]
        self._free: Final = asyncio.Semaphore(MOST_AT_ONCE)
        self._running: Final[set[CliProcess]] = set()

    async def complete(
        self, request: Request, *, cached: bool, without: frozenset[str], timeout_s: float
    ) -> Completion:
        """
        Run the client once; see `Model`. Where it is cancelled, the client is ended.
        """
        give_up_at = time.monotonic() + timeout_s
        async with self._free:
            arguments = self._arguments(request.system, without)
            environ = self._environ if cached else {**self._environ, "DISABLE_PROMPT_CACHING": "1"}
            given = request.user.encode("utf-8", "replace")
            ended = await self._run(CliProcess(arguments, environ, given, timeout_s=give_up_at - time.monotonic()))
        return self._completion(ended, frozenset((EFFORT,)) - without)

    def without_secrets(self, text: str) -> str:
        """
        Take what the client pays with out of a text.
        """
        for secret in self._secrets:
            text = text.replace(secret, MARK)
        return text

    async def close(self) -> None:
        """
        Kill the clients that were told to end and still run.
        """
        from ..bounded_loop import in_thread

        running = list(self._running)
        if running:
            await in_thread(lambda: _see_off(running))

    def _arguments(self, system: str, without: frozenset[str]) -> list[str]:
        return [
            *(self._program, "--print", "--model", self._model, "--tools", ""),
            *("--system-prompt", system.encode("utf-8", "replace").decode().replace("\0", " ")),
            *("--setting-sources", "", "--strict-mcp-config", "--no-session-persistence"),
            *("--max-turns", "1", "--output-format", "json"),
            *(() if EFFORT in without else ("--effort", self._effort)),
        ]

    async def _run(self, process: CliProcess) -> Ended:
        from ..bounded_loop import in_thread

        self._running.add(process)

        def run() -> Ended:
            try:
                return process.run()
            finally:
                self._running.discard(process)

        try:
            return await in_thread(run)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ModelUnavailable(self._line(f"the client could not be started: {why}")) from error
        except BaseException:
            process.end()
            raise

    def _completion(self, ended: Ended, optional: frozenset[str]) -> Completion:
        result = {} if ended.is_too_long else _result(ended.output)
        if not result:
            raise self._no_result(ended, optional)

        usage = raw_usage(result, self.without_secrets)
        stop_reason = _text(result, "stop_reason")
        if _text(result, "api_error") == "max_output_tokens":
            stop_reason = "max_tokens"
        is_failure = bool(result.get("is_error")) and stop_reason not in ("refusal", "max_tokens")
        if is_failure:
            raise self._failure(result, usage)

        text = "" if result.get("is_error") else _text(result, "result")
        return Completion(self.without_secrets(text), stop_reason, self._answered_by(result), usage)

    def _answered_by(self, result: Mapping[str, Any]) -> str:
        models = part_of(result, "modelUsage")
        found = self._model if self._model in models else next(iter(models), "")
        return self.without_secrets(found)[:100]

    def _failure(self, result: Mapping[str, Any], usage: dict[str, object] | None) -> JudgeError:
        status = result.get("api_error_status")
        said = _text(result, "result") or _first_text(result.get("errors")) or _text(result, "subtype")
        detail = self._line(f"the client says: {said or 'nothing'}")
        if not _text(result, "result"):
            return NoMessage(detail, raw_usage=_if_any(usage))

        error = ModelUnavailable(detail, status=status if isinstance(status, int) else None, raw_usage=_if_any(usage))
        has_passed = isinstance(status, int) and (status in PASSING_STATUSES or status >= 500)
        error.retryable = has_passed or result.get("api_error") == _CONNECTION_FAILED
        return error

    def _no_result(self, ended: Ended, optional: frozenset[str]) -> JudgeError:
        if ended.was_stopped:
            return ModelUnavailable("the client took too long")
        said = _first_line(ended.error) or _first_line(ended.output)
        if ended.is_too_long:
            said = "more than can be an answer"
        refused = frozenset(field for field in optional if f"--{field.rpartition('.')[2]}" in said)
        how = f"ended with {ended.code}" if ended.code >= 0 else f"was ended by signal {-ended.code}"
        detail = self._line(f"the client {how} and said {said or 'nothing'}")
        if not refused:
            return NoMessage(detail) if not ended.code else ModelUnavailable(detail)
        error = FieldsRefused(detail)
        error.fields = refused
        return error

    def _line(self, text: str) -> str:
        line = " ".join(mask(self.without_secrets(text)).split())
        return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1] + "…"


def _see_off(running: list[CliProcess]) -> None:
    give_up_at = time.monotonic() + _CLOSING_S
    for process in running:
        if not process.is_over(within_s=max(0.0, give_up_at - time.monotonic())):
            process.kill()
            process.is_over(within_s=_CLOSING_S / 4)


def _result(output: bytes) -> dict[str, Any]:
    """
    Read the client's account of its run; empty where there is none.
    """
    try:
        found: object = json.loads(output.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return {}
    # A client that was told to be verbose gives all its messages, and this one last.
    last = cast("list[object]", found)[-1:] if isinstance(found, list) else [found]
    body = cast("dict[str, Any]", last[0]) if last and isinstance(last[0], dict) else {}
    return body if body.get("type") == "result" else {}


def _if_any(usage: dict[str, object] | None) -> dict[str, object] | None:
    """
    Give the usage of a run that failed, None where it counts nothing: a request may have been paid for all the same.
    """
    counts = [value for name, value in (usage or {}).items() if name.endswith("_tokens")]
    return usage if any(counts) else None


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _first_text(value: object) -> str:
    texts = cast("list[object]", value) if isinstance(value, list) else []
    return next((text for text in texts if isinstance(text, str)), "")


def _first_line(data: bytes) -> str:
    return next((line.strip() for line in data.decode("utf-8", "replace").splitlines() if line.strip()), "")
