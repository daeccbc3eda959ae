"""
Why the last start failed: kept where it is ours to keep.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from turngate.stopgate.failed_start import FILE_NAME, forget_failure, has_failed_lately, last_failure, remember_failure

from .serve_process import Person


def test_a_failure_is_remembered_until_a_service_runs(tmp_path: Path) -> None:
    """
    In one line, which is gone afterwards.
    """
    folder = str(tmp_path)
    remember_failure(folder, "port 80\nis in use")
    before = (last_failure(folder), has_failed_lately(folder))
    forget_failure(folder)

    assert before == ("port 80 is in use", True)
    assert (last_failure(folder), has_failed_lately(folder)) == ("", False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_nothing_is_left_in_a_directory_of_another_user(tmp_path: Path) -> None:
    """
    Root who starts a service there leaves no file that its owner could not write.
    """
    person = Person(tmp_path / "home")
    person.state.mkdir()
    os.chown(person.state, 12345, 12345)
    remember_failure(str(person.state), "belongs to another user")
    said = person.run("dashboard")

    assert not (person.state / FILE_NAME).exists()
    assert list(person.state.iterdir()) == []
    assert said.code == 2
