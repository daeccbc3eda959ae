from __future__ import annotations

import io
import json
from contextlib import chdir, redirect_stderr, redirect_stdout

import pytest

from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.stopgate.cli import main

from .patient import Patient

KEY = "sk-ant-api03-not-a-key-not-a-key"


def run(patient: Patient, *arguments: str) -> tuple[int, str]:
    """
    Give exit code and output of `turngate doctor`, run in the project.
    """
    out = io.StringIO()
    with chdir(patient.project), redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = main(["doctor", *arguments], patient.environ)
    return code, out.getvalue()


def test_where_all_is_well_each_check_is_one_line_and_the_exit_code_is_0(patient: Patient) -> None:
    """
    The proof that the command holds is among the lines, and no file is left behind.
    """
    code, out = run(patient)

    assert code == 0
    assert all(line.startswith("ok    ") for line in out.splitlines()), out
    assert "the command holds a false claim and lets an honest reply pass" in out
    assert not any(patient.state.iterdir())


@pytest.mark.parametrize(
    ("settings", "code"), [('[gate]\nmode = "shadow"\n', 1), ('[gate]\nmode = "off"\n', 2), ("[gate]\n", 0)]
)
def test_the_exit_code_is_that_of_the_worst(settings: str, code: int, patient: Patient) -> None:
    """
    1 where something is not as one might think, 2 where the gate does not work; JSON has the same.
    """
    patient.config.write_text(settings)

    found, out = run(patient, "--json")

    report = json.loads(out)
    assert (found, report["exit_code"]) == (code, code)
    assert {frozenset(finding) for finding in report["findings"]} == {frozenset(("level", "check", "text", "fix"))}
    assert sum(finding["level"] != "ok" for finding in report["findings"]) == (code > 0)


@pytest.mark.parametrize(
    ("key", "level", "says"), [(KEY, "ok", "answered in"), ("sk-ant-api03-another-key-another", "bad", "401")]
)
def test_live_asks_the_judge_once(key: str, level: str, says: str, patient: Patient) -> None:
    """
    `--live` makes one real call with the person's key, and says how it went; without it nobody is asked.
    """
    with ScriptedMessagesApi(otherwise={"findings": []}, key=KEY) as api:
        patient.environ |= {"ANTHROPIC_API_KEY": key, "TURNGATE_JUDGE_BASE_URL": api.url}
        run(patient)
        assert api.requests == []
        _, out = run(patient, "--live", "--json")

    (call,) = [finding for finding in json.loads(out)["findings"] if finding["check"] == "live call"]
    assert call["level"] == level
    assert says in call["text"]
    assert len(api.requests) == 1
    assert key not in out
