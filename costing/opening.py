"""
Where the ledger and the counts are kept: a file in the state directory, or the PostgreSQL that `ledger.url` names.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from .database import open_database
from .store import Store, StoreError, one_line

if TYPE_CHECKING:
    from .postgres import PostgresDatabase

_SCHEMES: Final = ("postgresql", "postgres")


def open_ledger_store(
    folder: str | os.PathLike[str], url: str = "", *, busy_timeout_s: float = 1.0, checkpoints: bool = True
) -> Store:
    """
    Open the store that `url` names; the SQLite file in `folder` where it is empty.

    PostgreSQL is connected to when it is first used, so that an owner can outlive a server that is away. There
    `busy_timeout_s` limits each statement too, reports among them. `checkpoints`: see `open_database`. Raises StoreError.
    """
    if not url:
        return open_database(folder, busy_timeout_s=busy_timeout_s, checkpoints=checkpoints)
    return _open_postgres(url, busy_timeout_s)


def _open_postgres(url: str, busy_timeout_s: float) -> PostgresDatabase:
    scheme, found, _ = url.partition("://")
    if scheme not in _SCHEMES:
        # Of a text without a scheme nothing is shown: it may begin with a password.
        name = f"unknown scheme {scheme!r}" if found and scheme.replace("+", "").isalnum() else "no URL"
        raise StoreError(f"ledger.url: {name}: expected postgresql://user@host/database, or nothing for SQLite")

    place = url.partition("://")[2].partition("/")[0]
    if place.count("@") > 1 or not url.isprintable():
        # What stands behind the first `@` would be taken for the host, and shown and looked up as one.
        raise StoreError("ledger.url: no URL: in a password, write @ as %40 and / as %2F")

    try:
        from .postgres import PostgresDatabase
    except ImportError as exc:
        raise StoreError(
            f"ledger.url: PostgreSQL needs psycopg ({one_line(str(exc))}): pip install 'psycopg[binary]'"
        ) from exc

    return PostgresDatabase(url, busy_timeout_s)
