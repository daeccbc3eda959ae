"""
Who wrote an entry.
"""

from __future__ import annotations

from typing import Any

import pytest

from turngate.stopgate.transcript.authors import author_of, prompt_text, queued_author

HUMAN = {"kind": "human"}


def user(content: object, **fields: object) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, **fields}


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(user("fix it"), id="old client, string"),
        pytest.param(user([{"type": "text", "text": "fix it"}]), id="old client, blocks"),
        pytest.param(user("fix it", promptSource="sdk", turnOrigin="sdk"), id="headless"),
        pytest.param(user("<system-reminder> tags: what for?", promptSource="sdk"), id="headless, a tag in front"),
        pytest.param(user("<task-notification> what for?", turnOrigin="sdk"), id="headless, a notification's tag"),
        pytest.param(user("fix it", origin=HUMAN), id="origin human"),
        pytest.param(user("<task-notification> what is this tag?", origin=HUMAN), id="origin beats the marker"),
        pytest.param(user("what does <system-reminder> mean?"), id="a tag further in"),
        pytest.param(user("Read this: Stop hook feedback:\nno"), id="a marker further in"),
        pytest.param(user([{"type": "image", "source": {}}]), id="an image alone"),
        pytest.param(
            user([{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "go"}]),
            id="a reminder beside it",
        ),
        pytest.param(user(["go"]), id="a bare string in the list"),
    ],
)
def test_a_person_wrote_it(entry: dict[str, Any]):
    """
    What a person typed is found whatever the client's version.
    """
    assert author_of(entry) == "person"


@pytest.mark.parametrize(
    ("entry", "author"),
    [
        pytest.param(user([{"type": "tool_result", "tool_use_id": "t", "content": "x"}]), "tool", id="tool result"),
        pytest.param(
            user([{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "and do it"}], origin=HUMAN),
            "tool",
            id="tool result with text beside it",
        ),
        pytest.param(user("x", isMeta=True), "nobody", id="meta"),
        pytest.param(user("x", isCompactSummary=True), "nobody", id="compact summary"),
        pytest.param(user("x", isVisibleInTranscriptOnly=True), "nobody", id="for the eye only"),
        pytest.param(user("x", origin={"kind": "peer"}), "nobody", id="peer"),
        pytest.param(user("x", origin={"kind": "coordinator"}), "nobody", id="coordinator"),
        pytest.param(user("x", origin={"kind": "channel"}), "nobody", id="an origin to come"),
        pytest.param(user("x", promptSource="system"), "nobody", id="the system's prompt"),
        pytest.param(user("x", origin={"kind": "task-notification"}), "notification", id="notification by origin"),
        pytest.param(user("x", turnOrigin="task_notification"), "notification", id="notification by turn origin"),
        pytest.param(user("<task-notification>x"), "notification", id="notification by marker"),
        pytest.param(
            user("<task-notification>x", promptSource="sdk", turnOrigin="task_notification"),
            "notification",
            id="headless notification",
        ),
        pytest.param(user("<command-name>/plan</command-name>", promptSource="sdk"), "command", id="headless command"),
        pytest.param(user("[SYSTEM NOTIFICATION] x"), "notification", id="system notification"),
        pytest.param(user("Stop hook feedback:\nx", isMeta=True), "nobody", id="hook feedback"),
        pytest.param(user("Stop hook feedback:\nx"), "nobody", id="hook feedback, not marked"),
        pytest.param(user("<system-reminder>x</system-reminder>"), "nobody", id="reminder"),
        pytest.param(user("<local-command-caveat>x"), "nobody", id="caveat"),
        pytest.param(user("<teammate-message teammate_id='a'>x"), "nobody", id="teammate"),
        pytest.param(user("Another Claude session sent a message:\nx"), "nobody", id="another session"),
        pytest.param(
            user([{"type": "text", "text": "[Request interrupted by user for tool use]"}]), "nobody", id="esc"
        ),
        pytest.param(user("[Image: source: /tmp/a.png]"), "nobody", id="image note"),
        pytest.param(user("Operation stopped by hook: no"), "nobody", id="stopped prompt"),
        pytest.param(user("<bash-input>ls</bash-input>"), "nobody", id="shell mode"),
        pytest.param(user("<local-command-stdout>ok</local-command-stdout>"), "command output", id="command output"),
        pytest.param(user("<command-name>/exit</command-name>"), "command", id="command"),
        pytest.param(user("<command-message>x</command-message>", origin=HUMAN), "command", id="a person's command"),
        pytest.param(user(None), "nobody", id="no content"),
        pytest.param(user("  \n"), "nobody", id="blank"),
        pytest.param({"type": "user"}, "nobody", id="no message"),
    ],
)
def test_nobody_typed_it(entry: dict[str, Any], author: str):
    """
    Structure decides, and of text only the client's own marker at the beginning.
    """
    assert author_of(entry) == author


def test_the_dispatching_agent_speaks_in_a_subagents_file():
    """
    There a coordinator's message is a request like the first one.
    """
    assert author_of(user("go on", origin={"kind": "coordinator"}), subagent=True) == "person"


@pytest.mark.parametrize(
    ("attachment", "author"),
    [
        pytest.param({"prompt": "also x", "commandMode": "prompt", "origin": HUMAN}, "person", id="typed"),
        pytest.param({"prompt": [{"type": "text", "text": "x"}], "commandMode": "prompt"}, "person", id="old, blocks"),
        pytest.param({"prompt": "x"}, "person", id="no mode"),
        pytest.param({"prompt": "/review", "commandMode": "prompt"}, "person", id="slash command"),
        pytest.param({"prompt": "x", "commandMode": "task-notification"}, "notification", id="notification by mode"),
        pytest.param({"prompt": "<task-notification>x"}, "notification", id="notification by marker"),
        pytest.param({"prompt": "x", "commandMode": "prompt", "origin": {"kind": "peer"}}, "nobody", id="peer"),
        pytest.param({"prompt": "ls", "commandMode": "bash"}, "nobody", id="shell mode"),
        pytest.param({"prompt": "x", "commandMode": "prompt", "isMeta": True}, "nobody", id="meta"),
        pytest.param({"prompt": ""}, "nobody", id="empty"),
        pytest.param({}, "nobody", id="nothing"),
    ],
)
def test_who_wrote_what_was_queued(attachment: dict[str, Any], author: str):
    """
    A prompt typed while the agent works is an attachment; so is a notification delivered meanwhile.
    """
    assert queued_author(attachment) == author


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(" fix it \n", "fix it", id="string"),
        pytest.param(
            "<command-message>plan is running…</command-message>\n<command-name>/plan</command-name>\n"
            "<command-args>the\nrelease</command-args>",
            "/plan the\nrelease",
            id="slash command",
        ),
        pytest.param("<command-name>clear</command-name>", "/clear", id="a command without its slash"),
        pytest.param("<command-message>review</command-message>", "/review", id="a command without its name"),
        pytest.param(
            [{"type": "text", "text": "like this"}, {"type": "image", "source": {"data": "iVBOR"}}],
            "like this\n[image]",
            id="image",
        ),
        pytest.param([{"type": "image"}, {"type": "image"}], "[2 images]", id="images alone"),
        pytest.param(
            [{"type": "text", "text": "<ide_selection>x</ide_selection>"}, {"type": "text", "text": "why?"}],
            "why?",
            id="what the editor adds",
        ),
        pytest.param(None, "", id="nothing"),
    ],
)
def test_the_text_of_a_prompt(content: object, text: str):
    """
    Images are named and never carried; a slash command reads as it was typed.
    """
    assert prompt_text(content) == text
