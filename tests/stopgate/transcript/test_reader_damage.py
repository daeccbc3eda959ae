"""
What a damaged transcript still tells.
"""

from __future__ import annotations

from pathlib import Path

from ..transcripts import Session
from .records import record_of, two_turns


def damaged_session() -> Session:
    session = two_turns()
    whole = session.lines
    session.lines = [
        *whole[:3],
        b"null",
        b"[]",
        b"123",
        b"\0" * 4_000,
        b'{"type":"user"}',
        b'{"type":"user","message":{"role":"user","content":null}}',
        b'{"type":"assistant","message":{"id":"x","content":["bare",null,{"type":"text"}]}}',
        whole[3][:100] + whole[3] + whole[4],
        *whole[5:],
        whole[0][:50],
    ]
    return session


def test_damage_costs_what_it_hit_and_is_counted(tmp_path: Path):
    """
    Truncated, spliced, NULs, no objects, no message, null content, a bare string in a list.
    """
    record, whole = record_of(damaged_session(), tmp_path), record_of(two_turns(), tmp_path)

    assert record._replace(damaged=0) == whole
    assert record.damaged == 6


def test_lone_surrogates_break_nothing(tmp_path: Path):
    """
    They are kept in the record and leave through the evidence alone.
    """
    session = Session()
    session.prompt("half an emoji: \ud83d")
    session.runs("Bash", "tail \ude00", command="echo \udcff")
    session.says("Done \ud83d")

    assert record_of(session, tmp_path).request == "half an emoji: \ud83d"
