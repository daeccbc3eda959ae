"""
What the tests of costing share.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turngate.costing.ledger import Ledger
from turngate.costing.store import Store

from .places import BOTH, Place, a_place


@pytest.fixture(params=BOTH)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """
    Give each of the places that a ledger can be kept in.
    """
    with a_place(request.param, tmp_path / "state") as found:
        yield found


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    with place.open(busy_timeout_s=10) as found:
        yield found


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return Ledger(store)
