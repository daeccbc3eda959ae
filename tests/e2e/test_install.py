"""
`turngate install` in a clean home, and the real client after it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .client import FAKE_KEY, TURNGATE, needs_client
from .stage import CLEAN, Stage, by_a_service
from .story import CLAIM, FALSE_CLAIM, NO_TEST_RAN, PROMPT, WITHDRAWN, WRITE

pytestmark = [pytest.mark.client, needs_client]


def turngate(home: Path, *arguments: str) -> str:
    """
    Run a command as a person does, in that home.
    """
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": FAKE_KEY}
    ran = subprocess.run([TURNGATE, *arguments], env=environ, cwd=home, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_after_install_a_false_claim_is_held_and_withdrawn(stage: Stage) -> None:
    """
    One command in a clean home is enough for the client to call the gate, and uninstalling leaves nothing in its settings.
    """
    home = stage.folder / "home"
    (home / ".claude").mkdir(parents=True)
    turngate(home, "install")

    played = stage.play(PROMPT, {PROMPT: [WRITE, CLAIM, WITHDRAWN]}, [FALSE_CLAIM, CLEAN], hooks=())

    assert played.client.result["result"] == WITHDRAWN
    assert NO_TEST_RAN in str(played.main_loop.received[-1].news)
    assert [line["outcome"] for line in played.decisions_at("Stop")] == ["block_verdict", "pass_clean"]
    turngate(home, "uninstall")
    assert not (home / ".claude" / "settings.json").exists()


@by_a_service
def test_the_start_of_a_session_starts_the_service(stage: Stage) -> None:
    """
    With the hook at SessionStart alone the service is there, and the client gets nothing from it.
    """
    home = stage.folder / "home"
    (home / ".claude").mkdir(parents=True)
    turngate(home, "install", "--events", "SessionStart")

    played = stage.play(PROMPT, {PROMPT: ["Nothing to do."]}, hooks=())

    assert len(stage.services()) == 1
    assert played.decisions == []
    assert [a for a in played.client.hook_attachments if a.get("stdout") or a.get("content")] == []
