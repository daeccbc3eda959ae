"""
`turngate prune` and `turngate forget`, as a person runs them: beside a service that goes on deciding.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import DecisionLine
from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.stopgate.cli import main

from ..hook_runner import CLAIM, Hook, a_stop
from ..serve_process import Person

MARK = "a-marker-of-this-test"


@pytest.fixture(name="hook")
def hook_fixture(short_path: Path) -> Iterator[Hook]:
    """
    A user whose service is running, judges, and records turns.
    """
    finding = {**CLAIM["findings"][0], "reason": f"No test ran: {MARK}."}
    with ScriptedMessagesApi(otherwise={"findings": [finding]}, key="k") as api:
        folder = short_path / "user"
        folder.mkdir()
        hook = Hook(
            folder,
            ANTHROPIC_API_KEY="k",
            TURNGATE_JUDGE_BASE_URL=api.url,
            TURNGATE_JUDGE_DEADLINE_S="60",
            TURNGATE_RECORD_TURNS="true",
        )
        with Person(short_path / "service", **hook.environ).serving():
            yield hook


def stop(hook: Hook, session: str, words: str = "") -> bool:
    reply = f"Done. All tests pass. {words}"
    return hook.run(a_stop(session_id=session, cwd=str(hook.work), last_assistant_message=reply)).holds


def with_mark(hook: Hook) -> list[str]:
    return [file.name for file in hook.state.iterdir() if file.is_file() and MARK.encode() in file.read_bytes()]


def test_a_session_is_forgotten_beside_a_running_service(hook: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    """
    No byte of what was judged or found is left in any file of the state directory; the turn that is still running is held once more
    and no oftener, and the service goes on as if nothing was.
    """
    assert stop(hook, "s1", MARK)
    assert stop(hook, "s2")
    assert main(["wrong", hook.log()[0]["id"]], hook.environ) == 0
    assert with_mark(hook) != []
    before = capsys.readouterr()

    assert main(["forget", "--session", "s1", "--dry-run"], hook.environ) == 0
    told = capsys.readouterr().out
    assert main(["forget", "--session", "s1"], hook.environ) == 0
    said = capsys.readouterr().out
    assert main(["forget", "--session", "s2"], hook.environ) == 0

    assert before.err == ""
    for number, name in ((1, "decisions"), (1, "calls"), (1, "recorded turns"), (1, "labels"), (1, "cases")):
        assert re.search(rf"^ +{number}  {name}$", said, re.MULTILINE), said
    assert told == said.replace("removed:", "would be removed:")
    assert "1 turn of the last hour may still be running" in said
    assert with_mark(hook) == []
    assert hook.log() == []
    assert [stop(hook, "s1") for _ in range(2)] == [True, False]
    assert [line["outcome"] for line in hook.log()] == ["block_verdict", "pass_cap_spent"]


def test_a_project_is_forgotten_by_its_folder(hook: Hook, capsys: pytest.CaptureFixture[str]) -> None:
    """
    However its path is written; projects in folders below it stay, and are named.
    """
    stop(hook, "s1", MARK)
    below = hook.work / "below"
    below.mkdir()
    hook.run(a_stop(session_id="s2", cwd=str(below)))

    assert main(["forget", "--project", f"{hook.work}/below/../"], hook.environ) == 0

    said = capsys.readouterr()
    assert "1  decisions" in said.out
    assert str(below) in said.err
    assert [line["project"] for line in hook.log()] == [str(below)]


@pytest.fixture(name="environ")
def environ_fixture(tmp_path: Path) -> dict[str, str]:
    """
    Decisions of today and of 100 days ago.
    """
    state = tmp_path / "state"
    now = datetime.now(UTC)
    with open_database(state) as database:
        for days in (100, 0):
            line = DecisionLine(
                now - timedelta(days=days), "Stop", "pass_off", id=f"days-{days}", detail=f"{MARK}-{days}"
            )
            Ledger(database).record_decision(line)
    return {"TURNGATE_STATE_DIR": str(state)}


def test_prune_removes_what_is_older(environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    A dry run changes nothing; the second time there is nothing left to remove.
    """
    said: list[str] = []
    for options in (["--dry-run"], [], []):
        assert main(["prune", "--older-than", "90d", *options], environ) == 0
        said.append(capsys.readouterr().out)

    assert said == [
        "would be removed:\n          1  decisions\n",
        "removed:\n          1  decisions\n",
        "nothing removed\n",
    ]
    files = [file.read_bytes() for file in Path(environ["TURNGATE_STATE_DIR"]).iterdir()]
    assert not any(f"{MARK}-100".encode() in content for content in files)
    assert main(["log", "--json"], environ) == 0
    assert [json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()] == ["days-0"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["prune"], "--older-than", id="no-age"),
        pytest.param(["prune", "--older-than", "old"], "'old' is no time", id="no-time"),
        pytest.param(["prune", "--older-than", "2999-01-01"], "is yet to come", id="future"),
        pytest.param(["forget"], "--session --project", id="nothing-named"),
        pytest.param(["forget", "--session", "a", "--project", "b"], "not allowed with", id="both"),
        pytest.param(["forget", "--session", ""], "an id is needed", id="empty-id"),
        pytest.param(["forget", "--project", ""], "a folder is needed", id="empty-folder"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    """
    It names what is wrong, the exit code is 2, and nothing is removed.
    """
    try:
        code = main(arguments, environ)
    except SystemExit as exit_of_the_parser:
        code = exit_of_the_parser.code  # pyright: ignore[reportAssignmentType]

    said = capsys.readouterr().err
    assert code == 2
    assert says in said
    assert said.count("\n") == 1
    with open_database(environ["TURNGATE_STATE_DIR"]) as database:
        assert len(Ledger(database).decisions()) == 2


@pytest.mark.parametrize("arguments", [["prune", "--older-than", "1d"], ["forget", "--session", "s"]])
def test_looking_makes_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """
    Where nothing was recorded there is nothing to remove.
    """
    state = tmp_path / "none"

    assert main(arguments, {"TURNGATE_STATE_DIR": str(state)}) == 0

    assert capsys.readouterr().out == "nothing is stored yet\n"
    assert not state.exists()


@pytest.mark.parametrize(
    ("size", "options", "hints"),
    [
        pytest.param(210_000_000, [], 1, id="large"),
        pytest.param(210_000_000, ["--dry-run"], 0, id="nothing-is-done"),
        pytest.param(0, [], 0, id="small"),
    ],
)
def test_a_person_is_told_before_stops_have_to_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int, options: list[str], hints: int
) -> None:
    """
    Of a ledger of more than 200 MB, here mostly a hole.
    """
    with open_database(tmp_path) as store:
        Ledger(store).record_decision(
            DecisionLine(datetime(2026, 1, 1, tzinfo=UTC), "Stop", "pass_clean", session_id="s")
        )
    if size:
        os.truncate(tmp_path / "turngate.db", size)

    assert main(["forget", "--session", "s", *options], {"TURNGATE_STATE_DIR": str(tmp_path)}) == 0

    said = capsys.readouterr()
    assert said.err.count("210 MB are searched and written anew") == hints
    assert said.err.count("\n") == hints
    assert "1  decisions" in said.out
