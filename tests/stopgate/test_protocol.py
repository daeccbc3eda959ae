"""
The answer to the client.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from turngate.stopgate.protocol import answer, style_for

from .hook_runner import Hook
from .transcripts import Session


def test_a_pass_writes_nothing() -> None:
    """
    Zero bytes is the form of a pass that every client understands.
    """
    assert answer(event_name="Stop", reason="", message="", style="decision") == b""


def test_a_hold_is_a_decision_with_its_reason() -> None:
    """
    The form that all versions of the client take, and nothing else in it.
    """
    out = answer(event_name="Stop", reason="No test ran.", message="", style="decision")

    assert json.loads(out) == {"decision": "block", "reason": "No test ran."}
    assert out[:1] == b"{"


def test_a_hold_as_context_names_its_own_event() -> None:
    """
    A SubagentStop is answered under its own name.
    """
    out = answer(event_name="SubagentStop", reason="No test ran.", message="held", style="context")

    assert json.loads(out) == {
        "hookSpecificOutput": {"hookEventName": "SubagentStop", "additionalContext": "No test ran."},
        "systemMessage": "held",
    }


@pytest.mark.parametrize(
    ("wanted", "version", "style"),
    [
        pytest.param("decision", "2.1.328", "decision", id="as set"),
        pytest.param("context", "1.0.98", "context", id="as set, on an old client too"),
        pytest.param("auto", "2.1.163", "context", id="the first that understands it"),
        pytest.param("auto", "2.1.162", "decision", id="the last that does not"),
        pytest.param("auto", "2.2.0-beta.1", "context", id="a preview"),
        pytest.param("auto", "", "decision", id="an unknown version"),
        pytest.param("auto", "latest", "decision", id="a version that is none"),
    ],
)
def test_the_style_follows_setting_and_version(wanted: str, version: str, style: str) -> None:
    """
    `auto` takes the quiet form only where the client is known to go on for it.
    """
    assert style_for(wanted, version) == style


@pytest.mark.parametrize(
    ("style", "version", "keys"),
    [
        pytest.param(
            "auto", "2.1.328", {"hookSpecificOutput", "systemMessage"}, id="a client that understands context"
        ),
        pytest.param("auto", "2.1.162", {"decision", "reason", "systemMessage"}, id="one that does not"),
        pytest.param("auto", "", {"decision", "reason", "systemMessage"}, id="one that does not say its version"),
        pytest.param("context", "2.1.162", {"hookSpecificOutput", "systemMessage"}, id="as set"),
        pytest.param("decision", "2.1.328", {"decision", "reason", "systemMessage"}, id="as set, on a new client"),
    ],
)
def test_a_hold_is_said_in_the_style_for_the_transcripts_version(
    tmp_path: Path, style: str, version: str, keys: set[str]
) -> None:
    """
    The version is that of the newest entry of the turn.
    """
    hook = Hook(tmp_path, TURNGATE_GATE_STYLE=style)
    hook.script({"findings": [{"fault": "claim", "quote": "All tests pass.", "reason": "No test ran."}]})
    session = Session(version=version)
    session.prompt("Write it", prompt_id="p1")
    session.says("Done. All tests pass.")
    event = {
        "hook_event_name": "Stop",
        "session_id": "s1",
        "prompt_id": "p1",
        "transcript_path": session.write(tmp_path),
        "last_assistant_message": "Done. All tests pass.",
    }

    answered = hook.run(event).answer

    assert answered.keys() == keys
    assert hook.outcomes() == ["block_verdict"]
    (decision,) = hook.log()
    assert answered["systemMessage"] == f"turngate held this reply: claim (turngate wrong {decision['id'][:9]})"
