from __future__ import annotations

from pathlib import Path

import pytest

from .patient import Patient


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """
    A person with whom all is well.
    """
    return Patient(tmp_path)
