"""
Files that are read whole, and written whole or not at all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from turngate.costing.whole_file import NO_FILE, read_file, whole_file


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def put(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


@pytest.mark.parametrize("place", ["fifo", "folder", "link-to-fifo", "socket"])
def test_what_is_no_file_stays(folder: Path, place: str) -> None:
    """
    It is neither read, nor written, nor replaced, and nothing is left beside it.
    """
    import socket

    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    (folder / "link-to-fifo").symlink_to("fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "socket"))
    before = {path.name: path.lstat().st_ino for path in folder.iterdir()}

    with pytest.raises(OSError, match=NO_FILE):
        put(folder / place, b"text")
    with pytest.raises(OSError, match=f"{NO_FILE}|{os.strerror(errno.ENXIO)}|{os.strerror(errno.EISDIR)}"):
        read_file(folder / place)

    assert {path.name: path.lstat().st_ino for path in folder.iterdir()} == before


def test_through_a_link_its_target_is_written(folder: Path) -> None:
    """
    There already or not; the link stays one.
    """
    link, target = folder / "link", folder / "target"
    link.symlink_to("target")

    for content in (b"first", b"second"):
        put(link, content)

        assert link.is_symlink()
        assert read_file(target) == content
        assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in folder.iterdir()) == ["link", "target"]


def test_what_fails_midway_changes_nothing(folder: Path) -> None:
    """
    What stood there before stays, and nothing is left beside it.
    """
    file = folder / "file"
    put(file, b"kept")

    def fail() -> None:
        with whole_file(file) as opened:
            opened.write(b"half")
            raise LookupError

    with pytest.raises(LookupError):
        fail()

    assert read_file(file) == b"kept"
    assert [*folder.iterdir()] == [file]


KILLED = """
import os, signal, sys
from pathlib import Path
from turngate.costing.whole_file import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_goes_with_the_next_one(folder: Path) -> None:
    """
    The part of one that is still being written stays, and so do other files.
    """
    file, written, other = folder / "a[1]*", folder / ".a[1]*.7.part", folder / ".a1x.7.part"
    killed = subprocess.run((sys.executable, "-c", KILLED, file), check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len([*folder.iterdir()]) == 1
    other.write_bytes(b"of another file")
    with written.open("wb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)

        put(file, b"whole")

    assert sorted(folder.iterdir()) == sorted([file, written, other])
    assert read_file(file) == b"whole"


def test_a_file_that_is_not_there_holds_nothing(folder: Path) -> None:
    """
    Which is no error.
    """
    assert read_file(folder / "none") is None
