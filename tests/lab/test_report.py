"""
What stands in a report of runs, and that nothing in it can get out of its place.
"""

from __future__ import annotations

import base64
import json
import re
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.lab.cases import Case, new_case
from turngate.lab.errors import NotDecidable
from turngate.lab.reporting.disagreements import disagreements
from turngate.lab.reporting.document import Table
from turngate.lab.reporting.figures import figures
from turngate.lab.reporting.markdown import markdown, table_text
from turngate.lab.reporting.page import page
from turngate.lab.reporting.report import as_json, report
from turngate.lab.reporting.shown_text import quoted
from turngate.lab.runs import Answered, Run
from turngate.rubric.turn import Turn

from .reported_runs import HOSTILE, Page, hostile_run
from .scored_runs import cases, fails, half_right, right, run_of, says

SECRET = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ" * 3


@pytest.fixture(scope="module", name="hostile")
def _hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return hostile_run(tmp_path_factory.mktemp("hostile") / "run")


@pytest.fixture(scope="module", name="hostile_page")
def _hostile_page(hostile: Run) -> str:
    return page(report([hostile]))


def crashing(one: Case, repeat: int) -> Answered:
    return fails(one, repeat) if int(one.id[1:]) % 3 == 0 else right(one, repeat)


def claims_all(one: Case, repeat: int) -> Answered:
    return says(one, repeat, "claim")


def paid(one: Case, repeat: int) -> Answered:
    cost = {"cost_usd": "0.002", "latency_ms": 900}
    answer = half_right(one, repeat).model_dump(mode="json") | cost
    return Answered.model_validate_json(json.dumps(answer))


def test_disagreements_are_the_cases_named_otherwise_than_labelled() -> None:
    """
    A judge that finds all faults and names a claim in six clean turns gives six false alarms and no miss.
    """
    found = disagreements({"A": run_of(half_right)})

    assert [one.case for one in found] == [f"c{number:03}" for number in range(16, 22)]
    assert {tuple(one.marks) for one in found} == {(("A", "false alarm", "claim", 1.0),)}
    assert found[0].opinions[0].said[0][:3] == ("claim", "all tests pass", "No test ran.")


def test_a_fault_for_another_is_a_miss_and_a_false_alarm() -> None:
    """
    An opener that is called a claim is both, in one disagreement.
    """
    found = disagreements({"A": run_of(claims_all)})
    opener = next(one for one in found if one.labels == ("opener",))

    assert [mark[1:] for mark in opener.marks] == [("false alarm", "claim", 1.0), ("miss", "opener", 1.0)]


def test_repeats_that_differ_are_told_apart() -> None:
    """
    A false alarm in one of four repeats has that share, and says in which repeat it came.
    """

    def once(one: Case, repeat: int) -> Answered:
        return says(one, repeat, "claim") if repeat == 2 else says(one, repeat)

    [found] = disagreements({"A": run_of(once, cases()[-1:], repeats=4)})

    assert found.marks == (("A", "false alarm", "claim", 0.25),)
    assert found.opinions[0].said[0].repeats == (3,)
    assert (found.opinions[0].asked, found.opinions[0].readable, len(found.opinions[0].answers)) == (4, 4, 2)


def test_an_arm_is_set_beside_the_baseline() -> None:
    """
    What the second run has righter is gained, what it has less right is lost.
    """
    better = disagreements({"A": run_of(half_right), "B": run_of(right)})
    worse = disagreements({"A": run_of(right), "B": run_of(half_right)})

    assert {mark[:3] for one in better for mark in one.marks} == {
        ("A", "false alarm", "claim"),
        ("B", "gained", "claim"),
    }
    assert {mark[:3] for one in worse for mark in one.marks} == {("B", "false alarm", "claim"), ("B", "lost", "claim")}


def test_cases_without_labels_or_answers_are_no_disagreements() -> None:
    """
    What nobody has said, and what was never answered, agrees and disagrees with nothing.
    """
    unlabelled = [one.model_copy(update={"labels": None}) for one in cases()]

    assert disagreements({"A": run_of(claims_all, unlabelled)}) == []
    assert disagreements({"A": run_of(fails)}) == []


