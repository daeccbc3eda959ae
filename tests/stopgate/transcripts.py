"""
Small factories that write synthetic transcripts, entry by entry, in the shapes of the real client.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


class Session:
    """
    A transcript under construction. Each method adds one entry to the end and chains it to the one before.
    """

    def __init__(self, *, sidechain: bool = False, version: str = "2.1.328", cwd: str = "/home/dev/demo") -> None:
        self.lines: list[bytes] = []
        self.leaf: str | None = None
        self._sidechain = sidechain
        self._version = version
        self._cwd = cwd
        self._count = 0

    def add(self, entry: Entry, *, chained: bool = True) -> str:
        """
        Any entry; the common fields are filled in where it is one of the conversation. Gives its `uuid`.
        """
        self._count += 1
        if chained:
            uuid = str(entry.setdefault("uuid", f"u{self._count}"))
            entry.setdefault("parentUuid", self.leaf)
            entry.setdefault("isSidechain", self._sidechain)
            entry.setdefault("version", self._version)
            entry.setdefault("cwd", self._cwd)
            self.leaf = uuid
        self.lines.append(line_of(entry))
        return str(entry.get("uuid", ""))

    def raw(self, line: bytes) -> None:
        """
        A line as it stands.
        """
        self.lines.append(line)

    def prompt(self, content: object, *, prompt_id: str | None = None, **fields: object) -> str:
        """
        A `user` entry that a person typed, unless the fields say otherwise.
        """
        entry: Entry = {"type": "user", "message": {"role": "user", "content": content}, **fields}
        if prompt_id:
            entry["promptId"] = prompt_id
        return self.add(entry)

    def says(self, text: str, *, message: str | None = None, stop: str | None = "end_turn", **fields: object) -> str:
        """
        A text block of the agent.
        """
        return self.block({"type": "text", "text": text}, message=message, stop=stop, **fields)

    def block(self, block: object, *, message: str | None = None, stop: str | None = None, **fields: object) -> str:
        """
        Any content block of the agent, as an entry of its own.
        """
        content = {"id": message or f"msg_{self._count}", "role": "assistant", "content": [block], "stop_reason": stop}
        model = fields.pop("model", "claude-opus-5-5")
        return self.add({"type": "assistant", "message": {**content, "model": model}, **fields})

    def calls(self, tool: str, call: str | None = None, *, message: str | None = None, **given: object) -> str:
        """
        A tool call; gives its id.
        """
        call = call or f"toolu_{self._count}"
        self.block({"type": "tool_use", "id": call, "name": tool, "input": given}, message=message, stop="tool_use")
        return call

    def result(
        self, call: str, content: object = "", *, error: bool = False, details: object = None, **fields: object
    ) -> str:
        """
        A tool call's result.
        """
        block: Entry = {"type": "tool_result", "tool_use_id": call, "content": content}
        if error:
            block["is_error"] = True
        entry: Entry = {"type": "user", "message": {"role": "user", "content": [block]}, **fields}
        if details is not None:
            entry["toolUseResult"] = details
        return self.add(entry)

    def runs(
        self, tool: str, content: object = "", *, error: bool = False, details: object = None, **given: Any
    ) -> str:
        """
        A tool call and its result; gives the call's id.
        """
        call = self.calls(tool, **given)
        self.result(call, content, error=error, details=details)
        return call

    def attachment(self, kind: str, **fields: object) -> str:
        """
        An attachment.
        """
        return self.add({"type": "attachment", "attachment": {"type": kind, **fields}})

    def queued(self, prompt: object, mode: str = "prompt", **fields: object) -> str:
        """
        What came in while the agent worked.
        """
        return self.attachment("queued_command", prompt=prompt, commandMode=mode, **fields)

    def queue(self, operation: str, content: str | None = None) -> None:
        """
        An operation on the client's queue.
        """
        entry: Entry = {"type": "queue-operation", "operation": operation, "sessionId": "s"}
        self.add(entry if content is None else {**entry, "content": content}, chained=False)

    def held(self, reason: str, command: str = "python3 /home/dev/hook.py") -> None:
        """
        What the client writes after a Stop hook, started by this command, has held.
        """
        self.prompt(f"Stop hook feedback:\n{reason}", isMeta=True)
        self.attachment(
            "hook_blocking_error", hookEvent="Stop", blockingError={"blockingError": reason, "command": command}
        )
        self.add({"type": "system", "subtype": "stop_hook_summary", "hookErrors": [reason]})

    def metadata(self, entries: int, *, size: int = 100) -> None:
        """
        Entries that tell nothing of the conversation.
        """
        for _ in range(entries):
            self.add({"type": "api-request-blob", "sessionId": "s", "blob": "x" * size}, chained=False)

    def data(self) -> bytes:
        """
        The whole file.
        """
        return b"\n".join(self.lines) + b"\n"

    def write(self, folder: Path, name: str = "session.jsonl") -> str:
        """
        Write the file; gives its path.
        """
        path = folder / name
        path.write_bytes(self.data())
        return str(path)


def line_of(entry: Entry) -> bytes:
    """
    An entry as the client writes it: no spaces, unescaped text, lone surrogates escaped.
    """
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(entry, separators=(",", ":")).encode()


def notification(task: str, *, status: str = "completed", summary: str = "", result: str = "") -> str:
    """
    The text of a task notification.
    """
    report = f"<result>{result}</result>\n" if result else ""
    return (
        f"<task-notification>\n<task-id>{task}</task-id>\n<status>{status}</status>\n"
        f"<summary>{summary or 'Background command completed (exit code 0)'}</summary>\n{report}</task-notification>"
    )
