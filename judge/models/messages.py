"""
The form of the Messages API: what a request says, and what a message, a usage or an error holds, whatever brought it here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from ...rubric.render import Request
from .base import Completion

MAX_USAGE_CHARS = 10_000

FORMAT, EFFORT, THINKING, CACHE = "output_config.format", "output_config.effort", "thinking", "cache_control"
"""The fields that a judgement can do without: the rubric's text asks for JSON too."""

THINKING_BY_MODEL = {
    "claude-sonnet-5-5": {"type": "between_tools"},
    "claude-opus-5-5": {"type": "between_tools"},
    "claude-fable-5-2": {"type": "between_tools"},
    "claude-haiku-5-5": {"type": "disabled"},
}
"""How each model is told not to think before its answer; the others do not unless asked, or are not known."""


def message_body(
    request: Request, *, model: str, max_tokens: int, effort: str, cached: bool, without: frozenset[str]
) -> dict[str, Any]:
    """
    Give the body of a request; `cached` and `without` as for `Model.complete`.
    """
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": max_tokens,
        "system": _sendable(request.system),
        "messages": [{"role": "user", "content": _sendable(request.user)}],
    }
    output: dict[str, Any] = {}
    if EFFORT not in without:
        output["effort"] = effort
    if FORMAT not in without:
        output["format"] = {"type": "json_schema", "schema": request.schema}
    if output:
        body["output_config"] = output

    thinking = next((shape for name, shape in THINKING_BY_MODEL.items() if name in model), None)
    if thinking and THINKING not in without:
        body["thinking"] = thinking
    if cached and CACHE not in without:
        body["system"] = [{"type": "text", "text": body["system"], "cache_control": {"type": "ephemeral"}}]
    return body


def completion_of(
    message: Mapping[str, Any], clean: Callable[[str], str], request_id: str | None = None
) -> Completion | None:
    """
    Read a message; None where it is none. `clean` takes out of a text what must go nowhere.
    """
    content, stop_reason = message.get("content"), message.get("stop_reason")
    if content is None and stop_reason == "refusal":
        content = []
    if not isinstance(content, list):
        return None

    model = message.get("model")
    return Completion(
        text=clean(_text(cast("list[object]", content))),
        stop_reason=stop_reason if isinstance(stop_reason, str) else "",
        model_answered=clean(model)[:100] if isinstance(model, str) else "",
        raw_usage=raw_usage(message, clean),
        request_id=request_id,
    )


def json_object(content: bytes) -> dict[str, Any]:
    """
    Read a JSON object; empty where it is none.
    """
    try:
        found: object = json.loads(content.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def part_of(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """
    Give an object that stands in another; empty where there is none.
    """
    part = body.get(name)
    return cast("dict[str, Any]", part) if isinstance(part, dict) else {}


def raw_usage(body: Mapping[str, Any], clean: Callable[[str], str]) -> dict[str, object] | None:
    """
    Give the usage as it came, of a message or of an error; only the counts that are priced where it is very long.
    """
    usage = part_of(body, "usage") or part_of(part_of(body, "error"), "usage")
    if not usage:
        return None
    try:
        # It goes into the ledger as it is; an endpoint must not fill the disk with it.
        if len(json.dumps(usage)) < MAX_USAGE_CHARS:
            return cast("dict[str, object]", _cleaned(usage, clean))
    except (RecursionError, ValueError):
        pass
    return _counts(usage)


def _counts(usage: Mapping[str, object]) -> dict[str, object]:
    """
    Keep of a usage the counts that are priced.
    """
    kept: dict[str, object] = {}
    for name in _PRICED:
        value = usage.get(name)
        if isinstance(value, dict):
            parts = cast("dict[str, object]", value)
            kept[name] = {part: parts[part] for part in _PRICED_PARTS if isinstance(parts.get(part), int)}
        elif isinstance(value, int):
            kept[name] = value
    return kept


_PRICED = (
    *("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    *("cache_creation", "output_tokens_details"),
)
_PRICED_PARTS = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens", "thinking_tokens")


def _cleaned(value: object, clean: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item, clean) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {clean(name): _cleaned(item, clean) for name, item in cast("dict[str, object]", value).items()}
    return value


def error_message(body: Mapping[str, Any]) -> str:
    """
    Give what an error says.
    """
    # `error.message` as the vendor writes it; gateways also know `message`, `detail` and a plain `error`.
    candidates = (part_of(body, "error").get("message"), body.get("message"), body.get("detail"), body.get("error"))
    found = next((c for c in candidates if c), "")
    try:
        return found if isinstance(found, str) else json.dumps(found)
    except (RecursionError, ValueError):
        return ""


def optional_fields(body: Mapping[str, Any]) -> frozenset[str]:
    """
    Name the fields of a request that a judgement can do without.
    """
    output = part_of(body, "output_config")
    present = {
        FORMAT: "format" in output,
        EFFORT: "effort" in output,
        THINKING: "thinking" in body,
        CACHE: isinstance(body["system"], list),
    }
    return frozenset(field for field, sent in present.items() if sent)


def refused_fields(status: int, message: str, sent: frozenset[str]) -> frozenset[str]:
    """
    Read out of a 400 which of the fields sent are not taken: those it names, else all.
    """
    if status not in (400, 422) or any(words in message.lower() for words in _NOT_ABOUT_FIELDS):
        return frozenset()
    return named_fields(message) & sent or sent


def named_fields(message: str) -> frozenset[str]:
    """
    Read out of an error which optional fields it names.
    """
    text = message.lower()
    named = {field for field, words in _FIELD_WORDS.items() if any(word in text for word in words)}
    if "output_config" in text and not named & {FORMAT, EFFORT}:
        named |= {FORMAT, EFFORT}
    return frozenset(named)


_NOT_ABOUT_FIELDS = ("credit balance", "billing", "too long", "context window", "context length", "maximum context")

_FIELD_WORDS = {
    FORMAT: ("output_config.format", "output_format", "json_schema", "schema", "structured output"),
    EFFORT: ("effort",),
    THINKING: ("thinking", "between_tools"),
    CACHE: ("cache_control", "system"),
}


def _text(content: list[object]) -> str:
    blocks = [cast("dict[str, object]", block) for block in content if isinstance(block, dict)]
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
