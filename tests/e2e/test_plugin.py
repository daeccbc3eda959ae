"""
The gate as a plugin of the real client, installed from this repository's marketplace, with no hooks in the settings.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .client import BINARY, HOOK, Json, needs_client
from .stage import CLEAN, Stage, hold_in
from .story import CLAIM, FALSE_CLAIM, NO_TEST_RAN, PROMPT, WITHDRAWN, WRITE

pytestmark = [pytest.mark.client, needs_client]

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "plugin"
COMMAND = 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/turngate-hook"'
"""As the client names the hook: the variable is not put in."""
PATH = f"{HOOK.parent}:/usr/local/bin:/usr/bin:/bin"
SHOW = "Show these lines as they are"
"""Stands in what a slash command gives to the agent."""

in_process = pytest.mark.parametrize("stage", ["in-process"], indirect=True)
"""For a scene that is the same with a service."""


def claude(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """
    Run a command of the client in that home.
    """
    environ = {"HOME": str(home), "PATH": PATH, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return subprocess.run(
        [BINARY, *arguments], env=environ, cwd=home, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("target", "options"),
    [
        pytest.param(ROOT, ["--strict"], id="the marketplace"),
        pytest.param(PLUGIN, ["--strict"], id="the plugin"),
        pytest.param(PLUGIN, ["--strict", "--profile", "directory"], id="the plugin, for the directory"),
    ],
)
def test_the_client_finds_nothing_wrong(target: Path, options: list[str], tmp_path: Path) -> None:
    """
    The client's own validator has neither errors nor warnings, also by the rules of the directory of plugins.
    """
    ran = claude(tmp_path, "plugin", "validate", "--json", *options, str(target))

    report: Json = json.loads(ran.stdout)
    assert (ran.returncode, report["success"]) == (0, True), ran.stdout
    assert (report["manifest"]["errors"], report["manifest"]["warnings"]) == ([], [])
    assert (report.get("directory") or {}).get("findings", []) == []


def test_a_false_claim_is_held_and_withdrawn_by_the_installed_plugin(stage: Stage) -> None:
    """
    Installed as a person does it, the plugin alone holds the claim, and the agent withdraws it.
    """
    home = stage.folder / "home"
    home.mkdir(exist_ok=True)
    for arguments in (["marketplace", "add", str(ROOT)], ["install", "turngate@turngate"]):
        ran = claude(home, "plugin", *arguments)
        assert ran.returncode == 0, ran.stderr + ran.stdout

    scene = stage.play(
        PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN], hooks=(), environ={"PATH": PATH}
    )

    assert [d["outcome"] for d in scene.decisions_at("Stop")] == ["block_verdict", "pass_clean"]
    assert hold_in(scene.main_loop.received_from(PROMPT)[2], hook=COMMAND) == NO_TEST_RAN
    assert scene.client.result["result"] == WITHDRAWN


@in_process
def test_a_slash_command_shows_what_the_command_says(stage: Stage) -> None:
    """
    `/turngate:status` runs `turngate status`, without a question, and the agent is given what it said.
    """
    scene = stage.play(
        "/turngate:status",
        {SHOW: ["no service is running"]},
        hooks=(),
        environ={"PATH": PATH},
        options=("--plugin-dir", str(PLUGIN)),
    )

    ((_, given), *_) = scene.main_loop.received_from(SHOW)[0].messages
    _, said = given.split("<command-name>/turngate:status</command-name>")
    assert said.lstrip().startswith("no service is running\n")
    assert said.rstrip().endswith(f"{SHOW}. Do nothing else.")


@in_process
def test_the_slash_command_pauses_the_gate(stage: Stage) -> None:
    """
    After `/turngate:pause` the claim stands, and no judge is asked.
    """
    plugin = ("--plugin-dir", str(PLUGIN))
    stage.play("/turngate:pause --for 20m", {SHOW: ["Paused."]}, hooks=(), environ={"PATH": PATH}, options=plugin)

    scene = stage.play(
        PROMPT, {SHOW: [WRITE, CLAIM]}, [FALSE_CLAIM], hooks=(), environ={"PATH": PATH}, options=plugin, resume=True
    )

    assert [d["outcome"] for d in scene.decisions_at("Stop")] == ["pass_off", "pass_off"]
    assert scene.judged == []
    assert scene.client.result["result"] == CLAIM


@in_process
def test_without_turngate_the_turn_ends_as_without_the_plugin(stage: Stage) -> None:
    """
    The claim stands, nothing fails, and the client's debug log says in one line what is missing.
    """
    scene = stage.play(
        PROMPT,
        {PROMPT: [WRITE, CLAIM]},
        hooks=(),
        environ={"PATH": "/usr/local/bin:/usr/bin:/bin"},
        options=("--plugin-dir", str(PLUGIN)),
    )

    assert scene.client.result["result"] == CLAIM
    assert scene.decisions == []
    assert [summary["hookErrors"] for summary in scene.client.stop_summaries] == [[]]
    assert "turngate: turngate-hook is not on the PATH" in scene.client.debug_log
