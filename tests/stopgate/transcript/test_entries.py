"""
One line of a transcript as entries.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.transcript.entries import is_broken, is_needed, read_line, texts_of

USER = b'{"type":"user","message":{"role":"user","content":"hi"}}'
REPLY = b'{"parentUuid":"a","type":"assistant","message":{"id":"m","content":[{"type":"text","text":"ok"}]}}'


def read(line: bytes) -> tuple[list[object], bool]:
    entries, damaged = read_line(line)
    return list(entries), damaged


def test_a_whole_line_is_one_entry():
    """
    Nothing is lost and nothing is counted.
    """
    assert read(USER) == ([json.loads(USER)], False)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"null", id="null"),
        pytest.param(b"123", id="number"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'"text"', id="string"),
        pytest.param(b"", id="empty"),
        pytest.param(USER[:-20], id="truncated"),
        pytest.param(b"\0" * 500, id="NULs"),
        pytest.param(b"[" * 100_000, id="nested"),
        pytest.param(b'{"a":' * 100_000, id="nested objects"),
        pytest.param(b'{"type":"user","message":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="closed but deep"),
        pytest.param("null".encode("utf-16"), id="UTF-16"),
        pytest.param(b"\xed\xa0\x80", id="a raw surrogate"),
    ],
)
def test_damage_gives_nothing_and_is_counted(line: bytes):
    """
    No exception, whatever the line is.
    """
    assert read(line) == ([], True)


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        pytest.param(USER + REPLY, [USER, REPLY], id="glued"),
        pytest.param(USER + b"  " + REPLY + USER, [USER, REPLY, USER], id="three glued"),
        pytest.param(USER[:-20] + REPLY, [REPLY], id="truncated in front"),
        pytest.param(REPLY[:40] + USER + REPLY, [USER, REPLY], id="truncated, then two"),
        pytest.param(REPLY + USER[:30], [REPLY], id="truncated behind"),
        pytest.param(b"\0" * 300 + USER, [USER], id="NULs in front"),
        pytest.param(USER[:10] + b"\0\0" + USER[10:], [USER], id="NULs inside"),
        pytest.param(b"\xef\xbb\xbf" + USER, None, id="BOM"),
    ],
)
def test_what_is_whole_in_a_damaged_line_is_recovered(line: bytes, whole: list[bytes] | None):
    """
    Damage costs what it hit and no more.
    """
    entries, damaged = read(line)

    assert entries == [json.loads(part) for part in (whole or [USER])]
    assert damaged is (whole is not None)


def test_a_part_of_a_truncated_entry_is_no_entry():
    """
    An object inside what was cut off looks whole and is none.
    """
    cut = b'{"type":"progress","data":{"message":{"type":"user","message":{"content":"x"}},"more":"y'

    assert read(cut + REPLY)[0] == [json.loads(REPLY)]


def test_images_are_left_out_before_anything_is_parsed():
    """
    No base64 is held or sent on.
    """
    line = json.dumps({"type": "user", "data": "A" * 5000}, separators=(",", ":")).encode()

    assert read(line) == ([{"type": "user", "data": ""}], False)


def test_invalid_utf8_inside_a_text_costs_a_character():
    """
    The entry is kept, with a replacement character.
    """
    assert read(b'{"type":"user","x":"a\xffb"}') == ([{"type": "user", "x": "a\ufffdb"}], False)


@given(st.binary(max_size=200))
def test_no_bytes_raise(line: bytes):
    """
    Any bytes are read or counted as damage.
    """
    entries, damaged = read_line(line)

    assert damaged or len(entries) == 1
    is_needed(line)
    is_broken(line)


@pytest.mark.parametrize("piece", [b'{"', b'{"a', b'{"type":"user",', b"{}", b'{"a":1', b'"{'])
def test_repairing_takes_time_in_proportion(piece: bytes):
    """
    A long line of beginnings is given up in steps that a count of decoder calls bounds, not retried from every one.
    """
    entries, damaged = read_line(piece * 100_000)

    assert damaged
    assert len(entries) in (0, 1_000)


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        pytest.param(USER, True, id="user"),
        pytest.param(b'{ "type" : "assistant" }', True, id="spaces"),
        pytest.param(b'{"type":"queue-operation","operation":"popAll"}', True, id="queue"),
        pytest.param(b'{"type":"attachment","attachment":{"type":"queued_command"}}', True, id="queued"),
        pytest.param(b'{"type":"attachment","attachment":{"type":"skill_listing"}}', False, id="other attachment"),
        pytest.param(b'{"type":"api-request-blob","x":"{\\"type\\":\\"user\\"}"}', False, id="quoted inside metadata"),
        pytest.param(b'{"type":"file-history-snapshot"}', False, id="snapshot"),
    ],
)
def test_metadata_is_told_from_entries_without_parsing(line: bytes, needed: bool):
    """
    Close to half of all lines are metadata.
    """
    assert is_needed(line) is needed


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        pytest.param("a", ["a"], id="string"),
        pytest.param([{"type": "text", "text": "a"}, {"type": "image"}, "b"], ["a", "b"], id="bare string in a list"),
        pytest.param(None, [], id="null"),
        pytest.param([{"type": "text", "text": None}, {"type": "text"}, 5, None], [], id="no text"),
        pytest.param({"type": "text", "text": "a"}, [], id="an object"),
    ],
)
def test_the_texts_of_any_content(content: object, texts: list[str]):
    """
    What is no text is left out.
    """
    assert texts_of(content) == texts
