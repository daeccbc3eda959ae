"""
What holds for every test: an environment without a key, a home of its own, and no address but loopback.
"""

from __future__ import annotations

import os
import socket
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("turngate", deadline=None, max_examples=60)
settings.load_profile("turngate")

_PRIVATE = ("TURNGATE_", "ANTHROPIC_", "CLAUDE", "XDG_")
_KEPT = ("TURNGATE_TEST_",)


def pytest_report_header() -> str:
    """
    Name the versions that results depend on.
    """
    names = ("anthropic", "genai-prices", "tenacity", "hypothesis")
    return "with " + ", ".join(f"{name} {version(name)}" for name in names)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """
    Print what tests measured (`record_property("figure", ...)`), also when they ran in other processes.
    """
    reports = [report for passed in ("passed", "failed") for report in terminalreporter.getreports(passed)]
    for report in reports:
        for name, value in getattr(report, "user_properties", ()):
            if name == "figure" and getattr(report, "when", "") == "call":
                terminalreporter.write_line(f"{report.nodeid.rpartition('::')[2]}: {value}")
    _print_faults(terminalreporter)


def _print_faults(terminalreporter: pytest.TerminalReporter) -> None:
    """
    Print how many of the injected faults (`record_property("fault", ...)`) were survived, and how many could not be injected here.
    """

    def faults(*categories: str) -> set[str]:
        reports = [report for category in categories for report in terminalreporter.getreports(category)]
        return {report.nodeid for report in reports if "fault" in dict(getattr(report, "user_properties", ()))}

    failed, skipped = faults("failed", "error"), faults("skipped")
    survived = faults("passed") - failed - skipped
    if survived or failed or skipped:
        not_here = f" ({len(skipped)} could not be injected here)" if skipped else ""
        terminalreporter.write_line(f"faults survived: {len(survived)} of {len(survived | failed)}{not_here}")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    Take the user's own settings, keys and home out of reach.
    """
    for name in list(os.environ):
        if name.startswith(_PRIVATE) and not name.startswith(_KEPT):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Refuse connections that leave this machine, so that no test can ever spend money.
    """
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and str(address[0]) not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise AssertionError(f"a test connects to {address!r}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
