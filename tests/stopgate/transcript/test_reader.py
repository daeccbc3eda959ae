"""
A turn as its transcript tells it, wherever that lies.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from turngate.stopgate.transcript import Record, read

from .records import record_of, two_turns


def test_a_plain_turn(tmp_path: Path):
    """
    The last human prompt, what followed it, and the reply before it.
    """
    record = record_of(two_turns(), tmp_path)

    assert record.problem == ""
    assert (record.human_id, record.prompt_ids) == ("human-2", ("p2",))
    assert record.request == "second"
    assert record.previous_reply == "First reply."
    assert record.last_message is not None
    assert (record.last_message.text, record.last_message.stop_reason) == ("Second reply.", "end_turn")
    assert record.final_reply == "Second reply."
    assert [call.name for call in record.calls] == ["Read"]
    assert record.client_version == "2.1.328"
    assert (record.damaged, record.skipped, record.out_of_reach) == (0, 0, False)


@pytest.mark.parametrize("path", ["", "/absent/file", "/dev/zero", "/", "/a\0b", "/" + "x" * 10_000, "~/absent"])
def test_a_path_without_a_transcript_gives_an_empty_record(path: str):
    """
    After /clear or a resume the path may name no file: the reason is kept, nothing is raised.
    """
    record = read(path)

    assert record.problem
    assert record._replace(problem="", path="") == Record()


def test_a_transcript_under_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """
    A leading tilde stands for the home.
    """
    two_turns().write(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert read("~/session.jsonl").request == "second"


def test_a_deleted_working_directory_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """
    Neither the working directory nor HOME is needed.
    """
    path = two_turns().write(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.delenv("HOME")

    assert read(path).request == "second"
    os.chdir(tmp_path)


def test_metadata_at_the_end_hides_nothing(tmp_path: Path):
    """
    Entries are read, not the last so many lines.
    """
    session = two_turns()
    session.metadata(500, size=2_000)

    assert record_of(session, tmp_path).request == "second"
