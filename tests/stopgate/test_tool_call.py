"""
The event before a tool, by the real hook process: what is answered, and what is logged.
"""

from __future__ import annotations

from typing import Any

import pytest

from .hook_runner import Hook

SECRET = "sk-ant-api03-Zx9Qw7Er5Ty3Ui1Op8As6Df4Gh2Jk0Lz"


def a_call(command: object, **fields: object) -> dict[str, object]:
    """
    Give the event before a Bash call.
    """
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "toolu_1"}
    return {**event, "tool_input": {"command": command, "description": "d"}, **fields}


def said(hook: Hook, event: dict[str, object]) -> dict[str, Any]:
    """
    Give the hook's own part of the answer; empty where it has no objection.
    """
    ran = hook.run(event)
    assert (ran.code, ran.err) == (0, b"")
    return ran.answer.get("hookSpecificOutput", {})


def test_a_refused_command_is_denied_with_the_reason(hook: Hook) -> None:
    """
    In the client's words, and with nothing beside them.
    """
    ran = hook.run(a_call("npm run dev &"))

    assert list(ran.answer) == ["hookSpecificOutput"]
    answer = ran.answer["hookSpecificOutput"]
    assert answer["hookEventName"] == "PreToolUse"
    assert answer["permissionDecision"] == "deny"
    assert "run_in_background: true" in answer["permissionDecisionReason"]
    assert hook.outcomes() == ["jobs_deny"]


@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        pytest.param(a_call("npm test"), "jobs_pass", id="a sound command"),
        pytest.param(a_call("if then ("), "jobs_unparsed", id="a broken one"),
        pytest.param(a_call("x &", tool_name="PowerShell"), "jobs_pass", id="another tool"),
        pytest.param(a_call(None), "jobs_unparsed", id="no command"),
        pytest.param(a_call(["x &"]), "jobs_unparsed", id="a command that is no text"),
        pytest.param(a_call("x", tool_input="x &"), "jobs_unparsed", id="an input that is no object"),
        pytest.param(a_call("x &", tool_name=None), "jobs_pass", id="no tool"),
    ],
)
def test_everything_else_goes_on_without_a_word(hook: Hook, event: dict[str, object], outcome: str) -> None:
    """
    Never `allow`, which would skip the person's own prompt: zero bytes.
    """
    ran = hook.run(event)

    assert (ran.code, ran.out, ran.err) == (0, b"", b"")
    assert hook.outcomes() == [outcome]


@pytest.mark.parametrize(
    ("variable", "value", "permission", "outcome"),
    [
        pytest.param("TURNGATE_JOBS_MODE", "ask", "ask", "jobs_deny", id="the person is asked"),
        pytest.param("TURNGATE_JOBS_MODE", "off", None, "pass_off", id="the check is off"),
        pytest.param("TURNGATE_GATE_MODE", "off", None, "pass_off", id="the gate is off"),
        pytest.param("TURNGATE_GATE_MODE", "shadow", None, "jobs_deny", id="the gate only watches"),
        pytest.param("TURNGATE_GATE_EVENTS", "SubagentStop", "deny", "jobs_deny", id="the gate's events do not matter"),
        pytest.param("TURNGATE_JOBS_ALLOW", "npm run dev*", None, "jobs_pass", id="it is allowed"),
    ],
)
def test_the_settings_decide_what_becomes_of_it(
    hook: Hook, variable: str, value: str, permission: str | None, outcome: str
) -> None:
    """
    `jobs.mode`, `jobs.allow` and `gate.mode`; no other.
    """
    hook.environ[variable] = value

    assert said(hook, a_call("npm run dev &")).get("permissionDecision") == permission
    assert hook.outcomes() == [outcome]


def test_a_project_may_allow_a_command_and_not_switch_the_check_off(hook: Hook) -> None:
    """
    A cloned repository cannot make the check blind.
    """
    (hook.work / ".turngate.toml").write_text('[jobs]\nmode = "off"\nallow = ["npm run dev*"]\n')

    ran = hook.run(a_call("npm run dev &", cwd=str(hook.work)))

    assert ran.out == b""
    assert b"jobs.mode = 'off': a project may not set it" in ran.err
    assert said_permission(hook, "npm start &") == "deny"


def said_permission(hook: Hook, command: str) -> str:
    """
    Give the permission decision about a command in the hook's own project.
    """
    answer = hook.run(a_call(command, cwd=str(hook.work))).answer
    return answer["hookSpecificOutput"]["permissionDecision"]


def test_the_ledger_keeps_two_hundred_masked_characters(hook: Hook) -> None:
    """
    Enough to recognise the command; of a command that passes, nothing.
    """
    command = f"deploy --key {SECRET} " + "x" * 400 + " &"
    hook.run(a_call(command))
    hook.run(a_call(f"deploy --key {SECRET}"))

    refused, passed = hook.log()
    assert refused["detail"].startswith("deploy --key [secret] xxx")
    assert len(refused["detail"]) <= 200
    assert passed["detail"] == ""
    assert SECRET.encode() not in hook.stored_bytes()
