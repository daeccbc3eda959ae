"""
The web page in a real Chromium, from a real service.

Set TURNGATE_TEST_CHROMIUM to the binary; `tests/lab/install-chromium` prints one.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from turngate.costing.ledger import Ledger

from ...stopgate.serve_process import Person
from ..million_calls import CALLS
from ..million_calls import fill as fill_with_million
from .a_ledger import NOW, PARSER, SHOP, a_decision, fill, fill_with_commands, fill_with_hostile, open_ledger

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_CHROMIUM = os.environ.get("TURNGATE_TEST_CHROMIUM", "")
pytestmark = pytest.mark.skipif(not _CHROMIUM, reason="needs Chromium (TURNGATE_TEST_CHROMIUM)")

PATIENCE_MS = 20_000
ALL = "span=dates&since=2026-10-01&until=2026-11-30&tz=UTC"
"""The days of the ledger, whatever day it is."""


class Site(NamedTuple):
    """
    A person with a service, and the address that lets a browser in.
    """

    person: Person
    origin: str

    def ledger(self) -> Ledger:
        return open_ledger(self.person.state)

    def entrance(self) -> str:
        said = self.person.run("dashboard")
        assert said.code == 0, said.err
        return said.out.strip()


Serve = Callable[[Callable[[Ledger], None]], Site]


@pytest.fixture(scope="module", name="browser")
def _browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-background-networking", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture(name="serve")
def _serve(tmp_path: Path) -> Iterator[Serve]:
    from contextlib import ExitStack

    with ExitStack() as running:

        def serve(fill_in: Callable[[Ledger], None]) -> Site:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            person = Person(
                tmp_path / "home", TURNGATE_SERVICE_HTTP_PORT=str(port), TURNGATE_BUDGET_USD_PER_DAY="0.10", TZ="UTC"
            )
            person.state.mkdir(mode=0o700)
            site = Site(person, f"http://127.0.0.1:{port}")
            with site.ledger().database as store:
                fill_in(Ledger(store))
            running.enter_context(person.serving())
            return site

        yield serve


class Visit(NamedTuple):
    """
    A page that is open, and what the browser complained about.
    """

    page: Page
    complaints: list[str]

    def go(self, address: str) -> None:
        self.page.goto(address)
        self.page.wait_for_load_state()


@pytest.fixture(name="visit")
def _visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    contexts: list[BrowserContext] = []

    def visit(site: Site, **options: object) -> Visit:
        context = browser.new_context(**options)  # pyright: ignore[reportArgumentType]
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        seen = Visit(page, [])
        page.on("console", lambda said: seen.complaints.append(said.text))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.goto(site.entrance())
        page.wait_for_url(f"{site.origin}/")
        return seen

    yield visit
    for context in contexts:
        context.close()


def _drawn(page: Page) -> int:
    page.wait_for_function("document.querySelectorAll('.plot .main-svg').length > 0")
    return page.locator(".plot:has(.main-svg)").count()


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize(("scheme", "colour"), [("light", "rgb(29, 35, 48)"), ("dark", "rgb(228, 231, 236)")])
def test_the_page_is_drawn_in_every_width_and_theme(
    serve: Serve, visit: Callable[..., Visit], width: int, scheme: str, colour: str
) -> None:
    """
    All seven plots, nothing wider than the screen, in the theme's colours, and the browser has nothing to complain about.
    """
    seen = visit(serve(fill), color_scheme=scheme, viewport={"width": width, "height": 900})
    seen.go(f"{seen.page.url}?{ALL}")

    assert _drawn(seen.page) == 7
    assert seen.page.evaluate("document.documentElement.scrollWidth") == width
    assert seen.page.locator("#plot-spend .xtick text").first.evaluate("one => getComputedStyle(one).fill") == colour
    assert seen.complaints == []


def test_an_empty_ledger_has_a_page_that_waits(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    It says what will come, and shows the first decision by itself.
    """
    site = serve(lambda _ledger: None)
    seen = visit(site)
    told = seen.page.get_by_text("The first stop that the hook sees").count()
    with site.ledger().database as store:
        a_decision(Ledger(store), 1, "pass_judge_error", detail="the first of all", at=NOW)
    seen.go(f"{site.origin}/?{ALL}")
    with site.ledger().database as store:
        a_decision(Ledger(store), 2, "pass_judge_error", detail="the second one", at=NOW)
    seen.page.get_by_text("the second one").wait_for()

    assert told == 1
    assert seen.page.get_by_text("the first of all").count() == 1
    assert seen.complaints == []


