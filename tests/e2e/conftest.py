"""
The stage for every scene, and the figures that the scenes print.
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """
    Print what the scenes measured (`record_property("figure", ...)`), also when they ran in other processes.
    """
    reports = [report for passed in ("passed", "failed") for report in terminalreporter.getreports(passed)]
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == "figure" and getattr(report, "when", "") == "call":
                terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")
