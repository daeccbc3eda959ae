"""
What a stop imports that is relayed, or asks no model: nothing that costs, measured in the real main path of a fresh interpreter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

from .hook_runner import RUNNING_TASK, Hook, a_stop
from .installed_tree import installed_tree
from .raw_service import RawService, response

HEAVY = frozenset(
    (
        *(
            "anthropic",
            "httpx",
            "httpx2",
            "pydantic",
            "tenacity",
            "prometheus_client",
            "genai_prices",
            "rich",
            "platformdirs",
        ),
        *("asyncio", "concurrent", "dataclasses", "inspect", "decimal", "ssl", "email", "http", "logging", "argparse"),
        *("subprocess", "tomllib", "importlib.metadata"),
    )
)

# Without `site`, whose finder of editable installs imports some of the heavy modules itself; the heavy ones can be found all the same.
# What stands in `sys.modules` at the end is written down without the help of any module.
RUNNER = """
import sys
sys.path += [{ours!r}, {libraries!r}]
sys.modules.setdefault("site", None)
before = set(sys.modules)

def leave(code):
    with open({report!r}, "w") as file:
        file.write(repr([code, sorted(set(sys.modules) - before)]).replace("'", '"'))
    leave_really(code)

import posix
leave_really, posix._exit = posix._exit, leave
from turngate.stopgate.hook import main
main()
"""

RELAYED = {
    *("__future__", "_socket", "select"),
    *("turngate", "turngate.stopgate"),
    *("turngate.stopgate.hook", "turngate.stopgate.relay", "turngate.stopgate.service_folder"),
}
"""All that a relayed stop imports: three files of ours, two modules in C, and one that only names features of the language."""


class Drive(NamedTuple):
    """
    One stop that was answered, and what it imported.
    """

    outcome: str
    modules: frozenset[str]


@pytest.fixture(name="hook")
def make_hook(short_path: Path) -> Hook:
    """
    A user without a key and without a settings file.
    """
    return Hook(short_path)


def imported(hook: Hook, folder: Path, event: dict[str, object]) -> frozenset[str]:
    """
    Answer the event in an interpreter that then tells what it imported.
    """
    report = folder / "modules.json"
    ours, libraries = str(installed_tree(folder)), sysconfig.get_path("purelib")
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", RUNNER.format(ours=ours, libraries=libraries, report=str(report))],
        input=json.dumps(event).encode(),
        env=hook.environ,
        cwd=hook.work,
        capture_output=True,
        check=True,
        timeout=60,
    )
    code, modules = json.loads(report.read_text())
    assert code == 0
    return frozenset(modules)


def drive(hook: Hook, folder: Path, event: dict[str, object]) -> Drive:
    """
    The same, with the outcome from the log.
    """
    modules = imported(hook, folder, event)
    return Drive(hook.outcomes()[-1], modules)


def heavy(modules: frozenset[str]) -> set[str]:
    """
    The heavy ones among the modules.
    """
    return {name for name in modules if name in HEAVY or name.partition(".")[0] in HEAVY}


STOPS = [
    pytest.param({"background_tasks": [RUNNING_TASK]}, "block_background", id="a-task-runs"),
    pytest.param({"last_assistant_message": " "}, "pass_empty_reply", id="empty-reply"),
    pytest.param({}, "pass_no_judge", id="no-judge"),
    pytest.param({"hook_event_name": "StopFailure"}, "pass_not_a_turn", id="another-event"),
    pytest.param({"agent_type": ""}, "pass_not_a_turn", id="internal-fork"),
]


@pytest.mark.parametrize(("fields", "outcome"), STOPS)
def test_a_stop_without_a_model_call_imports_nothing_heavy(
    hook: Hook, tmp_path: Path, fields: dict[str, object], outcome: str
) -> None:
    """
    Most stops ask nobody, and are answered in the time of a bare interpreter and a few small modules.
    """
    drove = drive(hook, tmp_path, a_stop(**fields))

    assert drove.outcome == outcome
    assert heavy(drove.modules) == set()


def test_a_spent_cap_imports_nothing_heavy(hook: Hook, tmp_path: Path) -> None:
    """
    The third stop of a turn that was held twice costs as little as any other without a model call.
    """
    for task in ("b1", "b2"):
        assert hook.run(a_stop(background_tasks=[RUNNING_TASK | {"id": task}])).holds

    drove = drive(hook, tmp_path, a_stop())

    assert drove.outcome == "pass_cap_spent"
    assert heavy(drove.modules) == set()


def test_the_settings_parser_is_imported_only_for_a_settings_file(hook: Hook, tmp_path: Path) -> None:
    """
    The measurement sees what is imported: a settings file brings the TOML parser, and nothing else that is heavy.
    """
    config = hook.home / "config.toml"
    config.write_text("[gate]\nmode = 'off'\n")
    hook.environ["TURNGATE_CONFIG"] = str(config)

    drove = drive(hook, tmp_path, a_stop())

    assert drove.outcome == "pass_off"
    assert heavy(drove.modules) == {"tomllib", "tomllib._parser", "tomllib._re", "tomllib._types"}


@pytest.mark.parametrize(
    "fields",
    [{"background_tasks": [RUNNING_TASK]}, {"last_assistant_message": " "}],
    ids=["a-task-runs", "empty-reply"],
)
def test_paths_are_text(hook: Hook, tmp_path: Path, fields: dict[str, object]) -> None:
    """
    `pathlib` costs 4 to 11 ms, and what it imports of `urllib` with it.
    """
    modules = drive(hook, tmp_path, a_stop(**fields)).modules

    assert not {"pathlib", "urllib", "urllib.parse", "ipaddress"} & modules


PROJECTS = {
    "without-settings": {},
    "with-settings": {".claude/settings.json": '{"hooks": {"Stop": [{"command": "$HOME/.turngate/x"}]}}'},
    "in-a-repository": {".git/HEAD": "", ".claude/settings.local.json": '{"env": {"JAVA_OPTS": "/x"}}'},
    "in-a-worktree": {".git": "gitdir: ../main/.git/worktrees/w", "../main/.git/worktrees/w/commondir": "../.."},
}


@pytest.mark.parametrize("files", PROJECTS.values(), ids=PROJECTS)
@pytest.mark.parametrize("names_home", [True, False], ids=["by-home", "by-variable"])
def test_a_relayed_stop_imports_next_to_nothing(
    hook: Hook, tmp_path: Path, files: dict[str, str], names_home: bool
) -> None:
    """
    Not even `os`, `socket`, `json`, `re` or `typing`: each costs a good part of a bare interpreter's time.
    """
    for name, text in files.items():
        file = hook.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    if names_home:
        del hook.environ["TURNGATE_STATE_DIR"]
        hook.state = hook.home / ".local" / "state" / "turngate"
        hook.state.parent.mkdir(parents=True)
    with RawService(hook.state, response(200, b"{}", turngate_notice="x")) as service:
        modules = imported(hook, tmp_path, a_stop())

    assert len(service.sent) == 1
    assert modules == RELAYED
