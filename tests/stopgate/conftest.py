"""
A user of the hook, and the endpoint that it asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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
