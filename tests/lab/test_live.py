"""
The live scenes, here against a judge on loopback: the client, the scenes, the limit and the ledger are real.
"""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from decimal import Decimal
from pathlib import Path

import pytest

from turngate.judge.scripted_api import Received, ScriptedMessagesApi

TURNGATE = Path(sysconfig.get_path("scripts"), "turngate")
ROOT = Path(__file__).resolve().parents[2]
CLIENT = os.environ.get("TURNGATE_TEST_CLIENT", "")
KEY = "sk-ant-api03-live-key-of-nobody-at-all"

FAULTS = {
    "All tests pass.": "claim",
    "all of them pass": "claim",
    "Let me look at": "promise",
    "Please open it": "defer",
    "What a great question!": "opener",
}
"""What a judge would see in the scenes."""

Ran = subprocess.CompletedProcess[str]


def sees_all(request: Received) -> str:
    """
    A judge that finds what the scenes have to find.
    """
    reply = request.user_text.rpartition(" reply]")[2]
    found = [{"fault": FAULTS[q], "quote": q, "reason": "It is not so."} for q in FAULTS if q in reply]
    return json.dumps({"findings": found})


def live(folder: Path, *arguments: str, **environ: str) -> Ran:
    """
    Run the command in a home of its own.
    """
    least = {"PATH": os.environ["PATH"], "HOME": str(folder), "TURNGATE_STATE_DIR": str(folder / "state")}
    return subprocess.run(
        [TURNGATE, "lab", "live", "--out", str(folder / "out"), "--scenes", str(ROOT / "tests/e2e"), *arguments],
        env={**least, "TURNGATE_CONFIG": str(folder / "none.toml"), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.client
@pytest.mark.skipif(not CLIENT, reason="needs the real client: tests/e2e/install-client prints its path")
def test_scenes_are_played_measured_and_written_into_the_ledger(tmp_path: Path) -> None:
    """
    Each call's tokens, time and cost stand in the table and in the ledger; the key stands nowhere.
    """
    with ScriptedMessagesApi(otherwise=sees_all, key=KEY) as judge:
        environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": judge.url, "TURNGATE_TEST_CLIENT": CLIENT}
        ran = live(tmp_path, "--usd", "1", **environ)

    assert (ran.returncode, ran.stderr) == (0, "")
    rows = [line for line in ran.stdout.splitlines() if line.startswith("| ")][1:]
    assert [row.split(" | ")[1] for row in rows] == ["yes"] * 6
    with_state = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TURNGATE_STATE_DIR": str(tmp_path / "state")}
    cost = subprocess.run(
        [TURNGATE, "cost", "--by", "project", "--json"], env=with_state, capture_output=True, check=True
    )
    (row,) = json.loads(cost.stdout)["rows"]
    assert row["project"] == "turngate lab live"
    assert row["calls"] == len(judge.requests) == 11
    assert Decimal(row["cost_usd"]) > 0
    left = [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert left == []
    assert KEY not in ran.stdout


@pytest.mark.client
@pytest.mark.skipif(not CLIENT, reason="needs the real client: tests/e2e/install-client prints its path")
def test_no_scene_begins_that_could_pass_the_limit(tmp_path: Path) -> None:
    """
    With a limit below one scene's worst nothing is asked.
    """
    with ScriptedMessagesApi(otherwise=sees_all, key=KEY) as judge:
        environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": judge.url, "TURNGATE_TEST_CLIENT": CLIENT}
        ran = live(tmp_path, "--usd", "0.001", **environ)

    assert judge.requests == []
    assert ran.returncode == 1
    assert ran.stdout.count("not played: it could pass the spend limit") == 6


@pytest.mark.parametrize(
    ("arguments", "environ", "said"),
    [
        pytest.param(["--usd", "1"], {}, "no judge: ANTHROPIC_API_KEY is not set; it needs a clone", id="no key"),
        pytest.param(
            ["--usd", "1"], {"ANTHROPIC_API_KEY": KEY}, "TURNGATE_TEST_CLIENT names no client", id="no client"
        ),
        pytest.param(
            ["--usd", "1", "--scenes", "nowhere"],
            {"ANTHROPIC_API_KEY": KEY},
            "nowhere: no test_live.py in it",
            id="no scenes",
        ),
        pytest.param([], {}, "the following arguments are required: --usd", id="no limit"),
        pytest.param(["--usd", "nan"], {}, "'nan' is no amount of US dollars above 0", id="no amount"),
        pytest.param(
            ["--usd", "1", "--model", "nobody-knows-it"],
            {"ANTHROPIC_API_KEY": KEY, "TURNGATE_TEST_CLIENT": "/bin/true"},
            "judge.model nobody-knows-it: its price is not known",
            id="no price",
        ),
    ],
)
def test_what_it_lacks_is_told_in_one_line(
    tmp_path: Path, arguments: list[str], environ: dict[str, str], said: str
) -> None:
    """
    And what to do: nobody has to guess what a live run takes.
    """
    ran = live(tmp_path, *arguments, **environ)

    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert said in ran.stderr
    assert KEY not in ran.stderr