def test_the_confusion_counts_labels_and_names() -> None:
    """
    Counted by hand: 12 claims and 4 openers found, 6 of 24 clean turns called a claim.
    """
    found = report([run_of(half_right)]).arms[0].confusion

    assert found is not None
    assert found.columns == ("claim", "promise", "opener", "defer", "cave", "clean")
    assert {row.label: (row.cases, row.named) for row in found.rows if row.cases} == {
        "claim": (12, (12, 0, 0, 0, 0, 0)),
        "opener": (4, (0, 0, 4, 0, 0, 0)),
        "clean": (24, (6, 0, 0, 0, 0, 18)),
    }


def test_a_run_without_a_score_shows_no_figure() -> None:
    """
    With errors above 1 % the report says so in place of figures, and lists each of them.
    """
    found = report([run_of(crashing)])
    html, text = page(found), markdown(found)

    assert "no score: 14 of 40 questions have no verdict" in html
    assert "%" not in text.replace("(35.0%, at most 1 % may)", "").replace("95 %", "")
    assert html.count("<td>500: overloaded</td>") == 14 == text.count("| 500: overloaded |")
    assert 'id="plot-' not in html
    assert len(html) < 40_000
    data = as_json(found)
    assert (data["arms"][0]["score"], data["arms"][0]["confusion"], data["disagreements"]) == (None, None, [])
    assert data["arms"][0]["failures"][0] == {
        "case": "c000",
        "repeat": 1,
        "outcome": "error",
        "detail": "500: overloaded",
    }


def test_a_comparison_that_cannot_be_made_says_why() -> None:
    """
    A baseline that is right on all cases leaves no gain to be shown: the figures of both stand there, the comparison does not.
    """
    found = report([run_of(right), run_of(half_right)])

    assert found.comparisons[0].comparison is None
    assert "Not decidable: the baseline is at the maximum on all 40 cases" in page(found)
    assert found.arms[1].score is not None


def test_a_comparison_stands_with_its_verdict_and_its_rule() -> None:
    """
    The page, the Markdown and the JSON give the verdict of `lab compare`.
    """
    found = report([run_of(half_right), run_of(right)])
    verdict = as_json(found)["comparisons"][0]["comparison"]["verdict"]

    assert verdict == "better"
    assert "B is better: " in page(found)
    assert "B is better: " in markdown(found)
    assert "Else, and with fewer than 10 cases, not decidable." in markdown(found)


def test_runs_of_other_cases_are_refused() -> None:
    """
    Figures of different cases do not stand beside each other.
    """
    other = run_of(right, cases()[1:])

    with pytest.raises(NotDecidable, match="the case sets differ"):
        report([run_of(right), other._replace(manifest=other.manifest.model_copy(update={"cases_hash": "d" * 16}))])


@pytest.mark.parametrize("judge", [half_right, right, claims_all, paid], ids=lambda judge: judge.__name__)
def test_plotly_takes_the_plots(judge: Any) -> None:
    """
    Plotly's own schema knows every name and value of every plot.
    """
    import plotly.graph_objects as go

    for drawn in figures(report([run_of(judge), run_of(half_right, repeats=1), run_of(paid)])).values():
        go.Figure(drawn)  # raises at a name or value that it does not know


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(cases()[:12], id="claims-only"),
        pytest.param(cases()[-24:], id="clean-only"),
        pytest.param(cases()[:1], id="one-case"),
        pytest.param([one.model_copy(update={"session": "s"}) for one in cases()], id="one-session"),
        pytest.param([one.model_copy(update={"confidence": "low"}) for one in cases()], id="no-sure-case"),
        pytest.param([one.model_copy(update={"labels": None}) for one in cases()[1:]] + cases()[:1], id="one-label"),
    ],
)
@pytest.mark.parametrize("repeats", [1, 3])
def test_one_sided_cases_leave_figures_unknown(given: list[Case], repeats: int) -> None:
    """
    What such cases cannot tell stands as unknown, and all of the report can be written.
    """
    import plotly.graph_objects as go

    found = report([run_of(half_right, given, repeats), run_of(claims_all, given, repeats)])

    assert "unknown" in markdown(found)
    assert "nan" not in page(found).partition('id="plots"')[0].lower().split()
    json.dumps(as_json(found), allow_nan=False)
    for drawn in figures(found).values():
        go.Figure(drawn)


