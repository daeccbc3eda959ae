"""
A store that could not be opened: each use of it fails for the same reason.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self

from .store import StoreError, Transaction


class ClosedStore:
    """
    Stands in for a store while there is none, so that what is counted on the way to it is counted all the same.
    """

    def __init__(self, reason: str) -> None:
        self.path: Final = reason

    @contextmanager
    def write(
        self,
        *,
        durable: bool = False,  # noqa: ARG002
        wait_s: float | None = None,  # noqa: ARG002
        alone: str = "",  # noqa: ARG002
    ) -> Generator[Transaction]:
        """
        Fail.
        """
        raise StoreError(self.path)
        yield

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:  # noqa: ARG002
        """
        Fail.
        """
        raise StoreError(self.path)

    def checkpoint(self) -> None:
        """
        There is nothing to keep up.
        """

    def is_lost(self) -> bool:
        """
        It never was.
        """
        return True

    def close(self) -> None:
        """
        Nothing is open.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
