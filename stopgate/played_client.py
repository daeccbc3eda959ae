"""
A client played from a script: it writes a transcript as the real one does, and runs the hook at each stop.

For the demo only. The entries have the shapes of client 2.1.328, headless.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

Entry = dict[str, Any]

SESSION_ID = "demo-session"
MODEL = "claude-opus-5-5"
VERSION = "2.1.328"
LONGEST_HOOK_S = 120.0


class Task(NamedTuple):
    """
    A background shell.
    """

    id: str
    command: str
    description: str

    @property
    def call_id(self) -> str:
        """
        The id of the tool call that starts it.
        """
        return f"toolu_{self.id}"


class Answered(NamedTuple):
    """
    What the hook's process gave back.
    """

    stdout: bytes
    stderr: bytes
    code: int

    @property
    def reason(self) -> str:
        """
        What the agent is given; empty where the turn may end.
        """
        answer = json.loads(self.stdout or b"{}")
        return answer.get("reason", "") if answer.get("decision") == "block" else ""


class PlayedClient:
    """
    One session in `project`. Each method plays one step and adds its entries to the end of the transcript.
    """

    def __init__(self, project: Path, transcript: Path, hook: str, environ: Mapping[str, str]) -> None:
        self._project = project
        self._transcript = transcript
        self._hook = hook
        self._environ = environ
        self._leaf: str | None = None
        self._prompt_id = ""
        self._prompts = 0
        self._numbers = itertools.count(1)
        self._held = False

    def prompt(self, text: str) -> None:
        """
        A person asks for something: a new human turn.
        """
        self._prompts += 1
        self._prompt_id = f"demo-prompt-{self._prompts}"
        self._held = False
        self._queue("enqueue", text)
        self._queue("dequeue")
        self._say(
            "user",
            text,
            promptSource="sdk",
            turnOrigin="sdk",
            permissionMode="acceptEdits",
            turnPosition={"promptIndex": self._prompts - 1, "turnIndex": self._prompts},
        )

    def writes(self, name: str, content: str) -> Path:
        """
        The agent writes a file of the project; it is really written.
        """
        file = self._project / name
        call = self._calls("Write", f"toolu_write_{name}", file_path=str(file), content=content)
        file.write_text(content)
        details: dict[str, Any] = {"type": "create", "filePath": str(file), "content": content, "structuredPatch": []}
        self._result(call, f"File created successfully at: {file}", toolUseResult=details)
        return file

    def starts(self, task: Task) -> None:
        """
        The agent starts a command in the background.
        """
        given = {"command": task.command, "description": task.description, "run_in_background": True}
        call = self._calls("Bash", task.call_id, **given)
        told = (
            f"Command running in background with ID: {task.id}. Output is being written to: {self._output_of(task)}."
            " You will be notified when it completes. To check interim output, use Read on that file path."
        )
        self._result(call, told, toolUseResult={"stdout": "", "stderr": "", "backgroundTaskId": task.id})

    def collects(self, task: Task, output: str) -> None:
        """
        The agent reads the task's output; meanwhile the task ends, and the client says so in the middle of the turn.
        """
        file = self._output_of(task)
        call = self._calls("Read", f"toolu_read_{task.id}", file_path=str(file))
        file.write_text(output)
        self._result(call, f"     1\t{output}", toolUseResult={"type": "text", "file": {"filePath": str(file)}})

        notification = _notification(task, file)
        self._queue("enqueue", notification)
        self._queue("remove", notification)
        delivered = {"type": "queued_command", "prompt": notification, "commandMode": "task-notification"}
        self._add({"type": "attachment", "attachment": delivered})

    def stops(self, reply: str, running: Sequence[Task] = ()) -> Answered:
        """
        The agent ends its turn with this reply, and the hook is asked.
        """
        event = {
            "session_id": SESSION_ID,
            "transcript_path": str(self._transcript),
            "cwd": str(self._project),
            "prompt_id": self._prompt_id,
            "permission_mode": "acceptEdits",
            "hook_event_name": "Stop",
            "stop_hook_active": self._held,
            "last_assistant_message": reply,
            "background_tasks": [{**task._asdict(), "type": "shell", "status": "running"} for task in running],
            "session_crons": [],
        }
        answered = self._asked(json.dumps(event))
        # The client writes late: when its hook runs, the last reply is often not in the file yet.
        self._reply({"type": "text", "text": reply}, "end_turn")
        self._after(answered)
        return answered

    def _asked(self, event: str) -> Answered:
        done = subprocess.run(  # noqa: S603
            [self._hook],
            input=event.encode() + b"\n",
            env=dict(self._environ),
            cwd=self._project,
            capture_output=True,
            check=False,
            timeout=LONGEST_HOOK_S,
        )
        return Answered(done.stdout, done.stderr, done.returncode)

    def _after(self, answered: Answered) -> None:
        reason = answered.reason
        if reason:
            self._held = True
            self._say("user", f"Stop hook feedback:\n{reason}", isMeta=True)
            error = {"blockingError": reason, "command": self._hook}
            blocked = {"type": "hook_blocking_error", "hookName": "Stop", "hookEvent": "Stop", "blockingError": error}
            self._add({"type": "attachment", "attachment": blocked})
        self._add(
            {
                "type": "system",
                "subtype": "stop_hook_summary",
                "hookCount": 1,
                "hookInfos": [{"command": self._hook}],
                "hookErrors": [reason] if reason else [],
                "preventedContinuation": False,
                "hasOutput": bool(answered.stdout),
                "level": "suggestion",
            }
        )

    def _calls(self, tool: str, call_id: str, **given: object) -> str:
        self._reply({"type": "tool_use", "id": call_id, "name": tool, "input": given}, "tool_use")
        return call_id

    def _reply(self, block: Entry, stop_reason: str) -> None:
        message = {
            "id": f"msg_demo_{next(self._numbers)}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [block],
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        self._add({"type": "assistant", "message": message, "requestedModel": MODEL})

    def _result(self, call_id: str, content: str, **fields: object) -> None:
        self._say("user", [{"type": "tool_result", "tool_use_id": call_id, "content": content}], **fields)

    def _say(self, role: str, content: object, **fields: object) -> None:
        said = {"promptId": self._prompt_id, "type": role, "message": {"role": role, "content": content}}
        self._add({**said, **fields})

    def _queue(self, operation: str, content: str = "") -> None:
        entry = {"type": "queue-operation", "operation": operation, "timestamp": _now(), "sessionId": SESSION_ID}
        self._write({**entry, "content": content} if content else entry)

    def _add(self, entry: Entry) -> None:
        uuid = f"demo-entry-{next(self._numbers)}"
        about = {
            "uuid": uuid,
            "timestamp": _now(),
            "userType": "external",
            "entrypoint": "sdk-cli",
            "cwd": str(self._project),
            "sessionId": SESSION_ID,
            "version": VERSION,
            "gitBranch": "HEAD",
        }
        self._write({"parentUuid": self._leaf, "isSidechain": False, **entry, **about})
        self._leaf = uuid

    def _write(self, entry: Entry) -> None:
        with self._transcript.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")

    def _output_of(self, task: Task) -> Path:
        return self._transcript.with_name(f"{task.id}.output")


def _notification(task: Task, output: Path) -> str:
    return (
        f"<task-notification>\n<task-id>{task.id}</task-id>\n<tool-use-id>{task.call_id}</tool-use-id>\n"
        f"<output-file>{output}</output-file>\n<status>completed</status>\n"
        f'<summary>Background command "{task.description}" completed (exit code 0)</summary>\n</task-notification>'
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
