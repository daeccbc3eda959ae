"""
A stage for each file of faults; each test here is one fault, and is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .service_stage import Stage


@pytest.fixture(scope="module", name="kept_stage")
def keep_a_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("faults"))
    yield stage
    stage.end()


@pytest.fixture
def stage(kept_stage: Stage) -> Stage:
    """
    A user whose service is running, with its SDK imported.
    """
    kept_stage.ready()
    return kept_stage


@pytest.fixture(autouse=True)
def counted(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """
    Let the end of the run count this fault.
    """
    record_property("fault", request.node.name)
