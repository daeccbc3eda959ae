"""
Lines of a file, newest first.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.transcript.lines import (
    BLOCK,
    HEAD,
    MOST_LINES,
    TAIL,
    Backwards,
    Overlong,
    Unopened,
    open_file,
)


def lines_of(path: Path, **limits: int) -> tuple[list[bytes], Backwards]:
    descriptor = open_file(str(path))
    try:
        backwards = Backwards(descriptor, **limits)
        return list(backwards), backwards
    finally:
        os.close(descriptor)


@given(data=st.binary(max_size=300), block=st.integers(1, 320))
def test_every_block_size_gives_the_lines_in_reverse(data: bytes, block: int, tmp_path_factory: pytest.TempPathFactory):
    """
    Where blocks begin and end changes nothing; empty lines are left out.
    """
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)

    expected = [line for line in data.split(b"\n")[::-1] if line]

    assert expected == lines_of(path, block=block)[0]


@pytest.mark.parametrize("length", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 1])
def test_a_line_at_the_edge_of_a_block_is_whole(length: int, tmp_path: Path):
    """
    A line that just fits, or just does not fit, a block is one line.
    """
    (tmp_path / "f").write_bytes(b"first\n" + b"x" * length + b"\nlast")

    assert lines_of(tmp_path / "f")[0] == [b"last", b"x" * length, b"first"]


def test_only_a_newline_ends_a_line(tmp_path: Path):
    """
    U+2028, U+0085, U+001C and carriage returns stand inside lines.
    """
    line = "a\u2028b\u0085c\x1cd\re".encode()
    (tmp_path / "f").write_bytes(line + b"\n" + line)

    assert lines_of(tmp_path / "f")[0] == [line, line]


@given(block=st.integers(1, 50), longest=st.integers(1, 60))
def test_a_line_over_the_limit_is_marked_whatever_the_block(
    block: int, longest: int, tmp_path_factory: pytest.TempPathFactory
):
    """
    A line that is too long is counted and given by its beginning; its neighbours are whole.
    """
    path = tmp_path_factory.getbasetemp() / "long"
    path.write_bytes(b"ab\n" + b"x" * 61 + b"\ncd")

    found, backwards = lines_of(path, block=block, longest=longest)

    assert backwards.skipped == 1 + 2 * (longest < 2)
    assert [bytes(line[:2]) for line in found] == [b"cd", b"xx", b"ab"]
    assert isinstance(found[1], Overlong)


def test_an_overlong_line_is_held_in_bounded_memory(tmp_path: Path):
    """
    Of a 20 MB line, the beginning is kept and no more.
    """
    (tmp_path / "f").write_bytes(b'{"type":"user"' + b"x" * 20_000_000 + b"\nlast")

    found, _ = lines_of(tmp_path / "f")

    assert [len(line) for line in found] == [4, HEAD]
    assert found[1].startswith(b'{"type":"user"')


@given(block=st.integers(1, 50))
def test_reading_ends_at_the_reach_and_says_so(block: int, tmp_path_factory: pytest.TempPathFactory):
    """
    Whatever the block, the same bytes are read, and a line cut by the end of the reach is not given.
    """
    path = tmp_path_factory.getbasetemp() / "far"
    path.write_bytes(b"far away\nnear\nhere")

    found, backwards = lines_of(path, block=block, reach=11)

    assert found == [b"here", b"near"]
    assert backwards.out_of_reach


def test_a_whole_file_within_reach_is_not_out_of_reach(tmp_path: Path):
    """
    To end exactly at the beginning of the file is to have read it all.
    """
    (tmp_path / "f").write_bytes(b"one\ntwo")

    found, backwards = lines_of(tmp_path / "f", reach=7)

    assert found == [b"two", b"one"]
    assert not backwards.out_of_reach


def test_what_is_written_meanwhile_is_not_read(tmp_path: Path):
    """
    The end is where it was when reading began.
    """
    path = tmp_path / "f"
    path.write_bytes(b"one\ntwo\n")
    descriptor = open_file(str(path))
    backwards = Backwards(descriptor)
    with path.open("ab") as file:
        file.write(b"three\n")

    assert list(backwards) == [b"two", b"one"]
    os.close(descriptor)


def test_reading_ends_after_very_many_lines(tmp_path: Path):
    """
    A file of line ends costs no more than its lines are worth.
    """
    path = tmp_path / "f"
    path.write_bytes(b"old\n" + b"\n" * (MOST_LINES + BLOCK) + b"new\n")
    descriptor = open_file(str(path))
    backwards = Backwards(descriptor)

    assert list(backwards) == [b"new"]
    assert backwards.out_of_reach
    os.close(descriptor)


def test_a_line_too_long_to_be_held_keeps_both_ends(tmp_path: Path):
    """
    Wherever the blocks fall.
    """
    path = tmp_path / "f"
    path.write_bytes(b"old\n" + b"a" * HEAD + b"b" * 50_000 + b"c" * TAIL + b"\nnew\n")
    descriptor = open_file(str(path))
    new, long, old = Backwards(descriptor, block=1_000, longest=70_000)

    assert (new, old) == (b"new", b"old")
    assert isinstance(long, Overlong)
    assert (long, long.tail) == (b"a" * HEAD, b"c" * TAIL)
    os.close(descriptor)


def test_reading_ends_where_the_file_cannot_be_read_on(tmp_path: Path):
    """
    Not all of a block is there: what lies further back is out of reach, and is glued to nothing.
    """
    path = tmp_path / "f"
    path.write_bytes(b"old\n" + b"x" * 8 + b"\nnew\n")
    descriptor = open_file(str(path))
    lines = iter(backwards := Backwards(descriptor, block=7))

    assert next(lines) == b"new"
    os.truncate(path, 6)

    assert list(lines) == []
    assert backwards.out_of_reach
    os.close(descriptor)


def test_a_disk_that_fails_in_the_middle_ends_reading(tmp_path: Path):
    """
    An older line is never glued to a newer one.
    """
    path = tmp_path / "f"
    path.write_bytes(b"old\n" + b"x" * 8 + b"\nnew\n")
    descriptor = open_file(str(path))
    lines = iter(backwards := Backwards(descriptor, block=7))

    assert next(lines) == b"new"
    os.close(descriptor)

    assert list(lines) == []
    assert backwards.out_of_reach


@pytest.mark.parametrize(
    ("make", "why"),
    [
        pytest.param(lambda folder: "", "no path", id="empty"),
        pytest.param(lambda folder: None, "no path", id="none"),
        pytest.param(lambda folder: 7, "no path", id="a number"),
        pytest.param(lambda folder: f"{folder}/absent", "No such file", id="missing"),
        pytest.param(lambda folder: f"{folder}/a\0b", "not a possible path", id="NUL"),
        pytest.param(lambda folder: f"{folder}/\ud800", "", id="lone surrogate"),
        pytest.param(lambda folder: "/" + "x" * 10_000, "name too long", id="10 kB"),
        pytest.param(str, "not a regular file", id="directory"),
        pytest.param(lambda folder: "/dev/null", "not a regular file", id="device"),
        pytest.param(lambda folder: f"{folder}/f/x", "Not a directory", id="below a file"),
    ],
)
def test_a_path_that_names_no_file_says_why(make: object, why: str, tmp_path: Path):
    """
    One short reason, and no other exception.
    """
    (tmp_path / "f").write_bytes(b"x")

    with pytest.raises(Unopened, match=f"(?i){why}"):
        open_file(make(str(tmp_path)))  # type: ignore[operator]


def test_a_fifo_is_refused_without_waiting_for_a_writer(tmp_path: Path):
    """
    Opening a FIFO would wait for ever.
    """
    os.mkfifo(tmp_path / "fifo")
    refused: list[str] = []

    def try_it() -> None:
        with pytest.raises(Unopened) as caught:
            open_file(str(tmp_path / "fifo"))
        refused.append(str(caught.value))

    thread = threading.Thread(target=try_it, daemon=True)
    thread.start()
    thread.join(10)

    assert refused == ["not a regular file"]


def test_a_tilde_is_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """
    As the environment has it.
    """
    (tmp_path / "f").write_bytes(b"x")
    monkeypatch.setenv("HOME", "/nowhere")

    with pytest.raises(Unopened):
        open_file("~/f")
    monkeypatch.setenv("HOME", str(tmp_path))
    os.close(open_file("~/f"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_says_so(tmp_path: Path):
    """
    No permission is a reason like any other.
    """
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "f").chmod(0)

    with pytest.raises(Unopened, match="Permission denied"):
        open_file(str(tmp_path / "f"))
