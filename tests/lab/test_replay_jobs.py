"""
The replay of Bash commands: which of the past the jobs check would have refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turngate.lab.past.bash_commands import LONGEST_PART
from turngate.lab.past.replay import plan, replay

from ..shared import SHARED, needs_shared
from ..stopgate.transcripts import Session
from .replay_stage import replay as replay_command
from .replay_stage import replay_json

Capture = pytest.CaptureFixture[str]

AT = "2026-11-30T12:34:56.000Z"


@pytest.fixture(name="environ")
def a_user(tmp_path: Path) -> dict[str, str]:
    """
    A user with no settings.
    """
    return {
        "HOME": str(tmp_path / "home"),
        "TURNGATE_CONFIG": str(tmp_path / "config.toml"),
        "TURNGATE_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path) -> Path:
    """
    Where the client keeps its transcripts.
    """
    folder = tmp_path / "projects"
    folder.mkdir()
    return folder


def test_a_refused_command_is_one_line(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Project, session, time, kind and the refused part; behind it all, how many commands there were.
    """
    session = Session(cwd="/home/dev/demo")
    bash(session, "make test")
    bash(session, "cd web && npm run dev &\nsleep 2; curl -s localhost:3000")
    bash(session, "if then (")
    session.says("It runs.", timestamp=AT)
    session.write(folder)

    lines = replay_command(capsys, environ, folder)[0].splitlines()

    assert lines[-3] == (
        "Bash commands: 3. Of these 1 would have been refused (jobs.mode = deny), and 1 could not be parsed, which pass."
    )
    assert " ".join(lines[-2].split()) == "project session time (UTC) kind refused part"
    assert " ".join(lines[-1].split()) == "demo s1 2026-11-30 12:34 background cd web && npm run dev &"


