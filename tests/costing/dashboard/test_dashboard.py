"""
The pages over a real ledger: the right figures, nothing that gets out of its place, and what a person says of a verdict.
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from turngate.costing.dashboard.dashboard import Dashboard
from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store
from turngate.costing.records import FindingLine
from turngate.costing.store import StoreError

from .a_ledger import (
    CLAIM,
    EVIL,
    HOSTILE,
    PARSER,
    SHOP,
    a_dashboard,
    a_decision,
    fill,
    fill_with_commands,
    fill_with_hostile,
)


class Page(HTMLParser):
    """
    A page as a browser reads it: its elements, its text, and the data of its script.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data = ""
        self._is_data = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_data = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._is_data = False

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data += data
        else:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(name="dashboard")
def _dashboard(ledger: Ledger) -> Dashboard:
    fill(ledger)
    return a_dashboard(ledger, usd_per_day="0.10")


def tiles(html: str) -> dict[str, tuple[str, str]]:
    """
    Give the tiles by name: value and what stands below.
    """
    found = re.findall(r'<div class="tile"><dt>(.*?)</dt><dd class="value">(.*?)</dd>(.*?)</div>', html, re.DOTALL)
    return {name: (value, " ".join(re.sub(r"<.*?>", " ", rest).split())) for name, value, rest in found}


def test_the_tiles_answer_for_the_last_seven_days(dashboard: Dashboard) -> None:
    """
    Six dollar cents for four calls, one of them of unknown cost; five stops, two held, one ended as the cap was spent.
    """
    found = tiles(dashboard.overview(""))

    assert found["spent"] == ("$0.0600", "and 1 call of unknown cost")
    assert found["stops"] == ("5", "2 held")
    assert found["cost per held stop"] == ("$0.0300", "2 held, none marked wrong")
    assert found["ended as the cap was spent"] == ("20.0%", "1 of 5 stops")
    assert found["read from the cache"] == ("75.0%", "of the tokens sent")
    assert found["the judge took"] == ("1.50 s", "95 % took less than 1.50 s")
    assert found["budget used today (UTC)"] == ("$0.0300", "30% of $0.10 a day, and 1 call of unknown cost")


@pytest.mark.parametrize(
    ("query", "spent", "stops"),
    [
        pytest.param("span=today", "$0.0300", "3", id="today"),
        pytest.param("span=24h", "$0.0500", "4", id="24-hours"),
        pytest.param("span=all", "$5.0600", "6", id="all"),
        pytest.param("span=month", "$0.0600", "5", id="month"),
        pytest.param("since=2026-11-28&until=2026-11-29", "$0.0300", "2", id="days"),
        pytest.param("since=2026-11-29", "$0.0500", "4", id="from-a-day"),
        pytest.param(f"project={PARSER}", "$0.0600", "4", id="project"),
        pytest.param(f"project={SHOP}", "unknown", "1", id="nothing-known"),
        pytest.param("project=-", "$0.0000", "0", id="no-project"),
        pytest.param("project=/nowhere", "$0.0000", "0", id="unknown-project"),
        pytest.param("span=today&tz=Pacific/Auckland", "$0.0300", "3", id="zone"),
    ],
)
def test_the_filters_in_the_address_count(dashboard: Dashboard, query: str, spent: str, stops: str) -> None:
    """
    Time and project are chosen by the address; an unknown cost is never nothing.
    """
    found = tiles(dashboard.overview(query))

    assert (found["spent"][0], found["stops"][0]) == (spent, stops)


def test_the_filters_are_shown_as_they_are(dashboard: Dashboard) -> None:
    """
    What is chosen is selected, and what cannot be read is named.
    """
    page = Page(dashboard.overview(f"span=nope&project={SHOP}&tz=Nowhere/City"))
    chosen = [option["value"] for option in page.all("option") if "selected" in option]

    assert chosen == ["7d", SHOP]
    assert "'nope'" in page.text
    assert "'Nowhere/City'" in page.text