def test_filters_are_chosen_and_stand_in_the_address(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    A choice is an address that can be passed on.
    """
    site = serve(fill)
    seen = visit(site)
    seen.go(f"{site.origin}/?{ALL}")
    seen.page.locator("select[name=project]").select_option(SHOP)
    seen.page.wait_for_url(lambda address: "project=" in address)
    listed = seen.page.locator("ol.turns li").count()
    seen.page.locator("select[name=span]").select_option("all")
    seen.page.wait_for_url(lambda address: "span=all" in address)
    seen.page.locator("select[name=project]").select_option("")
    seen.page.wait_for_url(lambda address: "project=" not in address)

    assert listed == 1
    assert seen.page.locator("ol.turns li").count() == 7
    assert "since=" not in seen.page.url
    assert seen.complaints == []


def test_a_verdict_is_marked_wrong_with_the_keyboard(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    From the list to the decision and its button without a pointer; the ledger has the label then.
    """
    site = serve(fill)
    seen = visit(site)
    seen.go(f"{site.origin}/?{ALL}&project={PARSER}")
    seen.page.locator("a[href='/turns/d2']").focus()
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url("**/turns/d2")
    seen.page.get_by_label("Why").fill("it ran elsewhere")
    seen.page.keyboard.press("Tab")
    seen.page.keyboard.press("Enter")
    seen.page.locator("#marked").wait_for()
    with site.ledger().database as store:
        labels = [(one.decision_id, one.label, one.note) for one in Ledger(store).labels()]
    seen.page.get_by_role("button", name="Take it back").click()
    seen.page.wait_for_function("!document.getElementById('marked')")

    assert labels == [("d2", "none", "it ran elsewhere")]
    with site.ledger().database as store:
        assert Ledger(store).labels() == []
    assert seen.complaints == []


def test_nothing_in_the_ledger_runs(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    Scripts in a reply, a reason, a project and a model are read, not run; the browser had nothing to forbid.
    """
    site = serve(fill_with_hostile)
    seen = visit(site)
    seen.go(f"{site.origin}/?{ALL}")
    drawn, title = _drawn(seen.page), seen.page.title()
    seen.page.locator("#plot-projects .bars path").first.hover(force=True)
    seen.go(f"{site.origin}/turns/d9")

    assert drawn == 7
    assert title == "turngate"
    assert seen.page.title().startswith("block_verdict")
    assert "document.title='owned'" in seen.page.locator("#reply").inner_text()
    assert seen.complaints == []


def test_the_policy_holds_where_escaping_would_fail(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    Even an element that got into the page runs nothing.
    """
    seen = visit(serve(fill))
    blocked = seen.page.evaluate(
        """() => new Promise((done) => {
            const seen = new Set();
            document.addEventListener("securitypolicyviolation", (event) => {
                seen.add(event.effectiveDirective);
                if (seen.size === 4) done(Array.from(seen).sort());
            });
            const script = document.createElement("script");
            script.textContent = "document.title = 'owned'";
            document.body.append(script);
            document.body.insertAdjacentHTML("beforeend", `<img src=x onerror="document.title='owned'">
                <p style="color: red">x</p><iframe src="https://evil.example"></iframe>`);
        })"""
    )

    assert blocked == ["frame-src", "script-src-attr", "script-src-elem", "style-src-attr"]
    assert seen.page.title() == "turngate"


def test_the_page_says_when_the_service_is_gone(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    Old figures are not passed off as new ones.
    """
    site = serve(fill)
    seen = visit(site)
    site.person.run("stop")
    seen.page.get_by_text("the service is gone").wait_for()

    assert seen.page.locator("#state.gone").count() == 1


def test_a_link_from_another_site_shows_nothing(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    A browser does not send the cookie where a page of another origin leads here.
    """
    site = serve(fill)
    seen = visit(site)
    seen.page.route(
        "http://evil.example/",
        lambda route: route.fulfill(body=f"<a href='{site.origin}/'>go</a>", content_type="text/html"),
    )
    seen.go("http://evil.example/")
    seen.page.get_by_text("go").click()
    seen.page.wait_for_url(f"{site.origin}/")

    assert "turngate dashboard" in seen.page.inner_text("body")
    assert seen.page.locator("#turns").count() == 0


def test_a_ledger_of_a_million_calls_is_shown_and_filtered(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    Each page is there, a filter gives what the ledger has of a project, and the browser has nothing to complain about.
    """
    site = serve(lambda ledger: fill_with_million(Path(ledger.database.path), datetime.now(UTC)))
    seen = visit(site)
    seen.page.set_default_timeout(3 * PATIENCE_MS)
    drawn = [_drawn(seen.page)]
    seen.page.locator("select[name=span]").select_option("30d")
    seen.page.wait_for_url("**/?span=30d")
    calls = [_calls(seen.page)]
    drawn.append(_drawn(seen.page))
    seen.page.locator("select[name=project]").select_option("/home/me/project7")
    seen.page.wait_for_url("**/?span=30d&project=**")
    calls.append(_calls(seen.page))
    projects = set(seen.page.locator("ol.turns .project").all_inner_texts())
    seen.page.locator("ol.turns a").first.click()
    seen.page.wait_for_url("**/turns/d*")

    first = f"{datetime.now(UTC) - timedelta(days=29):%Y-%m-%d}"
    with site.ledger().database as store:
        ((of_all, of_project),) = store.rows(
            "SELECT COUNT(*), SUM(project = '/home/me/project7') FROM calls WHERE at >= ?", (first,)
        )
    assert drawn == [7, 7]
    assert calls == [of_all, of_project]
    assert of_all > CALLS / 4
    assert projects == {"project7"}
    assert seen.page.get_by_text("/home/me/project7").count() == 1
    assert seen.complaints == []


def _calls(page: Page) -> int:
    return int((page.locator("#table-spend tbody tr td").first.text_content() or "").replace(",", ""))


def test_commands_that_were_let_through_do_not_drown_the_rest(serve: Serve, visit: Callable[..., Visit]) -> None:
    """
    Thousands of them are neither in the list nor in the plot, and both say how many there are.
    """
    site = serve(fill_with_commands)
    seen = visit(site)
    seen.go(f"{site.origin}/?{ALL}")
    _drawn(seen.page)

    assert seen.page.locator("ol.turns li").count() == 7
    assert seen.page.get_by_text("Not listed: 2,000 commands that the jobs check let through").count() == 1
    assert seen.page.get_by_text("and 2,000 commands let through").count() == 1
    assert "jobs_pass" not in "".join(seen.page.locator("#plot-outcomes .ytick text").all_text_contents())
    assert seen.complaints == []
