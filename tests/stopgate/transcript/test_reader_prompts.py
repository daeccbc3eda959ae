"""
Which entry is the human prompt that a turn answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ..transcripts import Session, notification
from .records import record_of

NOBODY = {
    "tool result": lambda s: s.runs("Bash", "ok", command="ls"),
    "notification": lambda s: s.prompt(notification("b1"), prompt_id="p3", origin={"kind": "task-notification"}),
    "hook feedback": lambda s: s.held("no"),
    "command output": lambda s: s.prompt("<local-command-stdout>x</local-command-stdout>"),
    "compact summary": lambda s: s.prompt("The conversation so far", isCompactSummary=True),
    "peer": lambda s: s.prompt("hello", origin={"kind": "peer"}),
    "interrupt": lambda s: s.prompt([{"type": "text", "text": "[Request interrupted by user]"}]),
    "image note": lambda s: s.prompt([{"type": "text", "text": "[Image: source: /a.png]"}], isMeta=True),
    "skill": lambda s: s.prompt([{"type": "text", "text": "Base directory for this skill"}], isMeta=True),
    "sidechain": lambda s: s.prompt("dispatch", isSidechain=True),
}


@pytest.mark.parametrize("kind", NOBODY)
def test_the_human_prompt_is_found_behind_what_nobody_typed(kind: str, tmp_path: Path):
    """
    User entries are written by many; one of them is the prompt.
    """
    session = Session()
    session.prompt("the request", uuid="human")
    session.says("Working.", stop="tool_use")
    NOBODY[kind](session)
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert (record.human_id, record.request) == ("human", "the request")


def test_a_notification_starts_a_prompt_id_and_no_human_turn(tmp_path: Path):
    """
    All prompt ids under the human prompt are known, the prompt's own first.
    """
    session = Session()
    session.prompt("build it", prompt_id="p1", uuid="human")
    session.says("Building.")
    session.prompt(notification("b1"), prompt_id="p2", origin={"kind": "task-notification"})
    session.says("Built.")

    record = record_of(session, tmp_path)

    assert (record.human_id, record.prompt_ids) == ("human", ("p1", "p2"))


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param("also the README", id="string"),
        pytest.param([{"type": "text", "text": "also the README"}], id="blocks"),
    ],
)
def test_what_is_typed_meanwhile_is_a_later_prompt(prompt: object, tmp_path: Path):
    """
    It belongs to the turn and does not start one.
    """
    session = Session()
    session.prompt("go", uuid="human")
    session.runs("Bash", "ok", command="ls")
    session.queued(prompt, origin={"kind": "human"})
    session.queued("and the tests")
    session.queued("from a peer", origin={"kind": "peer"})
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert (record.human_id, record.request) == ("human", "go")
    assert record.later_prompts == ("also the README", "and the tests")


def test_no_image_is_carried(tmp_path: Path):
    """
    An image of any size leaves its name only.
    """
    image = {"type": "image", "source": {"type": "base64", "data": "iVBORw0K" * 1_000}}
    session = Session()
    session.prompt([{"type": "text", "text": "like this"}, image])
    session.queued([{"type": "text", "text": "or this"}, image])
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert (record.request, record.later_prompts) == ("like this\n[image]", ("or this\n[image]",))


COMMAND = "<command-message>plan</command-message>\n<command-name>/plan</command-name>\n<command-args>it</command-args>"


def test_a_slash_command_is_a_prompt(tmp_path: Path):
    """
    Its expansion is the client's and no request.
    """
    session = Session()
    session.prompt("first")
    session.prompt(COMMAND)
    session.prompt([{"type": "text", "text": "# How to plan"}], isMeta=True)
    session.says("The plan.")

    assert record_of(session, tmp_path).request == "/plan it"


def test_a_slash_command_answered_locally_is_none(tmp_path: Path):
    """
    Output before any reply shows that the agent never saw it.
    """
    session = Session()
    session.prompt("the request")
    session.says("Done.")
    session.prompt("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True)
    session.prompt("<command-name>/context</command-name>")
    session.prompt("<local-command-stdout>70 %</local-command-stdout>")

    assert record_of(session, tmp_path).request == "the request"


def test_local_output_of_a_newer_client(tmp_path: Path):
    """
    It is a system entry.
    """
    session = Session()
    session.prompt("the request")
    session.says("Done.")
    session.prompt("<command-name>/reload-plugins</command-name>")
    session.add(
        {"type": "system", "subtype": "local_command", "content": "<local-command-stdout>x</local-command-stdout>"}
    )

    assert record_of(session, tmp_path).request == "the request"


def test_local_output_belongs_to_the_nearest_command(tmp_path: Path):
    """
    A command that was sent before it, and not answered yet, stays the prompt.
    """
    session = Session()
    session.prompt("first")
    session.says("Done.")
    session.prompt("<command-name>/fix</command-name><command-args>12</command-args>")
    session.prompt("<command-name>/model</command-name>")
    session.prompt("<local-command-stdout>Set model</local-command-stdout>")
    session.says("Fixed.")

    assert record_of(session, tmp_path).request == "/fix 12"


def test_output_behind_a_reply_is_not_the_commands(tmp_path: Path):
    """
    A command that the agent answered stays the prompt, whatever local command follows.
    """
    session = Session()
    session.prompt(COMMAND)
    session.says("The plan.")
    session.prompt("<command-name>/cost</command-name>")
    session.prompt("<local-command-stdout>$1</local-command-stdout>")

    assert record_of(session, tmp_path).request == "/plan it"


def test_the_request_lies_before_a_compaction(tmp_path: Path):
    """
    The summary is a user entry, and nobody's prompt.
    """
    session = Session()
    session.prompt("earlier")
    session.says("Earlier reply.")
    session.prompt("the request")
    session.runs("Edit", "ok", file_path="a.py")
    session.add(
        {"type": "system", "subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": session.leaf}
    )
    session.prompt("This session is being continued", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    session.says("Done.")

    record = record_of(session, tmp_path)

    assert record.request == "the request"
    assert record.previous_reply == "Earlier reply."
    assert [call.name for call in record.calls] == ["Edit"]


def test_in_a_subagents_own_file_the_dispatch_is_the_request(tmp_path: Path):
    """
    There every entry is a sidechain.
    """
    session = Session(sidechain=True)
    session.prompt("Run the tests and report.")
    session.runs("Bash", "2 passed", command="pytest")
    session.says("They pass.")

    record = record_of(session, tmp_path, subagent=True)

    assert record.request == "Run the tests and report."
    assert [call.name for call in record.calls] == ["Bash"]
