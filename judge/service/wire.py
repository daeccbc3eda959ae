"""
What goes over the wire of `POST /v1/judge`, in both directions; the only file that imports pydantic.

A version fixes every field of a body: one more, one less or one of another type is another version.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, NoReturn, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...rubric.masking import clean, cut, mask
from ...rubric.turn import Check, Facts, ToolCall, Turn, as_json
from ...rubric.verdict import Finding, Verdict
from ..bounded_loop import in_thread
from ..judgement import AskOutcome, Judgement
from .error_line import error_line
from .limits import MAX_BODY_BYTES

VERSION: Final = 1
LONGEST_TEXT: Final = 400_000
"""In characters, as all lengths here. A prompt or reply as the gate keeps it has some 300,000 at most."""
LONGEST_LINE: Final = 2_000
MOST_CALLS: Final = 2_000
MOST_LINES: Final = 500
DEADLINE_S: Final = (0.1, 600.0)

_LONGEST_DETAIL: Final = 1_000
_LONGEST_FINDING: Final = 100_000
"""A judge's answer is read up to 50,000 characters, and masking can lengthen it."""
_MOST_FINDINGS: Final = 2_000
_MOST_IDS: Final = 100
_LONGEST_SHOWN_KEY: Final = 60


class BadRequest(Exception):
    """
    A body that cannot be judged: an HTTP status, and one line that names the key and never the value.
    """

    def __init__(self, status: int, line: str) -> None:
        super().__init__(line)
        self.status = status
        self.line = line


class BadReply(ValueError):
    """
    An answer that is no judgement; the text is one line that names the key and never the value.
    """


_Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
_Line = Annotated[str, Field(max_length=LONGEST_LINE)]
_Lines = Annotated[list[_Line], Field(max_length=MOST_LINES)]
_FindingText = Annotated[str, Field(max_length=_LONGEST_FINDING)]
_CallId = Annotated[str, Field(pattern=r"^[0-9A-Za-z_-]{1,64}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _ToolCall(_Strict):
    tool: _Line
    line: _Line
    kind: Literal["check", "edit", "read", "other"] = "other"
    failed: bool = False


class _Check(_Strict):
    command: _Line
    passed: bool | None
    edited_after: bool = False


class _Facts(_Strict):
    edited_files: _Lines = []
    checks: Annotated[list[_Check], Field(max_length=MOST_LINES)] = []
    edited_after_last_check: bool | None = None
    uncollected_background: _Lines = []
    wakeups: _Lines = []
    plan_mode: bool = False
    holds: _Lines = []
    calls_out_of_reach: bool = False

    def facts(self) -> Facts:
        return Facts(
            edited_files=tuple(self.edited_files),
            checks=tuple(Check(check.command, check.passed, check.edited_after) for check in self.checks),
            edited_after_last_check=self.edited_after_last_check,
            uncollected_background=tuple(self.uncollected_background),
            wakeups=tuple(self.wakeups),
            plan_mode=self.plan_mode,
            holds=tuple(self.holds),
            calls_out_of_reach=self.calls_out_of_reach,
        )


class WireTurn(_Strict):
    """
    A turn with every field of its own, and no other.
    """

    request: _Text
    reply: _Text
    previous_reply: _Text = ""
    later_prompts: Annotated[list[_Text], Field(max_length=MOST_LINES)] = []
    tool_calls: Annotated[list[_ToolCall], Field(max_length=MOST_CALLS)] = []
    facts: _Facts = _Facts()
    subagent: bool = False

    def turn(self) -> Turn:
        """
        Give the turn as a rubric takes it.
        """
        return Turn(
            request=self.request,
            reply=self.reply,
            previous_reply=self.previous_reply,
            later_prompts=tuple(self.later_prompts),
            tool_calls=tuple(ToolCall(call.tool, call.line, call.kind, call.failed) for call in self.tool_calls),
            facts=self.facts.facts(),
            subagent=self.subagent,
        )


class JudgeRequest(_Strict):
    """
    A turn to be judged, and the seconds in which its sender still waits.
    """

    version: Literal[1]
    turn: WireTurn
    deadline_s: Annotated[float, Field(ge=DEADLINE_S[0], le=DEADLINE_S[1])]

    def asked(self) -> Turn:
        """
        Give the turn as a judge takes it.
        """
        return self.turn.turn()


class _Finding(_Strict):
    fault: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    quote: _FindingText
    reason: _FindingText


class _Verdict(_Strict):
    findings: Annotated[list[_Finding], Field(max_length=_MOST_FINDINGS)]
    dropped: Annotated[int, Field(ge=0, le=_MOST_FINDINGS)]

    def verdict(self) -> Verdict:
        return Verdict(tuple(Finding(item.fault, item.quote, item.reason) for item in self.findings), self.dropped)


class JudgeReply(_Strict):
    """
    A judgement. `calls` are ids of ledger lines of the machine that called the model.
    """

    version: Literal[1]
    outcome: AskOutcome
    verdict: _Verdict | None
    detail: Annotated[str, Field(max_length=_LONGEST_DETAIL)]
    rubric: Annotated[str, Field(pattern=r"^([a-z][a-z0-9_]{0,39}@[0-9]{1,9})?$")]
    rubric_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{0,64}$")]
    calls: Annotated[list[_CallId], Field(max_length=_MOST_IDS)]

    @model_validator(mode="after")
    def _answered_with_a_verdict(self) -> JudgeReply:
        if (self.outcome == "answered") != (self.verdict is not None):
            raise ValueError("a verdict belongs to the outcome 'answered', and to no other")
        return self

    def judgement(self) -> Judgement:
        """
        Give the judgement as a gate takes it.
        """
        verdict = None if self.verdict is None else self.verdict.verdict()
        return Judgement(self.outcome, verdict, self.detail, self.rubric, self.rubric_hash, tuple(self.calls))


async def answer_request(
    body: bytes, content_type: str, ask: Callable[[Turn, float], Awaitable[Judgement]]
) -> tuple[int, bytes]:
    """
    Answer `POST /v1/judge` with a status and JSON; `ask` gets a turn and the seconds that are left for it.
    """
    try:
        request = await in_thread(lambda: read_request(body, content_type))
    except BadRequest as error:
        return error.status, error_line(error.line)
    return 200, write_reply(await ask(request.asked(), request.deadline_s)) + b"\n"


def read_request(body: bytes, content_type: str) -> JudgeRequest:
    """
    Read the body of a request.

    Raises `BadRequest`: 400 for what is no JSON or of another version, 413 for what is too long, 415 for another content type, 422 for
    a field that is missing, unknown or of the wrong type.
    """
    if not _is_json(content_type):
        raise BadRequest(415, "the content type must be application/json, in UTF-8")
    if len(body) > MAX_BODY_BYTES:
        raise BadRequest(413, f"the body is longer than {MAX_BODY_BYTES:,} bytes")
    data = _json_object(body)
    _check_version(data)
    try:
        return JudgeRequest.model_validate(data)
    except ValidationError as error:
        raise _refusal(error) from None


def write_request(turn: Turn, deadline_s: float) -> bytes:
    """
    Write the body of a request. What is too long is not cut here (see `sendable`).
    """
    seconds = min(max(deadline_s, DEADLINE_S[0]), DEADLINE_S[1])
    text = f'{{"version": {VERSION}, "deadline_s": {seconds:.3f}, "turn": {as_json(turn)}}}'
    return text.encode("utf-8", "replace")


def read_reply(body: bytes) -> Judgement:
    """
    Read the body of an answer. Raises `BadReply`.
    """
    try:
        data = _json_object(body)
        _check_version(data)
        return JudgeReply.model_validate(data).judgement()
    except BadRequest as error:
        raise BadReply(error.line) from None
    except ValidationError as error:
        raise BadReply(_refusal(error).line) from None


def write_reply(judgement: Judgement) -> bytes:
    """
    Write the body of an answer, each text cut to what a reader takes.
    """
    verdict = judgement.verdict
    reply = {
        "version": VERSION,
        "outcome": judgement.outcome,
        "verdict": None if verdict is None else _written(verdict),
        "detail": cut(clean(judgement.detail), _LONGEST_DETAIL, keep="start"),
        "rubric": judgement.rubric,
        "rubric_hash": judgement.rubric_hash,
        "calls": judgement.calls[:_MOST_IDS],
    }
    return json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace")


def _written(verdict: Verdict) -> dict[str, Any]:
    texts = [
        finding._replace(
            quote=cut(clean(finding.quote), _LONGEST_FINDING, keep="start"),
            reason=cut(clean(finding.reason), _LONGEST_FINDING, keep="start"),
        )
        for finding in verdict.findings[:_MOST_FINDINGS]
    ]
    return {"findings": [finding._asdict() for finding in texts], "dropped": min(verdict.dropped, _MOST_FINDINGS)}


def _is_json(content_type: str) -> bool:
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [value.strip('" ') for name, _, value in (p.partition("=") for p in parameters) if name == "charset"]
    return kind == "application/json" and all(charset in ("utf-8", "utf8") for charset in charsets)


def _json_object(body: bytes) -> dict[str, object]:
    try:
        data: object = json.loads(body.decode(), object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BadRequest(400, "the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadRequest(400, f"the body is not JSON: line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise BadRequest(400, "the body is nested too deeply") from None
    except ValueError:
        raise BadRequest(400, "the body holds a number of too many digits") from None
    if not isinstance(data, dict):
        raise BadRequest(422, "the body must be a JSON object")
    return cast("dict[str, object]", data)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise BadRequest(400, f"{_shown(name)}: stands twice in one object")
        found[name] = value
    return found


def _no_constant(_name: str) -> NoReturn:
    raise BadRequest(400, "the body is not JSON: it holds NaN or Infinity")


def _check_version(data: dict[str, object]) -> None:
    if "version" not in data:
        raise BadRequest(422, "version: missing")
    version = data["version"]
    if not isinstance(version, int) or isinstance(version, bool):
        raise BadRequest(422, f"version: expected the number {VERSION}")
    if version != VERSION:
        raise BadRequest(400, f"version: not known here; this turngate knows version {VERSION}")


_TOO_LONG: Final = {"string_too_long": "characters", "too_long": "items"}
_WORDS: Final = {
    "missing": "missing",
    "extra_forbidden": "unknown key",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
    "list_type": "expected a list",
    "string_type": "expected a text",
    "string_unicode": "expected a text without lone surrogates",
    "string_sub_type": "expected a text",
    "string_pattern_mismatch": "expected a text of another form",
    "bool_type": "expected true or false",
    "float_type": "expected a number",
    "int_type": "expected a whole number",
}


def _refusal(error: ValidationError) -> BadRequest:
    first = error.errors(include_url=False, include_input=False)[0]
    key, kind, facts = _path(first["loc"]), first["type"], first.get("ctx", {})
    if kind in _TOO_LONG:
        return BadRequest(413, f"{key}: more than {facts['max_length']:,} {_TOO_LONG[kind]}")
    if kind == "literal_error":
        return BadRequest(422, f"{key}: expected {facts['expected']}")
    if kind in ("greater_than_equal", "less_than_equal", "finite_number"):
        return BadRequest(422, f"{key}: out of range")
    if kind == "value_error":
        return BadRequest(422, str(facts["error"]))
    return BadRequest(422, f"{key}: {_WORDS.get(kind, 'cannot be used')}")


def _path(location: tuple[int | str, ...]) -> str:
    steps = (f"[{step}]" if isinstance(step, int) else f".{_shown(step)}" for step in location)
    return "".join(steps).removeprefix(".") or "a key"


def _shown(key: str) -> str:
    # An unknown key is the sender's own text.
    return cut(" ".join(mask(clean(key[:LONGEST_LINE])).split()), _LONGEST_SHOWN_KEY, keep="start") or "an empty key"
