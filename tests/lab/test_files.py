"""
Files that are written whole.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from turngate.lab.errors import LabError
from turngate.lab.files import write_whole


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
