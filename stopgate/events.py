"""
The client's hook input, as far as the gate needs it. Every field is optional but the event's name; what is unknown is ignored.

The fields are those of client 2.1.328; nothing here trusts their types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple, cast

STOP_EVENTS = ("Stop", "SubagentStop")

_ID_LIMIT = 200
_FIELD_LIMIT = 2_000

_CLIPPED = re.compile(r"… \[\+\d+ chars\]\Z")
"""How the client ends a text that it cut at 1,000 characters."""
_LAST_WORD = re.compile(r"\S{1,500}\Z")


class BadEvent(ValueError):
    """
    The input is no event: not JSON, not an object, or without a name.
    """


class BackgroundTask(NamedTuple):
    """
    One entry of `background_tasks`; texts are as the client gives them.
    """

    id: str
    type: str
    status: str
    description: str = ""
    command: str = ""


class Cron(NamedTuple):
    """
    One scheduled wake-up of the session.
    """

    schedule: str
    prompt: str


class Event(NamedTuple):
    """
    One call of the hook.
    """

    name: str
    session_id: str = ""
    transcript_path: str = ""
    """For a subagent this is the parent's."""
    agent_transcript_path: str = ""
    cwd: str = ""
    prompt_id: str = ""
    agent_id: str = ""
    agent_type: str | None = None
    """Empty for the client's internal forks, None where the client gave none."""
    reply: str | None = None
    """The text of the last assistant message; None where the client does not say."""
    tasks: tuple[BackgroundTask, ...] = ()
    crons: tuple[Cron, ...] = ()
    permission_mode: str = ""
    project: str = ""
    """The folder of the project, by `CLAUDE_PROJECT_DIR`, else the working directory."""
    attended: bool | None = None
    """Whether a person is there, None where the client does not say."""
    tool_name: str = ""
    """Before a tool: which."""
    command: str | None = None
    """Of a Bash call, whole; None where there is none."""
    transcript_end: int | None = None
    """The bytes of the transcript that were there at the stop; None: all of it. Named only where a past stop is played again."""

    @property
    def is_subagent(self) -> bool:
        """
        Whether a subagent stops, and not the session's own agent.
        """
        return self.name == "SubagentStop"

    @property
    def project_folders(self) -> tuple[str, ...]:
        """
        The folders that the client may take project settings from.
        """
        return tuple(dict.fromkeys(folder for folder in (self.project, self.cwd) if folder))

    @property
    def own_transcript(self) -> str:
        """
        The transcript of the agent that stops; empty where the client names none.
        """
        return self.agent_transcript_path if self.is_subagent else self.transcript_path


def read_event(data: bytes, environ: Mapping[str, str]) -> Event:
    """
    Read the hook's standard input, and what the client says in the environment.

    Raises `BadEvent`, with one line of text, where it is not a JSON object with `hook_event_name`.
    """
    fields = _object(data)
    name = _text(fields, "hook_event_name", _ID_LIMIT)
    if not name:
        raise BadEvent("the hook's input has no hook_event_name")
    reply = fields.get("last_assistant_message")
    agent_type = fields.get("agent_type")
    return Event(
        name=name,
        session_id=_id(fields, "session_id"),
        transcript_path=_text(fields, "transcript_path"),
        agent_transcript_path=_text(fields, "agent_transcript_path"),
        cwd=_text(fields, "cwd"),
        prompt_id=_id(fields, "prompt_id"),
        agent_id=_id(fields, "agent_id"),
        agent_type=scrub(agent_type) if isinstance(agent_type, str) else None,
        reply=scrub(reply) if isinstance(reply, str) else None,
        tasks=tuple(_task(entry) for entry in _objects(fields, "background_tasks")),
        crons=tuple(
            Cron(_text(entry, "schedule", _ID_LIMIT), _prose(entry, "prompt"))
            for entry in _objects(fields, "session_crons")
        ),
        permission_mode=_text(fields, "permission_mode", _ID_LIMIT),
        project=scrub(environ.get("CLAUDE_PROJECT_DIR", "")) or _text(fields, "cwd"),
        attended=_attended(environ),
        tool_name=_text(fields, "tool_name", _ID_LIMIT),
        command=_command(fields),
    )


def _command(fields: Mapping[str, object]) -> str | None:
    tool_input = fields.get("tool_input")
    command = cast("dict[str, object]", tool_input).get("command") if isinstance(tool_input, dict) else None
    return scrub(command) if isinstance(command, str) else None


def scrub(text: str) -> str:
    """
    Give the text without what no file, database or socket takes: lone surrogates and NULs.
    """
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def _attended(environ: Mapping[str, str]) -> bool | None:
    said = environ.get("CLAUDE_CODE_SESSION_ATTENDED", "")
    if said in ("0", "1"):
        return said == "1"
    # An older client: in a terminal, without one, or in an editor, where nobody can tell.
    entry = environ.get("CLAUDE_CODE_ENTRYPOINT", "")
    return True if entry == "cli" else False if entry.startswith("sdk-") else None


def _object(data: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadEvent(f"the hook's input is not JSON: {type(error).__name__} in {len(data)} bytes") from error
    if not isinstance(value, dict):
        raise BadEvent(f"the hook's input is not a JSON object but {type(value).__name__}")
    return cast("dict[str, object]", value)


def _objects(fields: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """
    Give the objects of a list; anything else means that nothing is known.
    """
    value = fields.get(key)
    if not isinstance(value, list):
        return []
    return [cast("dict[str, object]", entry) for entry in cast("list[object]", value) if isinstance(entry, dict)]


def _task(entry: Mapping[str, object]) -> BackgroundTask:
    return BackgroundTask(
        id=_id(entry, "id"),
        type=_text(entry, "type", _ID_LIMIT),
        status=_text(entry, "status", _ID_LIMIT),
        description=_prose(entry, "description"),
        command=_prose(entry, "command"),
    )


def _text(fields: Mapping[str, object], key: str, limit: int = _FIELD_LIMIT) -> str:
    value = fields.get(key)
    return scrub(value[:limit]) if isinstance(value, str) else ""


def _prose(fields: Mapping[str, object], key: str) -> str:
    """
    Give a text that will be shown, masked. Where it is cut, by us or by the client, the word at the cut goes too: what is left of a
    secret could not be told any more.
    """
    value = fields.get(key)
    if not isinstance(value, str):
        return ""
    kept = value[:_FIELD_LIMIT]
    clipped = _CLIPPED.search(kept)
    if clipped or len(value) > _FIELD_LIMIT:
        kept = _LAST_WORD.sub("", kept[: clipped.start()] if clipped else kept) + "…"
    return scrub(kept)


def _id(fields: Mapping[str, object], key: str) -> str:
    """
    Give an id of bounded length; a long one keeps its start and gets its hash, so that two of them stay two.
    """
    value = fields.get(key)
    if not isinstance(value, str):
        return ""
    value = scrub(value)
    if len(value) <= _ID_LIMIT:
        return value
    import hashlib

    return f"{value[:100]}#{hashlib.sha256(value.encode()).hexdigest()[:32]}"
