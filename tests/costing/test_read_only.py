"""
A ledger that cannot be written, for a process that may not ignore modes as root may.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from turngate.costing.database import FILE_NAME, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.schema import SCHEMA

from ..stopgate.serve_process import TURNGATE
from .ledger_lines import a_call

WITHOUT_POWERS: Sequence[str] = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all") if os.geteuid() == 0 else ()
)
pytestmark = pytest.mark.skipif(
    bool(WITHOUT_POWERS) and shutil.which("setpriv") is None,
    reason="root needs setpriv (util-linux) to be refused anything",
)


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Iterator[Path]:
    """
    The folder of a ledger with one call, which is closed.
    """
    folder = tmp_path / "st?te %41"
    with open_database(folder) as store:
        a_call(Ledger(store), "0.25")
    yield folder
    folder.chmod(0o700)


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "TURNGATE_STATE_DIR": str(folder), "TZ": "UTC"}
    return subprocess.run(
        (*WITHOUT_POWERS, *TURNGATE, *arguments), env=environ, capture_output=True, text=True, timeout=60, check=False
    )


def close(folder: Path, mode: int = 0o400) -> None:
    (folder / FILE_NAME).chmod(mode)
    folder.chmod(0o500)


READING = (
    ("cost", "--json"),
    ("cost", "--by", "session"),
    ("log",),
    ("export", "--format", "jsonl", "--what", "calls"),
)


@pytest.mark.parametrize("mode", [0o400, 0o600], ids=["file-and-folder", "folder-alone"])
@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_what_cannot_be_written_can_be_read(folder: Path, arguments: Sequence[str], mode: int) -> None:
    """
    The answer is that of the ledger that can be, and no file comes or changes.
    """
    right = run(folder, *arguments)
    close(folder, mode)
    before = [(file.name, file.read_bytes()) for file in sorted(folder.iterdir())]

    found = run(folder, *arguments)

    assert (right.returncode, right.stderr) == (0, "")
    assert (found.returncode, found.stderr, found.stdout) == (0, "", right.stdout)
    assert [(file.name, file.read_bytes()) for file in sorted(folder.iterdir())] == before


def test_lines_that_are_not_in_the_file_yet_are_read_too(folder: Path) -> None:
    """
    Beside an owner that has it open: what was written last stands in the files beside it.
    """
    with open_database(folder, checkpoints=False) as store:
        a_call(Ledger(store), "0.5")
        close(folder)

        found = run(folder, "export", "--format", "jsonl", "--what", "calls")

    assert (found.returncode, found.stdout.count("\n")) == (0, 2)


def test_newer_lines_that_nobody_can_read_there_are_told(folder: Path) -> None:
    """
    A copy of the ledger and its log without the index between them: half of it is no answer.
    """
    copy = folder.with_name("copy")
    copy.mkdir()
    with open_database(folder, checkpoints=False) as store:
        a_call(Ledger(store), "0.5")
        for name in (FILE_NAME, f"{FILE_NAME}-wal"):
            shutil.copy(folder / name, copy / name)
    close(copy)

    found = run(copy, "cost")
    copy.chmod(0o700)

    assert found.returncode == 2
    assert "its newest lines stand in a file beside it" in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (SCHEMA - 1, f"its schema is {SCHEMA - 1} and has to be {SCHEMA}"),
        (SCHEMA + 1, "is newer than this turngate knows"),
    ],
    ids=["older", "newer"],
)
def test_another_schema_is_told(folder: Path, version: int, says: str) -> None:
    """
    It cannot be brought up to date there.
    """
    with sqlite3.connect(folder / FILE_NAME) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    close(folder)

    found = run(folder, "log")

    assert (found.returncode, found.stdout) == (2, "")
    assert says in found.stderr
    assert found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("forget", "--session", "s"), ("prune", "--older-than", "1d"), ("cost", "reprice")], ids=" ".join
)
def test_what_has_to_write_says_in_one_line_that_it_cannot(folder: Path, arguments: Sequence[str]) -> None:
    """
    The ledger stays as it is.
    """
    with open_database(folder) as store, store.write() as transaction:
        transaction.execute(
            'UPDATE calls SET raw_usage = \'{"input_tokens": 1, "output_tokens": 1}\', model = ?',
            ("claude-sonnet-5-5",),
        )
    close(folder)

    found = run(folder, *arguments)

    assert (found.returncode, found.stdout) == (2, "")
    assert "readonly database" in found.stderr
    assert found.stderr.count("\n") == 1


def test_a_file_that_cannot_be_read_is_one_line(folder: Path) -> None:
    """
    Nor is anything made of it.
    """
    close(folder, 0o000)

    found = run(folder, "log")

    assert (found.returncode, found.stdout) == (2, "")
    assert "unable to open database file" in found.stderr
    assert found.stderr.count("\n") == 1
