"""
Which entries are on the turn's own branch of the conversation.
"""

from __future__ import annotations

import json
from pathlib import Path

from ..transcripts import Session
from .records import record_of, two_turns


def test_a_branch_that_the_person_left_is_excluded(tmp_path: Path):
    """
    After a rewind the reply before the prompt is the one that it was rewound to.
    """
    session = Session()
    session.prompt("first")
    back = session.says("First reply.")
    session.prompt("second")
    left = session.says("A reply that the person discarded.")
    session.leaf = back
    session.prompt("third", uuid="human")
    session.says("Third reply.")
    session.calls("Bash", "late", command="rm -r x")
    session.lines[-1] = session.lines[-1].replace(b'"parentUuid":"u6"', f'"parentUuid":"{left}"'.encode())

    record = record_of(session, tmp_path)

    assert record.request == "third"
    assert record.previous_reply == "First reply."
    assert record.calls == ()
    assert record.last_message is not None
    assert record.last_message.text == "Third reply."


def test_an_entry_without_a_parent_is_on_the_branch(tmp_path: Path):
    """
    Where nothing is known, the order in the file decides.
    """
    session = two_turns()
    session.lines = [json.dumps({**json.loads(line), "parentUuid": None}).encode() for line in session.lines]

    record = record_of(session, tmp_path)

    assert (record.request, record.previous_reply, len(record.calls)) == ("second", "First reply.", 1)


def test_a_broken_chain_leaves_the_order_in_the_file(tmp_path: Path):
    """
    The prompt's parent stood on a damaged line.
    """
    session = Session()
    session.prompt("first")
    session.says("First reply.")
    session.add({"type": "system", "subtype": "turn_duration"})
    session.prompt("second")
    session.says("Second reply.")
    session.lines[2] = session.lines[2][:30]

    record = record_of(session, tmp_path)

    assert (record.request, record.previous_reply) == ("second", "First reply.")
