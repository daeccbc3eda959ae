"""
The places that a ledger can be kept in: a file, and a PostgreSQL where one is given.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
import pytest

from turngate.costing.opening import open_ledger_store
from turngate.costing.store import Store

SERVER: Final = os.environ.get("TURNGATE_TEST_POSTGRES", "")

needs_postgres = pytest.mark.skipif(
    not SERVER, reason="needs a PostgreSQL: TURNGATE_TEST_POSTGRES=$(tests/costing/start-postgres)"
)
BOTH = [pytest.param("sqlite", id="sqlite"), pytest.param("postgres", id="postgres", marks=needs_postgres)]


class Place(NamedTuple):
    """
    Where a store is: a folder, and a URL for PostgreSQL.
    """

    folder: str
    url: str = ""

    def open(self, busy_timeout_s: float = 1.0) -> Store:
        return open_ledger_store(self.folder, self.url, busy_timeout_s=busy_timeout_s)


@contextmanager
def a_place(kind: str, folder: Path) -> Generator[Place]:
    """
    Give a place of its own, and clean it up.
    """
    if kind == "sqlite":
        yield Place(str(folder))
        return

    with a_schema(SERVER) as url:
        yield Place(str(folder), url)


@contextmanager
def a_schema(server: str) -> Generator[str]:
    """
    Give the URL of a schema of its own in a server's database.
    """
    name = f"test_{uuid.uuid4().hex}"
    administer(server, f"CREATE SCHEMA {name}")
    try:
        yield f"{server}?options=-csearch_path%3D{name}"
    finally:
        administer(server, f"DROP SCHEMA {name} CASCADE")


def administer(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.encode())
