"""
The tables: numbered migrations, one set for both databases.
"""

from __future__ import annotations

import os
from typing import Final

from .store import StoreError, one_line

SCHEMA: Final = 1
"""The number of the last migration; `schema_<number>.sql` holds each."""


def statements(number: int) -> list[str]:
    """
    Give the statements of a migration, as SQLite takes them.
    """
    with open(os.path.join(os.path.dirname(__file__), f"schema_{number}.sql"), encoding="utf-8") as file:
        return [statement for statement in file.read().split(";\n") if statement.strip()]


def newer_schema(path: str, found: int) -> StoreError:
    """
    Give the error of a store that a newer turngate has migrated.
    """
    return StoreError(f"{one_line(path)}: schema {found} is newer than this turngate knows ({SCHEMA}); update turngate")
