"""
The dashboard and the rules against a real Prometheus that has scraped the real service, restarted once, with stops of every kind.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from turngate.judge.scripted_api import Received, ScriptedMessagesApi, fails

from ..stopgate.hook_runner import CLAIM, CLEAN, RUNNING_TASK, Hook, a_stop
from ..stopgate.serve_process import Person
from .prometheus_server import Prometheus, a_prometheus, eventually, free_port, needs_prometheus

FOLDER = Path(__file__).parents[2] / "costing/grafana"
RULES = FOLDER / "alerts.yml"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
GRID = 24

TOKEN = "a-token-of-this-test"
CONFIG = """
global: {{scrape_interval: 300ms, scrape_timeout: 300ms, evaluation_interval: 300ms}}
rule_files: ['{rules}']
scrape_configs:
  - job_name: turngate
    authorization: {{credentials: {token}}}
    static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""

VARIABLES = {"$__range": "10m", "$__rate_interval": "5m", "$job": ".*", "$instance": ".*", "$model": ".*"}
"""What Grafana puts in; wide enough for a slow machine."""


def expressions() -> list[Any]:
    """
    Each PromQL expression of the dashboard: of its panels, of its annotations, and what its variables are read from.
    """
    of_panels = [(panel["title"], target["expr"]) for panel in PANELS for target in panel.get("targets", ())]
    of_notes = [(note["name"], note["expr"]) for note in DASHBOARD["annotations"]["list"]]
    variables = [each for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    of_variables = [
        (each["name"], re.sub(r"label_values\((.*), (\w+)\)", r"count by (\2) (\1)", each["query"]["query"]))
        for each in variables
    ]
    return [
        pytest.param(expr, id=f"{title}-{number}")
        for number, (title, expr) in enumerate(of_panels + of_notes + of_variables)
    ]


def filled_in(expression: str) -> str:
    """
    The expression without Grafana's variables.
    """
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def answer(received: Received) -> Any:
    if "breaks" in received.user_text:
        return fails(500)
    return json.dumps(CLAIM if "held" in received.user_text else CLEAN)


def some_stops(hook: Hook, run: int) -> int:
    """
    Stops that are held until the cap is spent, pass, fail, cost nobody knows what, or wait for a task; their number.
    """

    def stop(session: str, environ: dict[str, str] | None = None, **fields: object) -> None:
        reply = f"Done. All tests pass. This one is {session}."
        event = a_stop(session_id=f"{session}-{run}", cwd=str(hook.work), last_assistant_message=reply, **fields)
        hook.run(event, environ=environ)

    for session in ("held", "held", "held", "clean", "breaks"):
        stop(session)
    stop("clean-for-nobody-knows-what", {"TURNGATE_JUDGE_MODEL": "a-model-without-a-price"})
    stop("waits", background_tasks=[RUNNING_TASK])
    return 7


@pytest.fixture(scope="module", name="scraped")
def scraped_fixture() -> Iterator[tuple[Prometheus, Hook]]:
    """
    The server, and the user whose service it scraped.
    """
    port = free_port()
    with (
        TemporaryDirectory(prefix="turngate-") as name,  # short: a socket's path is limited
        ScriptedMessagesApi(otherwise=answer, key="k") as api,
        a_prometheus(Path(name), CONFIG.format(rules=RULES, token=TOKEN, port=port)) as prometheus,
    ):
        folder = Path(name)
        environ = {
            "ANTHROPIC_API_KEY": "k",
            "TURNGATE_JUDGE_BASE_URL": api.url,
            "TURNGATE_JUDGE_DEADLINE_S": "30",
            "TURNGATE_SERVICE_HTTP_PORT": str(port),
            "TURNGATE_SERVICE_TOKEN": TOKEN,
        }
        hook = Hook(folder, **environ)
        for run in (1, 2):
            with Person(folder / "service", **hook.environ).serving():
                stops = str(some_stops(hook, run))
                eventually(lambda stops=stops: prometheus.value("sum(turngate_decisions_total)") == stops or None)
                if run == 2:
                    # The rules too are evaluated with all of it.
                    eventually(lambda: prometheus.value("job:turngate_judge_cost_usd:increase1h > 0"))
                    yield prometheus, hook


@needs_prometheus
@pytest.mark.parametrize("expression", expressions())
def test_every_expression_of_the_dashboard_finds_something(scraped: tuple[Prometheus, Hook], expression: str) -> None:
    """
    A query that finds nothing where something happened would be an empty panel for ever.
    """
    found = scraped[0].series(filled_in(expression))

    assert found
    # A model or event that nothing came of in the time has no percentile; one of them has.
    values = [float(series["value"][1]) for series in found]
    assert any(math.isfinite(value) for value in values), found


@needs_prometheus
def test_every_expression_of_the_rules_finds_something(scraped: tuple[Prometheus, Hook]) -> None:
    """
    A recorded figure has a value; each side of an alert's conditions has one, whether or not the alert fires.
    """
    rules = scraped[0].rules()
    empty: list[str] = []
    for rule in rules:
        # Prometheus writes `a > 1` with spaces, and a label's comparison without.
        told = re.sub(r" (==|!=|>=|<=|>|<) ", r" \1 bool ", rule["query"])
        told = re.sub(r"^absent\((.*)\)$", r"\1", told)
        if not [series for series in scraped[0].series(told) if math.isfinite(float(series["value"][1]))]:
            empty.append(rule["name"])

    assert len(rules) > 10
    assert [rule.get("lastError") for rule in rules if rule["health"] != "ok"] == []
    assert empty == []


@needs_prometheus
def test_what_prometheus_adds_up_is_what_the_ledger_says(scraped: tuple[Prometheus, Hook]) -> None:
    """
    Calls, tokens and cost since the service's start are those of the ledger's lines of that time.
    """
    prometheus, hook = scraped
    calls = [call for line in hook.log() if line["session_id"].endswith("-2") for call in line["calls"]]
    cost = sum(Decimal(call["cost_usd"]) for call in calls if call["cost_usd"] is not None)
    unknown = sum(call["cost_usd"] is None for call in calls)

    # The first stop that was held, and the second; the third found the cap spent.
    assert len([call for call in calls if call["outcome"] == "answered"]) == 4
    assert prometheus.value("sum(turngate_judge_calls_total)") == str(len(calls))
    assert prometheus.value("sum(turngate_judge_calls_unknown_cost_total)") == str(unknown)
    assert float(prometheus.value("sum(turngate_judge_cost_usd_total)") or "nan") == pytest.approx(float(cost))
    assert prometheus.value('sum(turngate_judge_tokens_total{kind="output"})') == str(
        sum(call["output_tokens"] or 0 for call in calls)
    )


@needs_prometheus
@pytest.mark.parametrize(
    ("title", "value"),
    [
        pytest.param("Stops held", 6.0, id="held"),
        pytest.param("Ended with the cap spent", 2 / 14, id="cap"),
    ],
)
def test_a_figure_of_the_dashboard_is_near_what_happened(
    scraped: tuple[Prometheus, Hook], title: str, value: float
) -> None:
    """
    Prometheus does not see what came before its first look, and stretches the rest: within a factor of two.
    """
    [panel] = [panel for panel in PANELS if panel["title"] == title]

    found = float(scraped[0].value(filled_in(panel["targets"][0]["expr"])) or "nan")

    assert value / 2 <= found <= value * 2


def test_panels_lie_beside_each_other() -> None:
    """
    None lies on another or beyond the edge, and each has an id of its own.
    """
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert at["x"] + at["w"] <= GRID
        assert not cells & taken
        taken |= cells

    assert len({panel["id"] for panel in PANELS}) == len(PANELS)


def test_every_query_asks_the_chosen_source() -> None:
    """
    No panel is bound to the Prometheus of whoever drew it.
    """
    sources = [panel["datasource"]["uid"] for panel in PANELS if "targets" in panel]
    sources += [target["datasource"]["uid"] for panel in PANELS for target in panel.get("targets", ())]

    assert set(sources) == {"${datasource}"}
    assert [each["name"] for each in DASHBOARD["templating"]["list"]] == ["datasource", "job", "instance", "model"]


def test_the_dashboard_answers_what_people_ask() -> None:
    """
    Spend by model, tokens, outcomes, latency, cost per hold, the spent cap, unknown costs, the breaker: each has a panel.
    """
    titles = " | ".join(panel["title"] for panel in PANELS)

    for wanted in (
        "Spend by model",
        "Tokens by class",
        "by outcome",
        "takes",
        "Cost per hold",
        "cap spent",
        "unknown",
        "Breaker",
    ):
        assert wanted in titles