def test_the_plots_hold_the_exact_sums(dashboard: Dashboard) -> None:
    """
    Days without a call are there too, and each model has its own amounts.
    """
    figures = json.loads(Page(dashboard.overview("")).data)
    spend = {trace["name"]: dict(zip(trace["x"], trace["y"], strict=True)) for trace in figures["spend"]["data"]}

    assert spend["claude-sonnet-5-5"] == {"2026-11-28": 0.01, "2026-11-29": 0.02, "2026-11-30": None}
    assert spend["claude-haiku-5-5"] == {"2026-11-28": None, "2026-11-29": None, "2026-11-30": 0.03}
    assert figures["spend"]["layout"]["shapes"][0]["y0"] == 0.1
    assert figures["cap"]["data"][0]["y"] == [0.0, 0.0, pytest.approx(1 / 3)]
    assert figures["projects"]["data"][0]["customdata"] == [PARSER]
    assert figures["per-block"]["data"][0]["y"] == [0.01, 0.02, None]


def test_every_plot_has_its_figures_as_a_table(dashboard: Dashboard) -> None:
    """
    Who cannot see a plot reads it, with all digits.
    """
    html = dashboard.overview("")
    page = Page(html)
    plots = {one["id"].removeprefix("plot-") for one in page.all("div") if (one.get("id") or "").startswith("plot-")}  # pyright: ignore[reportOptionalMemberAccess]
    tables = {one["id"].removeprefix("table-") for one in page.all("div") if (one.get("id") or "").startswith("table-")}  # pyright: ignore[reportOptionalMemberAccess]

    assert (
        plots
        == tables
        == set(json.loads(page.data))
        == {"spend", "tokens", "outcomes", "latency", "per-block", "cap", "projects"}
    )
    assert '<th scope="row">total</th><td>4</td><td>0.06</td><td>1</td>' in html
    assert '<th scope="row">cache read</th><td>12,000</td>' in html


def test_the_latest_decisions_are_listed_with_links(dashboard: Dashboard) -> None:
    """
    Newest first, each with its reason and a link to all that is known of it.
    """
    page = Page(dashboard.overview("span=all"))
    links = [one["href"] for one in page.all("a") if (one["href"] or "").startswith("/turns/")]

    assert links == [f"/turns/d{number}" for number in (6, 5, 4, 3, 2, 1, 7)]
    assert "claim: No test was run in this turn." in page.text
    assert "500 from the endpoint" in page.text


def test_an_empty_ledger_says_what_will_come(ledger: Ledger) -> None:
    """
    Nothing recorded is no row of zeros alone.
    """
    page = Page(a_dashboard(ledger).overview(""))

    assert "The first stop that the hook sees will be the first line here." in page.text
    assert set(json.loads(page.data).values()) == {None}


def test_a_ledger_that_cannot_be_read_is_named() -> None:
    """
    The page stands, and says why it shows nothing.
    """
    dashboard = a_dashboard(None, trouble="/state/turngate.db: disk I/O error")

    assert "disk I/O error" in Page(dashboard.overview("")).text
    assert "disk I/O error" in Page(dashboard.turn("d1", "") or "").text
    assert "disk I/O error" in json.loads(dashboard.live(""))["parts"]["notes"]
    assert dashboard.mark("d1", {}) == "/state/turngate.db: disk I/O error"


def test_what_has_not_changed_is_not_sent_again(ledger: Ledger, dashboard: Dashboard) -> None:
    """
    The page asks with the state it was made in, and gets sums and plots anew only where anything came to the ledger.
    """
    first = json.loads(dashboard.live(""))
    again = json.loads(dashboard.live(f"seen={first['state']}"))
    a_decision(ledger, 8)
    later = json.loads(dashboard.live(f"seen={first['state']}"))

    assert set(first) == {"parts", "state", "figures"}
    assert set(again) == {"parts", "state"}
    assert set(again["parts"]) == {"health"}
    assert "figures" in later
    assert "/turns/d8" in later["parts"]["turns"]


