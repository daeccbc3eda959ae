"""
The stage for every scene.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """
    An empty stage.
    """
    return Stage(tmp_path)
