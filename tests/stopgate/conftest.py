"""
A user of the hook, and the endpoint that it asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from turngate.judge.scripted_api import ScriptedMessagesApi

from .gate_stage import Gate
from .hook_runner import Hook


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    """
    A user with a home and a state directory of their own, and no key.
    """
    return Hook(tmp_path)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """
    A folder with a short path: that of a socket has 107 bytes at most.
    """
    with TemporaryDirectory(prefix="turngate-") as folder:
        yield Path(folder)


@pytest.fixture
def api() -> Iterator[ScriptedMessagesApi]:
    """
    An endpoint on loopback.
    """
    with ScriptedMessagesApi() as server:
        yield server


@pytest.fixture(name="gate")
def make_gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate(tmp_path)
    yield gate
    gate.database.close()
