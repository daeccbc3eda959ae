"""
The stage for every scene.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .stage import Stage


@pytest.fixture(params=["in-process", "relay"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """
    An empty stage: once each stop is decided in the hook's own process, once by the service that the first hook starts.
    """
    with Stage(tmp_path, is_relayed=request.param == "relay") as stage:
        yield stage
