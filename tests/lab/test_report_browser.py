"""
A report's page in a real Chromium, from a file and without any network.

Set TURNGATE_TEST_CHROMIUM to the binary; `tests/lab/install-chromium` prints one.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

import pytest

from turngate.judge.loopback_server import LoopbackServer
from turngate.lab.cases import Case
from turngate.lab.reporting.figures import figures
from turngate.lab.reporting.page import page
from turngate.lab.reporting.report import report
from turngate.lab.runs import Answered

from .reported_runs import HOSTILE, Page, hostile_run
from .scored_runs import case, cases, half_right, run_of, says

_CHROMIUM = os.environ.get("TURNGATE_TEST_CHROMIUM", "")
pytestmark = pytest.mark.skipif(not _CHROMIUM, reason="needs Chromium (TURNGATE_TEST_CHROMIUM)")


class Seen(NamedTuple):
    """
    The page as it stands once its scripts have run.
    """

    html: str
    complaints: list[str]

    @property
    def shown(self) -> list[str]:
        """
        The cases that are not filtered away.
        """
        cards = [one.attributes for one in Page(self.html).all("details") if one.attributes.get("class") == "case"]
        return [card["data-case"] for card in cards if "hidden" not in card]

    @property
    def title(self) -> str:
        found = re.search(r"<title>(.*?)</title>", self.html)
        return found[1] if found else ""


Opened = Callable[..., Seen]


@pytest.fixture(name="opened")
def _opened(tmp_path: Path) -> Opened:
    def opened(html: str, *flags: str, **filters: str) -> Seen:
        file = tmp_path / "report.html"
        file.write_text(html)
        address = f"{file.as_uri()}#{urlencode(filters)}" if filters else file.as_uri()
        switches = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--window-size=1200,900")
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        done = subprocess.run(
            [_CHROMIUM, *switches, profile, *flags, "--virtual-time-budget=10000", "--dump-dom", address],
            capture_output=True,
            timeout=90,
            check=True,
        )
        said = done.stderr.decode(errors="replace").splitlines()
        return Seen(done.stdout.decode(), [line for line in said if "CONSOLE" in line])

    return opened


@pytest.fixture(scope="module", name="two_arms")
def _two_arms() -> str:
    """
    A holds six clean turns; B misses the claims of `c000` and of `low`, and has the rest right.
    """
    low = case(40, ["claim"], confidence="low", session="the session")
    given = [*cases(), low]

    def second(one: Case, repeat: int) -> Answered:
        missed = one.id in ("c000", low.id)
        return says(one, repeat, *(() if missed else one.labels or ()))

    return page(report([run_of(half_right, given), run_of(second, given)]))


FALSE_ALARMS = [f"c{number:03}" for number in range(16, 22)]


@pytest.mark.parametrize(
    ("filters", "shown"),
    [
        pytest.param({}, ["c000", *FALSE_ALARMS, "c040"], id="all"),
        pytest.param({"kind": "miss", "fault": "claim"}, ["c000", "c040"], id="kind-and-fault"),
        pytest.param({"arm": "A", "kind": "miss"}, [], id="of-the-same-arm"),
        pytest.param({"confidence": "sure", "arm": "B", "kind": "lost"}, ["c000"], id="confidence"),
        pytest.param({"session": "SESSION"}, ["c040"], id="session"),
        pytest.param({"text": "case 17: the parser"}, ["c017"], id="text"),
    ],
)
def test_the_filters_show_what_is_asked_for(
    opened: Opened, two_arms: str, filters: dict[str, str], shown: list[str]
) -> None:
    """
    Filters stand in the address; a case is shown where one of its disagreements fits all of them.
    """
    seen = opened(two_arms, **filters)

    assert seen.shown == shown
    assert f">{len(shown)} of 8 cases</output>" in seen.html
    assert seen.complaints == []


def test_all_plots_are_drawn(opened: Opened, two_arms: str) -> None:
    """
    Each plot is an SVG in its place, in the colours of the person's theme, and the browser has nothing to complain about.
    """
    light, dark = opened(two_arms), opened(two_arms, "--blink-settings=preferredColorScheme=0")
    plots = re.findall(r'<div id="plot-[^"]+"[^>]*>(.*?)</figure>', light.html, re.DOTALL)

    assert len(plots) >= 6
    assert all('class="main-svg"' in plot for plot in plots)
    assert not re.search(r"<figure[^>]* hidden", light.html)
    assert light.complaints == dark.complaints == []
    assert "fill: rgb(29, 35, 48)" in light.html
    assert "fill: rgb(228, 231, 236)" in dark.html


def test_no_text_of_a_case_is_run(opened: Opened, tmp_path: Path) -> None:
    """
    Scripts in turns, labels and answers are shown as text; the page keeps its title.
    """
    run = hostile_run(tmp_path / "run")
    html = page(report([run]))
    seen = opened(html)

    assert figures(report([run]))
    assert seen.title == "claude-sonnet-5-5 on cases.jsonl, dev split"
    assert len(seen.shown) == len(HOSTILE)
    assert "owned" in seen.html
    assert seen.complaints == []


def test_the_policy_holds_where_escaping_would_fail(opened: Opened, two_arms: str) -> None:
    """
    Even an element that got into the page runs nothing and fetches nothing.
    """
    fetched: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fetched.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with LoopbackServer(Server) as server:
        address = f"{server.url}/"
        injected = (
            "<script>document.title='owned'</script>"
            f"<img src='{address}img' onerror=\"document.title='owned'\"><link rel=stylesheet href='{address}css'>"
            f"<iframe src='{address}frame'></iframe><script src='{address}js'></script><main>"
        )
        seen = opened(two_arms.replace("<main>", injected))

    assert fetched == []
    assert seen.title == "2 runs on cases.jsonl, dev split"
    assert len(seen.complaints) >= 5
    assert len(seen.shown) == 8
