"""
The client's plugin and the marketplace that this repository is: what they say fits turngate, and their hooks run it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from turngate.judge.settings import JudgeSettings
from turngate.stopgate.cli import whole_parser
from turngate.stopgate.in_process import GRACE_S

from .stopgate.transcript.records import record_of
from .stopgate.transcripts import Session

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "plugin"
COMMANDS = sorted((PLUGIN / "commands").glob("*.md"))
EACH_COMMAND = pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in COMMANDS])
HELD_TASK = {"id": "b1", "type": "shell", "status": "running", "description": "a build"}
STOP = {"hook_event_name": "Stop", "session_id": "session-1", "background_tasks": [HELD_TASK]}

NOT_OURS = {".git", ".venv", ".e2e", "build", "dist", "node_modules", ".pytest_cache", ".ruff_cache", ".hypothesis"}
"""Folders of what is installed, built or left over."""

Json = dict[str, Any]


def read_json(path: Path) -> Json:
    return json.loads(path.read_text())


def hooks_in(document: object) -> Iterator[Json]:
    """
    Every hook of a document that has some, as client settings and plugins do.
    """
    events = cast("Json", document).get("hooks") if isinstance(document, dict) else None
    for groups in events.values() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            yield from group.get("hooks", ())


def hook_command() -> str:
    """
    The command of all the plugin's hooks.
    """
    (command,) = {hook["command"] for hook in hooks_in(read_json(PLUGIN / "hooks/hooks.json"))}
    return command


def json_files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = set(folders) - NOT_OURS
        yield from (Path(folder, name) for name in names if name.endswith(".json"))


def run_hook(tmp_path: Path, path: str, event: bytes) -> subprocess.CompletedProcess[bytes]:
    """
    Run the plugin's hook as the client does, from a folder with a space in its name.
    """
    root = tmp_path / "plug in"
    if not root.exists():
        root.symlink_to(PLUGIN)
    environ = {
        "PATH": path,
        "HOME": str(tmp_path),
        "CLAUDE_PLUGIN_ROOT": str(root),
        "TURNGATE_STATE_DIR": str(tmp_path / "state"),
        "TURNGATE_SERVICE_AUTOSTART": "off",
    }
    return subprocess.run(["/bin/sh", "-c", hook_command()], input=event, env=environ, capture_output=True, check=False)


def test_the_marketplace_offers_the_plugin() -> None:
    """
    Its one entry leads to the plugin's folder, under the plugin's own name and description.
    """
    (entry,) = read_json(ROOT / ".claude-plugin/marketplace.json")["plugins"]
    plugin = read_json(PLUGIN / ".claude-plugin/plugin.json")

    assert (ROOT / entry["source"]).resolve() == PLUGIN
    assert (entry["name"], entry["description"]) == (plugin["name"], plugin["description"])


def test_the_plugin_has_the_version_and_the_licence_of_the_project() -> None:
    """
    Both are released together.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plugin = read_json(PLUGIN / ".claude-plugin/plugin.json")

    assert (plugin["version"], plugin["license"]) == (project["version"], project["license"])
    assert (PLUGIN / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_icon_is_one_that_the_directory_takes() -> None:
    """
    A square PNG of 512 to 2048 pixels on each side, under 2 MB.
    """
    icon = (PLUGIN / read_json(PLUGIN / ".claude-plugin/plugin.json")["icon"]).read_bytes()
    width, height = (int.from_bytes(icon[at : at + 4], "big") for at in (16, 20))

    assert icon.startswith(b"\x89PNG\r\n\x1a\n")
    assert 512 <= width == height <= 2048
    assert len(icon) < 2_000_000


def test_the_hooks_are_those_of_the_gate() -> None:
    """
    Stops have more time than the judge, all timeouts are seconds, and only Bash is looked at before it runs.
    """
    events = read_json(PLUGIN / "hooks/hooks.json")["hooks"]

    timeouts = {name: hook["timeout"] for name, ((group,)) in events.items() for hook in group["hooks"]}
    assert set(events) == {"Stop", "SubagentStop", "SessionStart", "PreToolUse"}
    assert [group.get("matcher") for (group,) in events.values()] == [None, None, None, "Bash"]
    assert all(timeout <= 60 for timeout in timeouts.values())
    assert min(timeouts["Stop"], timeouts["SubagentStop"]) > JudgeSettings().deadline_s + GRACE_S


def test_a_hold_of_the_plugin_is_known_as_ours(tmp_path: Path) -> None:
    """
    The transcript shows the hook's command with each hold: by it, holds are counted where the store was lost.
    """
    session = Session()
    session.prompt("go")
    session.says("Done.")
    error = {"blockingError": "no", "command": hook_command()}
    session.attachment("hook_blocking_error", hookEvent="Stop", blockingError=error)

    assert record_of(session, tmp_path).own_holds == 1


def test_no_hooks_file_asks_a_model_by_itself() -> None:
    """
    A hook of type `prompt` or `agent` can hold a turn without end, at a price that nobody counts.
    """
    files = list(json_files())
    hooks = [hook for file in files for hook in hooks_in(read_json(file))]

    assert PLUGIN / "hooks/hooks.json" in files
    assert hooks
    assert {hook["type"] for hook in hooks} == {"command"}


def test_without_turngate_the_hook_says_so_in_one_line_and_passes(tmp_path: Path) -> None:
    """
    Nothing goes to standard output, the code is 0, and the whole input is taken.
    """
    ran = run_hook(tmp_path, "/usr/bin:/bin", b"x" * 1_000_000)

    assert (ran.returncode, ran.stdout) == (0, b"")
    assert re.fullmatch(rb"turngate: turngate-hook is not on the PATH, .* install turngate, .*\n", ran.stderr)


@pytest.mark.parametrize("place", ["on the path", "in ~/.turngate/bin"])
def test_with_turngate_the_hook_is_turngate_hook(tmp_path: Path, place: str) -> None:
    """
    It gets the client's input, and its answer is the hook's.
    """
    folder = Path(sysconfig.get_path("scripts"))
    if place != "on the path":
        (tmp_path / ".turngate").mkdir()
        (tmp_path / ".turngate/bin").symlink_to(folder)
    path = f"{folder}:/usr/bin:/bin" if place == "on the path" else "/usr/bin:/bin"

    ran = run_hook(tmp_path, path, json.dumps(STOP).encode())

    assert (ran.returncode, ran.stderr) == (0, b"")
    assert json.loads(ran.stdout)["decision"] == "block"


@EACH_COMMAND
def test_a_slash_command_runs_one_command_and_no_other(page: Path) -> None:
    """
    It is for the person alone, may run what its name says and nothing else, and `turngate` knows how.
    """
    _, front, body = page.read_text().split("---\n")
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    (line,) = re.findall(r"!`(.*)`", body)

    assert fields["description"]
    assert fields["allowed-tools"] == f"Bash(turngate {page.stem}:*)"
    # An agent that could pause the gate, or call its verdicts wrong, would be its own judge.
    assert fields["disable-model-invocation"] == "true"
    program, *arguments = shlex.split(line.replace("$ARGUMENTS", ""))
    assert (program, arguments[0]) == ("turngate", page.stem)
    whole_parser().parse_args(arguments)


def test_the_slash_commands_are_those_of_the_readme() -> None:
    """
    The plugin's page names each, and no other.
    """
    named = re.findall(r"`/turngate:(\w+)`", (PLUGIN / "README.md").read_text())

    assert sorted(named) == [page.stem for page in COMMANDS] == ["cost", "pause", "status", "wrong"]
