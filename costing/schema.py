"""
The tables: numbered migrations, one set for both databases, and what only one of them needs beside it.
"""

from __future__ import annotations

import os
from typing import Final, Literal

from .store import StoreError, one_line

SCHEMA: Final = 2
"""The number of the last migration; `schema_<number>.sql` holds each, and `schema_<number>_<kind>.sql` what one database needs more."""

Kind = Literal["sqlite", "postgres"]


def statements(number: int, kind: Kind) -> list[str]:
    """
    Give the statements of a migration; those for both databases are as SQLite takes them.
    """
    folder = os.path.dirname(__file__)
    paths = [os.path.join(folder, f"schema_{number}{which}.sql") for which in ("", f"_{kind}")]
    return [statement for path in paths if os.path.exists(path) for statement in _statements(path)]


def _statements(path: str) -> list[str]:
    with open(path, encoding="utf-8") as file:
        return [statement for statement in file.read().split(";\n") if statement.strip()]


def tables() -> list[str]:
    """
    Give the names of all tables.
    """
    written = "".join(text for number in range(1, SCHEMA + 1) for text in statements(number, "sqlite"))
    return [text.partition(" ")[0] for text in written.split("CREATE TABLE ")[1:]]


def newer_schema(path: str, found: int) -> StoreError:
    """
    Give the error of a store that a newer turngate has migrated.
    """
    return StoreError(f"{one_line(path)}: schema {found} is newer than this turngate knows ({SCHEMA}); update turngate")