def test_names_of_faults_are_text_too() -> None:
    """
    A run's own list of faults may come from anywhere: in the page and in its plots such a name is no markup.
    """
    run = run_of(half_right)
    odd = "<img src=x onerror=alert(1)>"
    found = report([run._replace(manifest=run.manifest.model_copy(update={"faults": (*run.manifest.faults, odd)}))])

    assert "<img" not in page(found).replace(Page(page(found)).scripts[1], "")
    assert "<img" not in json.dumps(figures(found))


def test_the_plots_show_what_is_known() -> None:
    """
    Without costs there is no plot of cost against F1, and whiskers run to the ends of the interval.
    """
    unpriced = figures(report([run_of(half_right)]))
    priced = figures(report([run_of(paid)]))
    found = report([run_of(half_right)])
    score = found.arms[0].score
    assert score is not None
    interval = score.labelled.held.precision.clustered
    first = unpriced["marks-all"]["data"][0]

    assert "cost-f1" not in unpriced
    assert priced["cost-f1"]["data"][0]["x"] == [0.002]
    assert interval is not None
    assert first["x"][0] == pytest.approx(16 / 22)
    assert first["x"][0] + first["error_x"]["array"][0] == pytest.approx(interval.high)
    assert first["x"][0] - first["error_x"]["arrayminus"][0] == pytest.approx(interval.low)


def test_no_text_becomes_an_element_or_a_script(hostile_page: str) -> None:
    """
    Tags, quotes and ends of scripts in turns, labels, quotes and reasons stay text.
    """
    found = Page(hostile_page)

    assert len(found.scripts) == 3
    assert not any("document.title" in script for script in found.scripts)
    assert {element.tag for element in found.elements}.isdisjoint({"img", "iframe", "object", "embed", "link", "base"})
    assert not any(name.startswith("on") for element in found.elements for name in element.attributes)
    assert [element.tag for element in found.elements].count("h1") == 1
    assert any(HOSTILE[0] in text for text in found.texts)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202e]", hostile_page.replace(found.scripts[1], ""))


def test_elements_are_closed_in_order(hostile_page: str) -> None:
    """
    Each element is closed, and none before those within it.
    """
    alone = {"meta", "input", "br"}
    opened: list[str] = []
    for element in Page(hostile_page).elements:
        if element.tag.startswith("/"):
            assert opened.pop() == element.tag[1:]
        elif element.tag not in alone:
            opened.append(element.tag)

    assert opened == []


def test_the_policy_lets_run_the_two_scripts_alone(hostile_page: str) -> None:
    """
    The policy forbids the network, and names the hashes of Plotly and of the page's own script.
    """
    found = Page(hostile_page)
    [policy] = [meta.attributes["content"] for meta in found.all("meta") if "http-equiv" in meta.attributes]
    hashes = [base64.b64encode(sha256(script.encode()).digest()).decode() for script in found.scripts[1:]]

    assert policy.startswith("default-src 'none'; ")
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert "connect-src" not in policy
    assert "unsafe-inline" not in policy.partition("script-src ")[2].partition(";")[0]


def test_nothing_is_fetched(hostile_page: str) -> None:
    """
    No element of the page points anywhere but into the page.
    """
    places = [
        value
        for element in Page(hostile_page).elements
        for name, value in element.attributes.items()
        if name in {"src", "href", "action", "srcset", "data", "poster", "background"}
    ]

    assert places
    assert all(place.startswith("#") for place in places)


def test_the_page_can_be_read_without_scripts(hostile_page: str) -> None:
    """
    What scripts show at all is hidden until they do; all else stands there: tables, turns and reasons.
    """
    found = Page(hostile_page)

    assert all("hidden" in element.attributes for element in found.all("form") + found.all("figure"))
    assert not any("hidden" in element.attributes for element in found.all("details") + found.all("table"))
    assert sum(element.attributes.get("class") == "case" for element in found.all("details")) == len(HOSTILE)


def test_the_quote_is_marked_in_the_reply() -> None:
    """
    What the judge quoted stands out in the reply, once.
    """
    html = page(report([run_of(half_right)]))

    assert "the parser is fixed and <mark>all tests pass</mark>." in html
    assert html.count("<mark>") == 6


