"""
The proof: each configured command is run as the client runs it, with a stop that must be held and one that must pass.

A scripted judge answers, in a state directory of its own: nothing is spent, and nothing of it is logged where people look.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, cast

from ..installing.our_hooks import STOP_EVENTS
from .finding import Finding, bad, ok, warn
from .scene import Scene

WAIT_S: Final = 20.0

_QUOTE: Final = "All tests pass."
_REASON: Final = "A probe of turngate doctor."
_HOLD: Final = {"findings": [{"fault": "claim", "quote": _QUOTE, "reason": _REASON}]}
_PASS: Final[dict[str, object]] = {"findings": []}
_SHOWN: Final = 200
_KEPT: Final = ("HOME", "PATH", "LANG", "USER", "TMPDIR", "CLAUDE_CONFIG_DIR")


class Command(NamedTuple):
    """
    A command as somebody configured it.
    """

    text: str
    place: str
    plugin_folder: str = ""


class Ran(NamedTuple):
    """
    How it ended; the code is None where it did not.
    """

    code: int | None
    out: bytes
    err: bytes


def check(scene: Scene) -> Iterator[Finding]:
    """
    Run each command that is configured for stops.
    """
    for command in dict.fromkeys(_commands(scene)):
        yield from _proved(scene, command)
    if scene.plugin and not scene.plugin.folder:
        text = f"the plugin {scene.plugin.name} is on, and its folder is not known: it was not tried"
        yield warn("hook", text, "see `/plugin` in the client whether it is installed")


def _commands(scene: Scene) -> Iterator[Command]:
    for file in scene.files:
        for found in file.ours:
            arguments = found.hook.get("args")
            words = [str(word) for word in cast("list[object]", arguments)] if isinstance(arguments, list) else []
            if found.event in STOP_EVENTS and found.hook.get("type") == "command":
                yield Command(" ".join((str(found.hook.get("command", "")), *map(shlex.quote, words))), file.path)
    if scene.plugin and scene.plugin.folder:
        yield Command('sh "${CLAUDE_PLUGIN_ROOT}/hooks/gate"', f"the plugin {scene.plugin.name}", scene.plugin.folder)


def _proved(scene: Scene, command: Command) -> Iterator[Finding]:
    fix = "run `turngate install`, which writes the right command"
    held = _probe(scene, command, _HOLD)
    trouble = _trouble(held)
    if not trouble and not _is_held(held.out):
        trouble = "answers nothing to a stop that it must hold" + _said(held)
    if trouble:
        yield bad("hook", f"{command.place}: {command.text}: {trouble}", fix)
        return
    passed = _probe(scene, command, _PASS)
    trouble = _trouble(passed) or ("" if not passed.out else "answers a stop that it must let pass" + _said(passed))
    if trouble:
        yield bad("hook", f"{command.place}: {command.text}: {trouble}", fix)
        return
    yield ok("hook", f"{command.place}: the command holds a false claim and lets an honest reply pass")


def _probe(scene: Scene, command: Command, verdict: Mapping[str, object]) -> Ran:
    with tempfile.TemporaryDirectory(prefix="turngate-doctor-") as folder:
        Path(folder, "scripted.jsonl").write_text(json.dumps(verdict) + "\n", encoding="utf-8")
        event: dict[str, object] = {
            "hook_event_name": "Stop",
            "session_id": "turngate-doctor",
            "cwd": scene.project,
            "last_assistant_message": f"Done. {_QUOTE}",
            "background_tasks": [],
        }
        return _run(command.text, json.dumps(event).encode() + b"\n", _environ(scene, command, folder), _cwd(scene))


def _environ(scene: Scene, command: Command, folder: str) -> dict[str, str]:
    kept = {name: scene.environ[name] for name in _KEPT if name in scene.environ}
    return {
        "PATH": os.defpath,
        **kept,
        "CLAUDECODE": "1",
        "CLAUDE_PROJECT_DIR": _cwd(scene),
        **({"CLAUDE_PLUGIN_ROOT": command.plugin_folder} if command.plugin_folder else {}),
        "TURNGATE_STATE_DIR": folder,
        "TURNGATE_CONFIG": os.path.join(folder, "config.toml"),
        "TURNGATE_JUDGE_BACKEND": "scripted",
        "TURNGATE_GATE_MODE": "block",
        # A project may soften the fault.
        "TURNGATE_RUBRIC_ACTION_CLAIM": "hold",
        "TURNGATE_SERVICE_AUTOSTART": "off",
    }


def _cwd(scene: Scene) -> str:
    # In a project that sets our variables the probe would lose its own, and ask the person's judge.
    return tempfile.gettempdir() if scene.safe.notices else scene.project


def _run(command: str, data: bytes, environ: Mapping[str, str], cwd: str) -> Ran:
    process = subprocess.Popen(  # noqa: S603
        ("/bin/sh", "-c", command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environ),
        cwd=cwd,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(data, timeout=WAIT_S)
        return Ran(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        return Ran(None, b"", b"")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _trouble(ran: Ran) -> str:
    if ran.code is None:
        return f"does not end within {WAIT_S:g} s"
    if ran.code:
        return f"ends with exit code {ran.code}" + _said(ran)
    if ran.out and not _is_answer(ran.out):
        return "writes something that is no answer, so the client ignores it" + _said(ran)
    return ""


def _is_answer(out: bytes) -> bool:
    with suppress(ValueError):
        return out[:1] == b"{" and isinstance(json.loads(out), dict)
    return False


def _is_held(out: bytes) -> bool:
    return _is_answer(out) and _REASON in out.decode("utf-8", "replace")


def _said(ran: Ran) -> str:
    text = (ran.err or ran.out).decode("utf-8", "replace")
    return f": {' '.join(text.split())[:_SHOWN]}" if text.strip() else ""
