"""
The metrics and the shipped rules against Debian's real Prometheus.

They need one: see `prometheus_server`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from turngate.costing.metrics import Metrics
from turngate.costing.records import CallEnd
from turngate.costing.usage import Usage
from turngate.judge.loopback_server import LoopbackServer

from .ledger_lines import a_start
from .measured import ODD_MODELS, a_decision, measured, samples
from .prometheus_server import Prometheus, a_prometheus, eventually, needs_prometheus, promtool

ROOT = Path(__file__).parents[2]
RULES = ROOT / "costing/grafana/alerts.yml"
RULES_TEST = Path(__file__).with_name("alerts.test.yml")
ALERTS = re.findall(r"- alert: (\w+)", RULES.read_text())
RECORDS = re.findall(r"- record: (\S+)", RULES.read_text())

TOKEN = "a-token-of-this-test"

CONFIG = """
global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}
rule_files: ['{rules}']
scrape_configs:
  - job_name: turngate
    authorization: {{credentials_file: '{token}'}}
    static_configs: [{{targets: ['{target}']}}]
  - job_name: wrong-token
    authorization: {{credentials: another}}
    static_configs: [{{targets: ['{target}']}}]
"""


def eventful() -> Metrics:
    """
    Metrics in which every series has been used, also with names of models that would break a line.
    """
    metrics = measured(breaker_is_open=lambda: False, owed_lines=lambda: 7)
    metrics.decision(a_decision("block_verdict", hook_ms=1234))
    metrics.decision(a_decision("jobs_deny", "PreToolUse", hook_ms=4))
    for model in ("claude-sonnet-5-5", *ODD_MODELS):
        end = CallEnd("answered", 1700, usage=Usage(106, 44, 12, 925, 1, 2), cost_usd=Decimal("0.0025"))
        metrics.call_ended(a_start(model=model), end)
        metrics.call_ended(a_start(model=model, try_number=2), CallEnd("timeout", 8000))
    return metrics


@needs_prometheus
@pytest.mark.parametrize("metrics", [pytest.param(measured(), id="new"), pytest.param(eventful(), id="eventful")])
def test_promtool_finds_nothing_to_say_about_the_metrics(metrics: Metrics) -> None:
    """
    `promtool check metrics` parses what is said and takes no offence at a name, a help text or a label.
    """
    assert promtool("check", "metrics", stdin=metrics.exposition()[0]) == (0, "")


@needs_prometheus
def test_promtool_takes_the_rules() -> None:
    """
    `promtool check rules` with its lints finds no fault in any of the rules.
    """
    code, said = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)

    assert (code, f"{len(ALERTS) + len(RECORDS)} rules found" in said) == (0, True), said


@needs_prometheus
def test_the_rules_record_and_alert_as_they_should() -> None:
    """
    `promtool test rules`: figures worked out by hand, and alerts that fire and that do not.
    """
    code, said = promtool("test", "rules", RULES_TEST)

    assert code == 0, said


@needs_prometheus
@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        pytest.param("vector(1) < 0", 'alertname(="|: ){}', id="never"),
        pytest.param("vector(1)", r'alertname="{}"[^\n]*\n\s*exp: nil', id="always"),
    ],
)
def test_each_alert_is_tested_both_ways(tmp_path: Path, expression: str, complaint: str) -> None:
    """
    Were an alert to fire never or always, the test of the rules would say so, for each of them.
    """
    changed = re.sub(r"(- alert: \w+\n\s+expr: ).*", rf"\g<1>{expression}", RULES.read_text())
    (tmp_path / RULES.name).write_text(changed)
    (tmp_path / RULES_TEST.name).write_text(RULES_TEST.read_text().replace("../../costing/grafana/", ""))

    code, said = promtool("test", "rules", tmp_path / RULES_TEST.name)

    said = said.replace('\\"', '"')
    assert code != 0
    assert [alert for alert in ALERTS if not re.search(complaint.replace("{}", alert), said)] == []


def test_the_rules_name_only_metrics_that_are_there() -> None:
    """
    A rule about a metric that nobody gives would never fire, and nothing would say so.
    """
    expressions = re.sub(r"#.*|action:.*", "", RULES.read_text())
    named = set(re.findall(r"(?<![:\w])turngate_\w+", expressions))

    assert len(named) > 5
    assert named - {name for name, _ in samples(eventful())} == set()


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    metrics = eventful()

    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = self.headers["authorization"] == f"Bearer {TOKEN}" and self.path == "/metrics"
            body, content_type = metrics.exposition(self.headers["accept"]) if allowed else (b"", "text/plain")
            self.send_response(200 if allowed else 401)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    with LoopbackServer(Endpoint) as server:
        target = server.url.removeprefix("http://")
        (folder / "token").write_text(TOKEN + "\n")
        config = CONFIG.format(rules=RULES, token=folder / "token", target=target)
        with a_prometheus(folder, config) as found:
            yield found


@needs_prometheus
@pytest.mark.parametrize(
    ("query", "value"),
    [
        pytest.param('up{job="turngate"}', "1", id="scraped-with-the-token"),
        pytest.param('up{job="wrong-token"}', "0", id="not-without"),
        pytest.param('turngate_decisions_total{event="Stop",outcome="block_verdict"}', "1", id="decisions"),
        pytest.param('turngate_judge_cost_usd_total{model="claude-sonnet-5-5"}', "0.0025", id="cost"),
        pytest.param(
            'turngate_judge_tokens_total{model="claude-sonnet-5-5",kind="cache_write_5m"}', "925", id="tokens"
        ),
        pytest.param(r'turngate_judge_retries_total{model="say \"hi\""}', "1", id="a-name-with-quotes"),
        pytest.param(r'turngate_judge_retries_total{model="back\\slash"}', "1", id="a-name-with-a-backslash"),
        pytest.param('turngate_judge_retries_total{model="名前-é-😀"}', "1", id="a-name-beyond-ascii"),
        pytest.param('count({__name__="turngate_forged_total"}) or vector(0)', "0", id="no-forged-metric"),
        pytest.param("sum(turngate_judge_duration_seconds_count)", "24", id="durations"),
        pytest.param('turngate_judge_duration_seconds_bucket{model="claude-sonnet-5-5",le="2.0"}', "1", id="buckets"),
        pytest.param("turngate_ledger_owed_lines", "7", id="owed-lines"),
        pytest.param('turngate_build_info{version="0.1.0"}', "1", id="build"),
    ],
)
def test_a_running_prometheus_reads_every_figure(prometheus: Prometheus, query: str, value: str) -> None:
    """
    A server that scrapes with the token in a file answers queries with the figures that were counted.
    """
    eventually(lambda: prometheus.value('up{job="turngate"} == 1'))
    eventually(lambda: prometheus.value('up{job="wrong-token"}'))

    assert prometheus.value(query) == value


@needs_prometheus
def test_a_running_prometheus_evaluates_every_rule(prometheus: Prometheus) -> None:
    """
    All rules are evaluated without an error, are named as Prometheus advises, and alerts say what happened and what to do.
    """
    rules = prometheus.rules()

    assert [rule.get("lastError") for rule in rules if rule["health"] != "ok"] == []
    alerts = [rule for rule in rules if rule["type"] == "alerting"]
    assert [alert["name"] for alert in alerts] == ALERTS
    for alert in alerts:
        assert alert["labels"]["severity"] in ("critical", "warning", "info")
        assert set(alert["annotations"]) == {"summary", "description", "action"}
        assert all(text and "\n" not in text for text in alert["annotations"].values())
    records = [rule["name"] for rule in rules if rule["type"] == "recording"]
    assert records == RECORDS
    assert all(re.fullmatch(r"job(_[a-z]+)?:turngate_[a-z_]+:[a-z0-9_]+", name) for name in records)
