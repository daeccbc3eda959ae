"""
The real `turngate-hook` process and a state that cannot be read or written: the stop passes.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from .hook_runner import (
    HELD,
    RUNNING_TASK,
    SCRIPT,
    Hook,
    assert_sound,
)


def a_file_in_its_place(hook: Hook) -> str:
    hook.state.write_text("a file")
    return str(hook.state)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(a_file_in_its_place, id="a-file"),
        pytest.param(lambda hook: f"{a_file_in_its_place(hook)}/state", id="under-a-file"),
        pytest.param(lambda _: "/proc/self/state", id="in-proc"),
        pytest.param(lambda _: "/dev/null", id="a-device"),
        pytest.param(lambda _: "/dev/full/state", id="under-a-device"),
        pytest.param(lambda _: "/" + "x" * 5_000, id="too-long"),
    ],
)
def test_a_state_directory_that_cannot_be_made_means_pass(hook: Hook, place: Callable[[Hook], str]) -> None:
    """
    What cannot be counted is not held, and one line says why.
    """
    ran = hook.run(HELD, environ={"TURNGATE_STATE_DIR": place(hook)})

    assert_sound(ran)
    assert ran.out == b""
    assert ran.err


@pytest.mark.parametrize("blocks", [0, 1, 8, 40])
def test_a_full_disk_means_pass(hook: Hook, blocks: int) -> None:
    """
    A store that can be written in part, or not at all, holds nothing that it could not count.
    """
    ran = hook.shell(HELD, f'ulimit -f {blocks}; exec "$@"')

    assert_sound(ran)
    assert ran.out == b""
    assert b"turngate.db" in ran.err


def test_a_full_file_system_means_pass(hook: Hook) -> None:
    """
    The same on a real file system without any room, mounted for this process alone.
    """
    hook.state.mkdir()
    mount = f"mount -t tmpfs -o size=16k none '{hook.state}'"
    if subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("this machine mounts nothing for a test")

    ran = hook.run(HELD, ("unshare", "-rm", "sh", "-c", f'{mount}; exec "$@"', "sh", SCRIPT))

    assert_sound(ran)
    assert ran.out == b""
    assert b"turngate.db" in ran.err


def truncated(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def with_sql(*statements: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)

    return damage


def a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.write_bytes(b"garbage" * 2000), id="garbage"),
        pytest.param(truncated, id="truncated"),
        pytest.param(with_sql("PRAGMA user_version = 99"), id="newer-schema"),
        pytest.param(with_sql("PRAGMA user_version = 0"), id="older-schema-than-its-tables"),
        pytest.param(with_sql("DROP TABLE turns"), id="a-table-is-missing"),
        pytest.param(with_sql("UPDATE holds SET named = '{'"), id="damaged-row"),
        pytest.param(a_directory, id="a-directory"),
        pytest.param(a_fifo, id="a-named-pipe"),
    ],
)
def test_a_damaged_store_means_pass(hook: Hook, damage: Callable[[Path], object]) -> None:
    """
    A count that cannot be read is not taken for zero: that would hold a turn without end.
    """
    path = hook.state / "turngate.db"
    assert hook.run(HELD).holds
    with_sql("PRAGMA wal_checkpoint(TRUNCATE)")(path)
    damage(path)

    ran = hook.run(HELD | {"background_tasks": [RUNNING_TASK | {"id": "b2"}]})

    assert_sound(ran)
    assert ran.out == b""
    assert ran.err


def test_an_empty_store_file_is_a_new_store(hook: Hook) -> None:
    """
    Zero bytes are what a first process leaves that was killed at once.
    """
    hook.state.mkdir()
    (hook.state / "turngate.db").touch()

    assert hook.run(HELD).holds
    assert hook.outcomes() == ["block_background"]


@pytest.mark.parametrize("lock", ["BEGIN IMMEDIATE", "PRAGMA locking_mode = EXCLUSIVE"])
def test_a_store_that_another_process_keeps_locked_means_pass(hook: Hook, lock: str) -> None:
    """
    The hook waits a bounded time for the other process, and ends without a hold that it could not count.
    """
    assert hook.run(HELD).holds
    with closing(sqlite3.connect(hook.state / "turngate.db", isolation_level=None)) as database:
        database.execute(lock)
        database.execute("INSERT INTO notices VALUES ('s', 'k', 't')")
        ran = hook.run(HELD | {"background_tasks": [RUNNING_TASK | {"id": "b2"}]})

    assert_sound(ran)
    assert ran.out == b""
    assert b"locked" in ran.err
    assert hook.outcomes() == ["block_background"]