@pytest.mark.parametrize("way", ["overview", "project", "live", "turn"])
def test_no_text_gets_out_of_its_place(ledger: Ledger, way: str) -> None:
    """
    Scripts in replies, reasons, projects, models, labels and notes are shown and never become elements.
    """
    fill_with_hostile(ledger)
    dashboard = a_dashboard(ledger, last_error={"at": "x", "what": HOSTILE, "detail": HOSTILE}, breaker_open=[HOSTILE])
    html = {
        "overview": lambda: dashboard.overview(""),
        "project": lambda: dashboard.overview(f"project={EVIL}&tz={HOSTILE}&since={HOSTILE}&span={HOSTILE}"),
        "live": lambda: "".join(json.loads(dashboard.live(""))["parts"].values()),
        "turn": lambda: dashboard.turn("d9", "secret") or "",
    }[way]()
    page = Page(html)
    scripts = [one for one in page.all("script") if one.get("src") is None]

    assert all(one.get("type") == "application/json" for one in scripts)
    assert page.all("img") == []
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert not [name for _, attributes in page.tags for name in attributes if name == "style"]
    assert "document.title='owned'" in page.text
    assert "49" not in page.text.replace("7 * 7", "")
    assert "<" not in page.data


def test_a_plot_names_no_tag(ledger: Ledger) -> None:
    """
    Plotly reads tags in what it writes: names of models and projects hold none.
    """
    fill_with_hostile(ledger)
    figures = Page(a_dashboard(ledger).overview("")).data

    assert "&lt;" in figures
    assert "\\u003cscript" not in figures
    assert "\\u003cimg" not in figures


def test_a_turn_is_shown_with_all_that_is_known(ledger: Ledger, dashboard: Dashboard) -> None:
    """
    What was judged, the verdict, tokens, cost and the way to say that it was wrong.
    """
    ledger.record_turn(
        "d1",
        json.dumps({"request": "Fix it", "reply": "All tests pass.", "tool_calls": [{"line": "Edit: a.py -> ok"}]}),
    )
    page = Page(dashboard.turn("d1", "the-secret") or "")
    fields = {one.get("name"): one.get("value") for one in page.all("input")}

    for said in (
        "Fix it",
        "All tests pass.",
        "Edit: a.py -> ok",
        "No test was run in this turn.",
        "$0.0100",
        "4,000 in, 100 out",
    ):
        assert said in page.text
    assert fields["form"] == "the-secret"
    assert page.all("form")[0] == {"class": "mark card", "method": "post", "action": "/turns/d1/mark"}


@pytest.mark.parametrize(
    "recorded", ["", "x", "[]", "{}", '{"reply": 3, "facts": [], "tool_calls": {"a": 1}}', "[" * 10_000]
)
def test_a_damaged_turn_is_shown_as_far_as_it_goes(ledger: Ledger, dashboard: Dashboard, recorded: str) -> None:
    """
    Whatever stands in the store, the page of the decision stands.
    """
    ledger.record_turn("d1", recorded)

    assert "No test was run in this turn." in (dashboard.turn("d1", "") or "")


def test_there_is_no_page_of_what_is_not_there(dashboard: Dashboard) -> None:
    """
    An unknown id has no page and no mark.
    """
    assert dashboard.turn("d99", "") is None
    assert dashboard.mark("d99", {}) is None


def test_a_verdict_is_marked_wrong_and_the_mark_taken_back(ledger: Ledger, dashboard: Dashboard) -> None:
    """
    The label says that the reply has no fault; the hold does not count as upheld until it is taken back.
    """
    assert dashboard.mark("d1", {"do": ["wrong"], "note": ["it ran; hunter2"]}) == ""
    marked = [(one.decision_id, one.label, one.note) for one in ledger.labels()]
    tile = tiles(dashboard.overview(""))["cost per held stop"]

    assert marked == [("d1", "none", "it ran; [secret]")]
    assert tile == ("$0.0300", "1 marked wrong; $0.0600 per other")
    assert "Marked wrong on 2026-11-30 12:00" in (dashboard.turn("d1", "x") or "")

    assert dashboard.mark("d1", {"do": ["back"]}) == ""
    assert ledger.labels() == []
    assert tiles(dashboard.overview(""))["cost per held stop"][1] == "2 held, none marked wrong"


