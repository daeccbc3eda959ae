from __future__ import annotations

from pathlib import Path

import pytest

from .installed_home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """
    A person with a client, and nothing of ours.
    """
    return Home(tmp_path)
