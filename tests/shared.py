"""
Where the shared captures and recorded sessions lie, and the marker for tests that need them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_PLACE = Path(os.environ.get("TURNGATE_SHARED") or Path(__file__).resolve().parents[2] / "shared")

SHARED: Path | None = _PLACE if (_PLACE / "design.md").is_file() else None

needs_shared = pytest.mark.skipif(SHARED is None, reason="needs the folder of shared captures and recorded sessions")
