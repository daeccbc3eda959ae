"""
Files that are written whole.
"""

from __future__ import annotations

import os
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
