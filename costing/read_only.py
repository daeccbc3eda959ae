"""
The ledger's file where it cannot be written: on a read-only disk, or in a folder that takes no file beside it.
"""

# ruff: noqa: PTH113, PTH202
from __future__ import annotations

import os
import sqlite3
from typing import Final

from .database import FILE_NAME, Database, connected
from .opening import open_ledger_store
from .schema import SCHEMA, newer_schema
from .store import Store, StoreError, one_line

_WAYS: Final = ("mode=ro", "mode=ro&immutable=1")
"""The second makes no file beside the ledger and reads none: neither its newest lines nor what a writer does."""


def open_to_read(folder: str | os.PathLike[str], url: str = "", *, busy_timeout_s: float = 1.0) -> Store:
    """
    Open the store that is there, also where it cannot be written: there each write is a StoreError. See `open_ledger_store`.
    """
    path = os.path.join(os.fspath(folder), FILE_NAME)
    # SQLite makes files beside it.
    can_write = os.access(path, os.W_OK) and os.access(folder, os.W_OK)
    if url or can_write or not os.path.isfile(path):
        return open_ledger_store(folder, url, busy_timeout_s=busy_timeout_s)
    return _read_only(path, busy_timeout_s)


def _read_only(path: str, busy_timeout_s: float) -> Database:
    try:
        database, found = _opened(path, _WAYS[0], busy_timeout_s)
    except StoreError as error:
        if not isinstance(error.__cause__, sqlite3.OperationalError) or not os.access(path, os.R_OK):
            raise
        if _has_newer_lines(path):
            raise _useless(path, "its newest lines stand in a file beside it") from error
        database, found = _opened(path, _WAYS[1], busy_timeout_s)

    if found == SCHEMA:
        return database
    database.close()
    raise (
        newer_schema(path, found) if found > SCHEMA else _useless(path, f"its schema is {found} and has to be {SCHEMA}")
    )


def _opened(path: str, options: str, busy_timeout_s: float) -> tuple[Database, int]:
    database = Database(path, connected(path, busy_timeout_s, options), busy_timeout_s, options=options)
    try:
        return database, database.rows("PRAGMA user_version")[0][0]
    except BaseException:
        database.close()
        raise


def _has_newer_lines(path: str) -> bool:
    try:
        return os.path.getsize(path + "-wal") > 0
    except OSError:
        return False


def _useless(path: str, why: str) -> StoreError:
    return StoreError(
        f"{one_line(path)}: cannot be used where it cannot be written ({why}): copy its folder, and use the copy"
    )
