"""
The web page in a real Chromium, while the service is slow or gone: what it says of it, and that it says no more than it knows.

Set TURNGATE_TEST_CHROMIUM to the binary; `tests/lab/install-chromium` prints one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from ...stopgate.serve_process import Person

if TYPE_CHECKING:
    from subprocess import Popen

    from playwright.sync_api import Page, Route

_CHROMIUM = os.environ.get("TURNGATE_TEST_CHROMIUM", "")
pytestmark = pytest.mark.skipif(not _CHROMIUM, reason="needs Chromium (TURNGATE_TEST_CHROMIUM)")

PATIENCE_MS = 20_000


class Shown(NamedTuple):
    """
    A page whose clock is the test's, and the service behind it.
    """

    page: Page
    service: Popen[str]

    def says(self, text: str) -> None:
        """
        Let time go on until the page says so.
        """
        for _ in range(200):
            self.page.clock.run_for(1000)
            if text in (self.page.text_content("#state") or ""):
                return
        raise AssertionError(self.page.text_content("#state"))


@pytest.fixture(name="shown")
def _shown(tmp_path: Path) -> Iterator[Shown]:
    from playwright.sync_api import sync_playwright

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    person = Person(tmp_path / "home", TURNGATE_SERVICE_HTTP_PORT=str(port), TZ="UTC")
    flags = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
    with person.serving() as service, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=flags)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.clock.install()
        page.goto(person.run("dashboard").out.strip())
        page.wait_for_url(f"http://127.0.0.1:{port}/")
        page.wait_for_load_state()
        yield Shown(page, service)
        browser.close()


def test_a_page_that_waits_for_a_slow_sum_does_not_call_the_service_gone(shown: Shown) -> None:
    """
    It says that the service adds up, and shows the sums once they come.
    """
    held: list[Route] = []
    shown.page.route("**/live.json*", lambda route: held.append(route))
    shown.says("the service is adding up")

    assert "gone" not in (shown.page.get_attribute("#state", "class") or "")
    for route in held:
        route.continue_()
    shown.page.unroute("**/live.json*")
    shown.says("up to date")


def test_a_page_whose_service_has_ended_says_so(shown: Shown) -> None:
    """
    Nobody answers: the figures are out of date.
    """
    shown.service.terminate()
    shown.service.wait(PATIENCE_MS / 1000)
    shown.says("the service is gone")

    assert "gone" in (shown.page.get_attribute("#state", "class") or "")