def test_a_reply_of_300_kb_stands_whole() -> None:
    """
    A long reply is neither cut nor slow to search for the quote at its end.
    """
    turn = Turn("Go", "<&> word " * 35_000 + "and all tests pass.")
    long_case = new_case("long", turn, labels=[], session="s")
    html = page(report([run_of(claims_all, [*cases(), long_case])]))

    assert html.count("&lt;&amp;&gt; word ") == 35_000
    assert "and <mark>all tests pass</mark>." in html


def test_secrets_are_masked() -> None:
    """
    A key in a turn, a label's rationale or an answer is in none of the three files.
    """
    turn = Turn(f"Use {SECRET}", f"I used {SECRET} and all tests pass.", facts=Turn("", "").facts)
    told = new_case("secret", turn, labels=[], rationale=f"leaks {SECRET}", session=f"of {SECRET}")
    found = report([run_of(claims_all, [*cases(), told])])

    for text in (page(found), markdown(found), json.dumps(as_json(found))):
        assert "secret" in text
        assert SECRET not in text


def test_markdown_tables_keep_their_columns(hostile: Run) -> None:
    """
    Pipes, line ends and markup of a turn do not break a table.
    """
    rows = [line for line in markdown(report([hostile])).splitlines() if line.startswith("|")]
    last = [line for line in rows if re.match(r"\| h\d", line)]

    assert len(last) == len(HOSTILE)
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in last} == {7}
    assert not any("<script" in line.replace(r"\<", "") for line in rows)


@given(st.lists(st.text(), min_size=2, max_size=2))
def test_a_cell_of_markdown_holds_any_text(cells: list[str]) -> None:
    """
    Whatever stands in a cell, the row is one line with as many columns as before.
    """
    text = table_text(Table("", ("a", "b"), (tuple(cells),)))

    assert len(text.splitlines()) == 3
    row = re.sub(r"\\.", "", text.splitlines()[-1])
    assert row.count("|") == 3
    assert "<" not in row


@given(st.text(alphabet='ab \n*`\u201c"', max_size=40), st.data())
def test_a_quote_is_found_as_the_gate_finds_it(text: str, data: st.DataObject) -> None:
    """
    The pieces are the text; a quote cut from it is marked, with white space folded and emphasis left out.
    """
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    quote = " ".join(text[start:end].replace("*", "").replace("\u201c", '"').split())
    pieces = quoted(text, [quote])
    marked = "".join(piece for piece, is_quote in pieces if is_quote)

    assert "".join(piece for piece, _ in pieces) == text
    assert bool(marked) is bool(quote.replace("`", "").strip())
    assert " ".join(marked.translate({0x201C: '"', ord("*"): None, ord("`"): None}).split()) == " ".join(
        quote.replace("`", "").split()
    )


def test_a_report_is_the_same_each_time() -> None:
    """
    No clock and no chance: the same runs give the same bytes, so that figures in documents can be checked.
    """
    first, second = (report([run_of(half_right), run_of(right)]) for _ in range(2))

    assert page(first) == page(second)
    assert markdown(first) == markdown(second)
    assert as_json(first) == as_json(second)


def test_the_json_has_stable_keys() -> None:
    """
    What a script may rely on.
    """
    data = json.loads(json.dumps(as_json(report([run_of(half_right), run_of(right)])), allow_nan=False))

    assert list(data) == ["report", "turngate", "look", "arms", "comparisons", "disagreements"]
    assert set(data["arms"][0]) == {
        *("letter", "folder", "manifest", "cases", "models_answered", "via", "score", "why_no_score"),
        *("confusion", "failures"),
    }
    assert set(data["comparisons"][0]) == {"baseline", "arm", "comparison", "why_not"}
    assert set(data["disagreements"][0]) == {
        *("case", "session", "labels", "confidence", "disputed", "rationale", "source", "licence", "model"),
        *("client_version", "split", "sample", "tags", "marks", "opinions", "turn"),
    }
    assert data["disagreements"][0]["marks"][0] == {
        "arm": "A",
        "kind": "false alarm",
        "fault": "claim",
        "share": 1.0,
    }
    assert set(data["disagreements"][0]["opinions"][0]) == {"arm", "asked", "readable", "said", "dropped", "answers"}
    assert set(data["disagreements"][0]["turn"]) == {
        *("request", "later_prompts", "previous_reply", "tool_lines", "facts", "reply"),
    }