def test_programs_get_the_same_as_data(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    All refused parts of a command, the whole folder of the project, and the call's own id.
    """
    session = Session(cwd="/home/dev/demo")
    bash(session, "pkill -f vite; nohup ./serve", call="toolu_x")
    bash(session, "ls")
    session.write(folder)

    found = replay_json(capsys, environ, folder)["jobs"]

    assert found == {
        "mode": "deny",
        "bash_commands": 2,
        "refused": 1,
        "unparsed": 0,
        "refused_commands": [
            {
                "project": "/home/dev/demo",
                "session": "s1",
                "at": "2026-11-30T12:34:56+00:00",
                "call": "toolu_x",
                "parts": [{"kind": "pattern", "part": "pkill -f vite"}, {"kind": "detached", "part": "nohup ./serve"}],
            }
        ],
    }


def test_several_refused_parts_are_still_one_line(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    The first is shown, the kinds are all named.
    """
    session = Session()
    bash(session, "pkill -f vite; killall node; nohup ./serve")
    session.write(folder)

    line = replay_command(capsys, environ, folder)[0].splitlines()[-1]

    assert "pattern, detached" in line
    assert line.endswith("pkill -f vite (and 2 more)")


def test_a_call_counts_once(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Whether its session goes on in a new file, lies in two folders, or repeats the entry.
    """
    session = Session()
    bash(session, "a &", call="toolu_1")
    bash(session, "a &", call="toolu_1")
    session.write(folder, "one.jsonl")
    bash(session, "a &", call="toolu_2")
    session.write(folder, "two.jsonl")

    found = replay_json(capsys, environ, folder)["jobs"]

    assert (found["bash_commands"], [one["call"] for one in found["refused_commands"]]) == (2, ["toolu_1", "toolu_2"])


def test_calls_without_an_id_are_all_counted(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Nobody can tell that they are the same.
    """
    session = Session()
    bash(session, "a &", call="")
    bash(session, "a &", call="")
    session.write(folder)

    assert replay_json(capsys, environ, folder)["jobs"]["refused"] == 2


def test_commands_of_subagents_count(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    From a file of their own, and as older clients wrote them: in the session's file, as entries or within those about progress.
    """
    session, own = Session(), Session(sidechain=True)
    bash(session, "one &", isSidechain=True)
    message = {"role": "assistant", "content": [use("two &", "toolu_two")]}
    told = {"type": "agent_progress", "message": {"type": "assistant", "message": message}}
    session.add({"type": "progress", "data": told, "timestamp": AT, "sessionId": "s1"})
    session.write(folder, "s1.jsonl")
    bash(own, "three &", call="toolu_three", agentId="a1")
    subagents = folder / "s1" / "subagents"
    subagents.mkdir(parents=True)
    own.write(subagents, "agent-a1.jsonl")

    found = replay_json(capsys, environ, folder)["jobs"]["refused_commands"]

    assert {one["parts"][0]["part"] for one in found} == {"one &", "two &", "three &"}


@pytest.mark.parametrize(
    ("variables", "counts", "told"),
    [
        pytest.param({"TURNGATE_JOBS_MODE": "off"}, ("off", 2, 0), "not looked at: jobs.mode = off", id="off"),
        pytest.param({"TURNGATE_GATE_MODE": "off"}, ("off", 2, 0), "not looked at: gate.mode = off", id="gate off"),
        pytest.param({"TURNGATE_JOBS_MODE": "ask"}, ("ask", 2, 2), "2 would have been asked about", id="ask"),
        pytest.param({"TURNGATE_GATE_MODE": "shadow"}, ("deny", 2, 2), "shadow mode, so only noted", id="shadow"),
        pytest.param({"TURNGATE_JOBS_ALLOW": "nohup *"}, ("deny", 2, 1), "1 would have been refused", id="allowed"),
    ],
)
def test_the_users_own_settings_count(
    capsys: Capture,
    environ: dict[str, str],
    folder: Path,
    variables: dict[str, str],
    counts: tuple[str, int, int],
    told: str,
) -> None:
    """
    What the check is set to is what it would have done.
    """
    session = Session()
    bash(session, "nohup ./serve")
    bash(session, "killall node")
    session.write(folder)

    found = replay_json(capsys, environ | variables, folder)["jobs"]

    assert (found["mode"], found["bash_commands"], found["refused"]) == counts
    assert told in replay_command(capsys, environ | variables, folder)[0]


def test_only_the_days_that_are_asked_for_count(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    A command without a time has that of the one before it.
    """
    session = Session()
    bash(session, "early &", timestamp="2026-11-29T23:59:59Z")
    bash(session, "late &", timestamp="2026-11-30T00:00:00Z")
    bash(session, "later &", timestamp=None)
    session.write(folder)

    found = replay_json(capsys, environ, folder, "--since", "2026-11-30")["jobs"]

    assert [one["parts"][0]["part"] for one in found["refused_commands"]] == ["late &", "later &"]


def test_nothing_but_the_refused_part_is_kept_and_it_is_masked(
    capsys: Capture, environ: dict[str, str], folder: Path
) -> None:
    """
    No secret, no control character, no other part of the command, nothing of what it printed.
    """
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    session = Session()
    call = bash(session, f"echo private; curl -H 'Authorization: Bearer {secret}' 'http://h/\x1b[31m' {'x' * 500} &")
    session.result(call, "printed &")
    session.write(folder)

    text, complaint = replay_command(capsys, environ, folder)
    data = replay_command(capsys, environ, "--json", folder)[0]
    part = json.loads(data)["jobs"]["refused_commands"][0]["parts"][0]["part"]

    assert complaint == ""
    assert (part[:24], len(part)) == ("curl -H 'Authorization: ", LONGEST_PART)
    for said in (text, data):
        assert all(word not in said for word in (secret, "private", "printed", "\x1b", "\\u001b"))


@pytest.mark.parametrize(
    ("block", "counts"),
    [
        pytest.param({"name": "PowerShell", "input": {"command": "a &"}}, (0, 0, 0), id="another tool"),
        pytest.param({"name": "Bash", "input": {}}, (1, 0, 1), id="no command"),
        pytest.param({"name": "Bash", "input": None}, (1, 0, 1), id="no input"),
        pytest.param({"name": "Bash", "input": {"command": ["a &"]}}, (1, 0, 1), id="a list"),
        pytest.param({"name": "Bash", "input": {"command": "a & " * 300_000}}, (1, 0, 1), id="over a megabyte"),
        pytest.param({"name": "Bash", "input": {"command": "a & " * 1_100_000}}, (0, 0, 0), id="a line over 4 MB"),
    ],
)
def test_odd_calls_harm_nothing(
    capsys: Capture, environ: dict[str, str], folder: Path, block: dict[str, Any], counts: tuple[int, int, int]
) -> None:
    """
    What is no command counts as not parsed, as in the gate; the rest of the session is looked at.
    """
    session = Session()
    session.block({"type": "tool_use", "id": "toolu_odd", **block}, stop="tool_use")
    session.prompt([use("quoted &", "toolu_quoted")])
    session.raw(b'{"type":"assistant","message":{"content":[{"type":"tool_use","name":"Bash","input":{"comm')
    bash(session, "ls")
    session.write(folder)

    found = replay_json(capsys, environ, folder)["jobs"]

    assert (found["bash_commands"] - 1, found["refused"], found["unparsed"]) == counts


def test_without_any_command_nothing_is_said(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    The report of a session that only talks is that of its stops.
    """
    session = Session()
    session.says("Good morning.", timestamp=AT)
    session.write(folder)

    assert "Bash" not in replay_command(capsys, environ, folder)[0]


@needs_shared
def test_no_command_of_real_sessions_is_refused(environ: dict[str, str]) -> None:
    """
    Each of them was read: none starts a process in the background, and none stops one by a pattern. None is overlooked.
    """
    assert SHARED is not None
    files = sorted(SHARED.glob("data/transcripts/*/*.jsonl"))
    calls = {
        call for file in files for line in file.read_bytes().splitlines() for call in _bash_calls(json.loads(line))
    }

    commands = replay(files, plan(environ), jobs=1).commands

    assert {command.id for command in commands} == calls
    assert len(commands) == len(calls) > 300
    assert {command.outcome for command in commands} == {"jobs_pass"}


# The set-up


def bash(session: Session, command: str, *, call: str | None = None, **fields: Any) -> str:
    """
    A call of Bash; gives its id.
    """
    call = f"toolu_{len(session.lines)}_{session.leaf}" if call is None else call
    session.block(use(command, call), stop="tool_use", **{"timestamp": AT, "sessionId": "s1", **fields})
    return call


def use(command: str, call: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}


def _bash_calls(value: Any) -> Iterator[str]:
    """
    The ids of all calls of Bash, at whatever depth of an entry.
    """
    if isinstance(value, list):
        for one in value:
            yield from _bash_calls(one)
    if isinstance(value, dict):
        if value.get("type") == "tool_use" and value.get("name") == "Bash":
            yield value["id"]
        for one in value.values():
            yield from _bash_calls(one)
