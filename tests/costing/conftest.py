"""
What the tests of costing share.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_database(tmp_path / "state") as database:
        yield Ledger(database)