@pytest.mark.parametrize(
    ("number", "faults", "kept"),
    [
        pytest.param(1, ["claim"], "none", id="found-and-not-there"),
        pytest.param(1, ["cave"], "claim,cave", id="missed-beside-it"),
        pytest.param(3, ["promise", "cave"], "promise,cave", id="missed"),
    ],
)
def test_a_fault_that_is_named_is_what_the_verdict_is_wrong_about(
    ledger: Ledger, dashboard: Dashboard, number: int, faults: list[str], kept: str
) -> None:
    """
    Found and not there, or there and not found: as `turngate wrong --fault` has it.
    """
    assert dashboard.mark(f"d{number}", {"fault": faults}) == ""
    assert [one.label for one in ledger.labels()] == [kept]


@pytest.mark.parametrize(
    ("number", "faults", "problem"),
    [
        pytest.param(3, [], "choose the one that it missed", id="nothing-found"),
        pytest.param(5, [], "decided without a judge", id="no-judge"),
        pytest.param(1, [HOSTILE], "no such fault", id="unknown"),
    ],
)
def test_what_says_nothing_is_not_kept(
    ledger: Ledger, dashboard: Dashboard, number: int, faults: list[str], problem: str
) -> None:
    """
    A mark that tells nothing of the reply's faults is refused with the reason.
    """
    assert problem in (dashboard.mark(f"d{number}", {"fault": faults}) or "")
    assert ledger.labels() == []


def test_a_store_that_breaks_is_told_of(tmp_path: Path) -> None:
    """
    Where the database is gone in the middle, pages say so.
    """
    store = open_ledger_store(tmp_path)
    dashboard = a_dashboard(Ledger(store))
    store.close()
    with pytest.raises(StoreError) as error:
        store.rows("SELECT 1")

    assert str(error.value) in Page(dashboard.overview("")).text


def test_a_project_of_long_ago_is_looked_for_within_bounds(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where not all decisions were looked at, the page says so.
    """
    monkeypatch.setattr("turngate.costing.dashboard.latest.LOOKED_AT", 3)
    monkeypatch.setattr("turngate.costing.dashboard.dashboard.LOOKED_AT", 3)
    a_decision(ledger, 1, "block_verdict", project=SHOP, findings=(CLAIM, FindingLine("cave", "q", "r")))
    for number in range(2, 6):
        a_decision(ledger, number)
    text = Page(a_dashboard(ledger).overview(f"project={SHOP}")).text

    assert "Only the latest 3 decisions" in text
    assert "Only the latest" not in Page(a_dashboard(ledger).overview("")).text


def test_commands_that_were_let_through_are_told_of_and_not_listed(ledger: Ledger) -> None:
    """
    Thousands of them would leave no place for stops; the table of outcomes has them.
    """
    fill_with_commands(ledger)
    dashboard = a_dashboard(ledger)
    html = dashboard.overview("")
    page = Page(html)
    listed = [one["href"] for one in page.all("a") if (one["href"] or "").startswith("/turns/")]

    assert listed == [f"/turns/d{number}" for number in (6, 5, 4, 3, 2, 1)]
    assert "Not listed: 2,000 commands that the jobs check let through" in page.text
    assert "jobs_pass: command let through</th><td>2,000</td>" in html
    assert "jobs_pass" not in json.loads(page.data)["outcomes"]["data"][0]["y"]
    assert "Not listed" not in Page(dashboard.overview(f"project={SHOP}")).text
