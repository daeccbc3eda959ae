"""
Files that are read and written whole, and line by line.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from turngate.lab.errors import LabError
from turngate.lab.files import append_line, check_apart, read_whole, write_whole


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """
    What it leads to is written, there already or not.
    """
    link, target = tmp_path / "link", tmp_path / "far" / "file"
    link.symlink_to(target)

    for text in ("first", "second"):
        write_whole(link, text)

        assert link.is_symlink()
        assert target.read_text() == text
    assert [*target.parent.iterdir()] == [target]


@pytest.mark.parametrize("place", [".", "", "folder", "fifo", "file/below", "x" * 300])
def test_what_is_no_file_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """
    One line names it, and nothing is left behind.
    """
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    Path("folder").mkdir()
    Path("file").write_text("kept")
    os.mkfifo("fifo")

    with pytest.raises(LabError) as told:
        write_whole(Path(place), "text")

    assert str(told.value).startswith(f"{Path(place)}: cannot be written: ")
    assert sorted(path.name for path in inside.iterdir()) == ["fifo", "file", "folder"]
    assert Path("file").read_text() == "kept"


def test_a_line_that_fits_in_part_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """
    The system writes what there is room for and raises nothing, here by a limit on the file's size.
    """
    program = (
        "import resource, sys; from pathlib import Path; from turngate.lab.files import append_line\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60)); file = Path(sys.argv[1]); append_line(file, 'kept')\n"
        "append_line(file, 'x' * 200)"
    )
    file = tmp_path / "answers.jsonl"

    ran = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=False)

    assert "answers.jsonl: cannot be written: No space left on device" in ran.stderr
    assert file.read_text() == "kept\n"


@pytest.mark.parametrize("place", ["fifo", "folder", "/dev/zero"])
def test_what_is_no_file_is_neither_read_nor_added_to(tmp_path: Path, place: str) -> None:
    """
    At once: a FIFO is not waited for, and what never ends is not read. What is not there holds nothing.
    """
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()

    with pytest.raises(LabError, match="not readable: (no regular file|Is a directory)"):
        read_whole(tmp_path / place)
    with pytest.raises(LabError, match="cannot be written: (no regular file|Is a directory)"):
        append_line(tmp_path / place, "line")
    assert read_whole(tmp_path / "none") is None


def test_a_pipe_that_is_named_by_its_number_cannot_be_written() -> None:
    """
    As `/dev/stdout` is one in front of another program.
    """
    reads, writes = os.pipe()
    try:
        with pytest.raises(LabError, match="cannot be written: no regular file"):
            write_whole(Path(f"/dev/fd/{writes}"), "text")
    finally:
        os.close(reads)
        os.close(writes)


@pytest.mark.parametrize("name", ["file", "./file", "link", "hard"])
def test_a_file_that_is_read_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """
    Whatever name or link leads to it; a copy of it is another file, and so is one that is not there.
    """
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept")
    Path("copy").write_text("kept")
    Path("link").symlink_to("file")
    Path("hard").hardlink_to("file")

    with pytest.raises(LabError, match=r"is file itself, which is read: name another file"):
        check_apart(Path(name), Path("copy"), Path("file"))
    check_apart(Path("copy"), Path(name), Path("none"))
    check_apart(Path("none"), Path(name))


def test_a_line_waits_until_the_one_before_it_is_whole(tmp_path: Path) -> None:
    """
    Two processes that add lines leave neither a blank one nor a torn one.
    """
    file = tmp_path / "answers.jsonl"
    adding = threading.Thread(target=append_line, args=(file, "second"))
    with file.open("wb", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b"fir")
        adding.start()
        adding.join(timeout=0.2)
        other.write(b"st\n")
    adding.join()

    assert file.read_text() == "first\nsecond\n"
