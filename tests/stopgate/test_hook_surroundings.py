"""
The real `turngate-hook` process in odd surroundings: settings, homes, working directories, hostile modules.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from .hook_runner import (
    HELD,
    ISOLATED,
    ISOLATED_CODE,
    PYTHON,
    SCRIPT,
    Hook,
    a_stop,
    assert_sound,
)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"[gate\n", b"not TOML"),
        (b"\xff\xfe", b"not TOML"),
        (b"[gate]\nmode = 3\n", b"gate.mode = 3"),
        (b"judge.deadline_s = 'soon'\n", b"judge.deadline_s = 'soon'"),
        (b"gate = " + b"[" * 5000, b"not TOML"),
    ],
)
def test_a_broken_settings_file_is_named_and_means_pass(hook: Hook, content: bytes, named: bytes) -> None:
    """
    One clear line names the file, the key and the value.
    """
    config = hook.home / "config.toml"
    config.write_bytes(content)
    ran = hook.run(HELD, environ={"TURNGATE_CONFIG": str(config)})

    assert_sound(ran)
    assert ran.out == b""
    assert str(config).encode() in ran.err
    assert named in ran.err
    assert hook.outcomes() == ["pass_internal_error"]


@pytest.mark.parametrize(
    "variable",
    [
        {"TURNGATE_CONFIG": "/dev/zero"},
        {"TURNGATE_CONFIG": "/"},
        {"TURNGATE_GATE_MODE": "maybe"},
        {"TURNGATE_GATE_CONTINUATIONS": "99"},
    ],
    ids=str,
)
def test_a_bad_variable_means_pass(hook: Hook, variable: dict[str, str]) -> None:
    """
    A value that cannot be used is named, whether it stands in a file or in the environment.
    """
    ran = hook.run(HELD, environ=variable)

    assert_sound(ran)
    assert ran.out == b""
    assert next(iter(variable.values())).encode() in ran.err
    assert hook.outcomes() == ["pass_internal_error"]


def test_no_home_is_needed(hook: Hook) -> None:
    """
    With HOME unset or of no use the state directory that is named serves, and `~` in a transcript's path does no harm.
    """
    del hook.environ["HOME"]

    for number, home in enumerate(({}, {"HOME": ""}, {"HOME": "relative"}, {"HOME": "/nonexistent"})):
        ran = hook.run(HELD | {"session_id": str(number), "transcript_path": "~/x.jsonl"}, environ=home)
        assert_sound(ran)
        assert ran.holds


@pytest.mark.parametrize(
    "path",
    [
        "/nonexistent/x",
        "/",
        "/dev/zero",
        "/dev/tty",
        "/proc/self/mem",
        "/" + "x" * 10_000,
        "/a\0b",
        "~",
        "~x/y",
        "FIFO",
    ],
)
def test_an_odd_transcript_path_is_judged_on_the_event_alone(hook: Hook, path: str) -> None:
    """
    A path that names no file neither hangs nor stops the stop.
    """
    if path == "FIFO":
        path = str(hook.work / "fifo")
        os.mkfifo(path)
    ran = hook.run(a_stop(transcript_path=path, cwd=path))

    assert_sound(ran)
    assert not ran.holds
    assert hook.outcomes() == ["pass_no_judge"]


def test_a_deleted_working_directory_does_no_harm(hook: Hook) -> None:
    """
    The agent may have removed the directory that it works in.
    """
    gone = hook.work / "gone"
    gone.mkdir()
    ran = hook.shell(HELD | {"cwd": str(gone)}, f'cd "{gone}" && rmdir "{gone}" && exec "$@"')

    assert_sound(ran)
    assert ran.holds
    assert hook.outcomes() == ["block_background"]


@pytest.mark.parametrize("data", [json.dumps(HELD).encode(), b"garbage"], ids=["event", "garbage"])
def test_inside_a_client_of_our_own_nothing_is_done(hook: Hook, data: bytes) -> None:
    """
    A hook that called the client recursively cost others thousands of processes: the guard comes before everything.
    """
    ran = hook.run(data, environ={"TURNGATE_GUARD": "1"})

    assert ran == (0, b"", b"")
    assert not hook.state.exists()
    assert list(hook.home.iterdir()) == []


def test_the_guarded_hook_takes_its_input_to_the_end(hook: Hook) -> None:
    """
    The client must not meet a broken pipe, whatever the hook makes of the event.
    """
    assert hook.run(b"x" * 3_000_000, environ={"TURNGATE_GUARD": "1"}) == (0, b"", b"")


HOSTILE = ("judge", "rubric", "costing", "stopgate", "lab", "turngate", "anthropic", "json", "sqlite3", "sitecustomize")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """
    A project with modules of the same names as ours and as those that we use; each one leaves a trace.
    """
    folder = tmp_path / "hostile"
    for name in HOSTILE:
        (folder / name).mkdir(parents=True)
        trace = f"import os; os.close(os.open({str(folder / 'trace')!r}, os.O_CREAT | os.O_WRONLY)); print('hostile')"
        (folder / name / "__init__.py").write_text(trace)
    return folder


@pytest.mark.parametrize("command", [(SCRIPT,), ISOLATED, ISOLATED_CODE], ids=["script", "isolated", "isolated-code"])
def test_modules_in_the_working_directory_are_not_imported(hook: Hook, hostile: Path, command: tuple[str, ...]) -> None:
    """
    A hook runs in projects that have a `judge` package of their own.
    """
    ran = hook.run(HELD | {"cwd": str(hostile)}, command, cwd=hostile)

    assert_sound(ran)
    assert ran.holds
    assert not (hostile / "trace").exists()


@pytest.mark.parametrize("command", [ISOLATED, ISOLATED_CODE], ids=["isolated", "isolated-code"])
@pytest.mark.parametrize(
    "variables",
    [{"PYTHONPATH": ""}, {"PYTHONHOME": "/nonexistent"}, {"PYTHONVERBOSE": "1"}, {"PYTHONIOENCODING": "none"}],
    ids=lambda variables: next(iter(variables)),
)
def test_an_isolated_interpreter_ignores_the_variables_of_python(
    hook: Hook, hostile: Path, command: tuple[str, ...], variables: dict[str, str]
) -> None:
    """
    `python -I`, as our settings have it, is not led to other modules, broken or made to talk by the environment.
    """
    ran = hook.run(HELD, command, environ={name: value or str(hostile) for name, value in variables.items()})

    assert_sound(ran)
    assert ran.holds
    assert not (hostile / "trace").exists()


def test_a_plain_console_script_follows_pythonpath(hook: Hook, hostile: Path) -> None:
    """
    The limit of a console script, and why the settings name the interpreter with `-I`: PYTHONPATH comes before us.
    """
    hook.run(HELD, environ={"PYTHONPATH": str(hostile)})

    assert (hostile / "trace").exists()


CHATTY = """
import os, sys, warnings
warnings.simplefilter("always")

