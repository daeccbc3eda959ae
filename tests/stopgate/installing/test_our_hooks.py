from __future__ import annotations

import shlex
import sys

import pytest

from turngate.judge.settings import JudgeSettings
from turngate.stopgate.installing.our_hooks import is_ours, mentions_us, our_command, timeout_s
from turngate.stopgate.settings import Settings

README_LINE = "~/.turngate/bin/python -I -S ~/.turngate/lib/python3*/site-packages/turngate/stopgate/__main__.py"


def command(text: str, **more: object) -> dict[str, object]:
    return {"type": "command", "command": text, **more}


@pytest.mark.parametrize(
    "hook",
    [
        pytest.param(command(our_command()), id="what-install-writes"),
        pytest.param(command(README_LINE), id="the-snippet-of-the-readme"),
        pytest.param(command("turngate-hook"), id="by-name"),
        pytest.param(command("/opt/t/bin/turngate-hook"), id="another-path"),
        pytest.param(command("'/opt/my tools/bin/turngate-hook'"), id="quoted"),
        pytest.param(command("/usr/bin/python3 -I /opt/t/bin/turngate-hook"), id="script-by-python"),
        pytest.param(command("/opt/t/bin/python3.12 -I -m turngate.stopgate.hook"), id="module"),
        pytest.param(command("TURNGATE_GATE_MODE=shadow turngate-hook"), id="with-a-variable"),
        pytest.param(command(r"C:\t\Scripts\turngate-hook.exe"), id="windows"),
        pytest.param(command("turngate-hook", args=[]), id="without-arguments"),
    ],
)
def test_ours_is_recognised_from_any_path_and_version(hook: dict[str, object]) -> None:
    """
    A hook that runs turngate and nothing else is ours, wherever it is installed.
    """
    assert is_ours(hook)
    assert mentions_us(hook)


@pytest.mark.parametrize(
    ("hook", "mentioned"),
    [
        pytest.param(command("turngate-hook || true"), True, id="with-a-way-out"),
        pytest.param(command("tee /tmp/log | turngate-hook"), True, id="pipeline"),
        pytest.param(command("sh -c turngate-hook"), True, id="in-a-shell"),
        pytest.param(command("turngate-hook", args=["--more"]), True, id="with-arguments"),
        pytest.param(command("my-turngate-hooks"), True, id="another-name"),
        pytest.param(command("echo 'turngate-hook"), True, id="open-quote"),
        pytest.param(command("python3 tests/__main__.py"), False, id="another-main"),
        pytest.param(command("npm run lint"), False, id="another-tool"),
        pytest.param({"type": "prompt", "prompt": "turngate-hook"}, False, id="prompt"),
        pytest.param({"type": "command", "command": 7}, False, id="no-text"),
    ],
)
def test_what_others_wrote_is_not_ours(hook: dict[str, object], mentioned: bool) -> None:
    """
    A hook that does anything else, too, stays somebody's own; it is named where it runs turngate.
    """
    assert not is_ours(hook)
    assert mentions_us(hook) is mentioned


def test_the_command_is_this_interpreter_by_its_absolute_path() -> None:
    """
    The command names the interpreter and the file by absolute paths, isolated, and quotes what a shell would split.
    """
    python, isolated, siteless, script = shlex.split(our_command("/opt/my tools/bin/python"))

    assert (python, isolated, siteless) == ("/opt/my tools/bin/python", "-I", "-S")
    assert script.startswith("/")
    assert script.endswith("stopgate/__main__.py")
    assert shlex.split(our_command())[0] == sys.executable


@pytest.mark.parametrize(
    ("event", "deadline_s", "expected"),
    [
        ("Stop", 8.0, 15),
        ("SubagentStop", 8.0, 15),
        ("Stop", 40.5, 48),
        ("SessionStart", 40.0, 5),
        ("PreToolUse", 8.0, 5),
    ],
)
def test_the_timeout_is_in_seconds_and_above_the_deadline(event: str, deadline_s: float, expected: int) -> None:
    """
    The client kills a hook only after the gate has given up by itself.
    """
    assert timeout_s(event, Settings(judge=JudgeSettings(deadline_s=deadline_s))) == expected
