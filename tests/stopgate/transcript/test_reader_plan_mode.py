"""
Whether the turn ended in plan mode.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ..transcripts import Session
from .records import record_of


@pytest.mark.parametrize(
    ("write", "plan"),
    [
        pytest.param(lambda s: None, False, id="never"),
        pytest.param(lambda s: s.attachment("plan_mode"), True, id="entered"),
        pytest.param(lambda s: (s.attachment("plan_mode"), s.attachment("plan_mode_exit")), False, id="left"),
        pytest.param(
            lambda s: s.add({"type": "permission-mode", "permissionMode": "plan"}, chained=False), True, id="by mode"
        ),
        pytest.param(
            lambda s: (s.attachment("plan_mode"), s.runs("ExitPlanMode", "approved", plan="x")), False, id="approved"
        ),
        pytest.param(
            lambda s: (s.attachment("plan_mode"), s.runs("ExitPlanMode", "rejected", error=True, plan="x")),
            True,
            id="rejected",
        ),
    ],
)
def test_plan_mode_is_the_last_known_mode(write: object, plan: bool, tmp_path: Path):
    """
    The newest sign decides.
    """
    session = Session()
    session.prompt("go")
    write(session)  # type: ignore[operator]
    session.says("Here is the plan.")

    assert record_of(session, tmp_path).plan_mode is plan