def talk(event, arguments):
    if event == "import" and arguments[0].startswith("turngate.stopgate.in_process") or "turngate.stopgate.gate" in sys.modules:
        if event in ("import", "open", "sqlite3.connect"):
            os.write(1, b"to stdout"); os.write(2, b"to stderr")
            if sys.stdout: sys.stdout.write("printed")
            if sys.stderr: sys.stderr.write("printed")

sys.addaudithook(talk)
"""


def test_nothing_that_a_library_prints_reaches_the_client(hook: Hook) -> None:
    """
    Anything beside the JSON on stdout would lose the decision, so whatever runs in this process talks to nobody.
    """
    (hook.work / "sitecustomize.py").write_text(CHATTY)
    ran = hook.run(HELD, environ={"PYTHONPATH": str(hook.work)})

    assert_sound(ran)
    assert ran.holds
    assert ran.err == b""


def test_a_process_was_not_started_before_its_parent_said_so() -> None:
    """
    A stop follows the one before: were it taken to have started earlier, by a clock's tick, it would be taken for the same.
    """
    for _ in range(5):
        before = time.monotonic()
        code = "from turngate.stopgate import hook; print(hook._started_at())"
        told = subprocess.run([PYTHON, "-I", "-c", code], capture_output=True, check=True, text=True).stdout
        assert float(told) >= before


def client_settings(hook: Hook, **variables: str) -> None:
    """
    What a repository brings along for the client to set.
    """
    folder = hook.work / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps({"env": variables}))


@pytest.mark.parametrize("named", [True, False], ids=["by-the-client", "by-the-working-directory"])
def test_a_project_cannot_switch_the_gate_off_with_the_guard(hook: Hook, named: bool) -> None:
    """
    The guard counts only where the project did not set it.
    """
    client_settings(hook, TURNGATE_GUARD="1")
    place = {"CLAUDE_PROJECT_DIR": str(hook.work)} if named else {}
    ran = hook.run(HELD, environ={"TURNGATE_GUARD": "1", **place}, cwd=hook.work)

    assert ran.holds
    assert b"env.TURNGATE_GUARD is ignored" in ran.err or not named


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(HELD, id="a stop"),
        pytest.param(b"garbage", id="no event"),
    ],
)
@pytest.mark.parametrize("mode", ["block", "nonsense"])
def test_a_project_cannot_move_the_ledger(hook: Hook, data: object, mode: str) -> None:
    """
    Whatever happens to the stop, its line is written where the user's lines are.
    """
    elsewhere = hook.work / "elsewhere"
    client_settings(hook, TURNGATE_STATE_DIR=str(elsewhere), HOME=str(elsewhere))
    hook.environ["XDG_STATE_HOME"] = str(hook.home)
    environ = {
        "TURNGATE_STATE_DIR": str(elsewhere),
        "CLAUDE_PROJECT_DIR": str(hook.work),
        "TURNGATE_GATE_MODE": mode,
    }
    hook.run(data, environ=environ)  # pyright: ignore[reportArgumentType]

    assert not elsewhere.exists()
    assert (hook.home / "turngate" / "turngate.db").is_file()
