from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from turngate.costing.database import FILE_NAME, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart, DecisionLine
from turngate.stopgate.cli import main

from ..serve_process import TURNGATE

AT = datetime(2026, 11, 30, 23, 30, tzinfo=UTC)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """
    Two decisions, on the last evening of November in UTC; the second asked a judge.
    """
    state = tmp_path / "state"
    with open_database(state) as database:
        ledger = Ledger(database)
        ledger.record_decision(DecisionLine(AT, "Stop", "pass_off", id="aa1", detail="é"))
        ledger.record_decision(DecisionLine(AT + timedelta(minutes=20), "Stop", "pass_clean", id="ab2"))
        start = CallStart(AT, "anthropic", "m", decision_id="ab2")
        ledger.settle_call(ledger.open_call(start), start, CallEnd("answered"))
    return {"PATH": os.environ["PATH"], "TURNGATE_STATE_DIR": str(state), "TZ": "UTC"}


def test_export_prints_what_the_log_says(environ: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    Each line has the values of `turngate log --json`, and more.
    """
    assert main(["log", "--json"], environ) == 0
    logged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["export", "--format", "jsonl"], environ) == 0
    exported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert len(exported) == 2
    for line, known in zip(exported, logged, strict=True):
        del known["calls"]
        assert known.items() <= line.items()


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        pytest.param(["--since", "2026-12-01"], [], id="utc"),
        pytest.param(
            ["--since", "2026-12-01", "--tz", "Europe/Berlin"], ["aa1", "ab2"], id="tomorrow-already-in-berlin"
        ),
        pytest.param(["--until", "2026-11-30"], ["aa1", "ab2"], id="until-a-day-has-that-day"),
        pytest.param(["--until", "2026-11-30T23:50"], ["aa1"], id="until-a-time"),
        pytest.param(["--since", "2026-11-30T23:50:00Z"], ["ab2"], id="since-a-time"),
    ],
)
def test_days_are_those_of_a_zone(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str], options: list[str], ids: list[str]
) -> None:
    """
    The machine's zone, or the one that is named.
    """
    assert main(["export", "--format", "csv", *options], environ) == 0

    assert [row["id"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))] == ids


def test_a_file_is_for_its_owner_alone(
    environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    `--out` writes a file of mode 0600 whatever stood there before, leaves nothing beside it, and prints nothing.
    """
    file = tmp_path / "out" / "calls.csv"
    file.parent.mkdir()
    file.write_text("before")
    file.chmod(0o644)

    assert main(["export", "--format", "csv", "--what", "calls", "--out", str(file)], environ) == 0

    assert capsys.readouterr().out == ""
    assert [row["decision_id"] for row in csv.DictReader(io.StringIO(file.read_text()))] == ["ab2"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_through_a_link_its_target_is_written(environ: dict[str, str], tmp_path: Path) -> None:
    """
    The link stays one.
    """
    link = tmp_path / "link"
    link.symlink_to("target")

    assert main(["export", "--format", "jsonl", "--out", str(link)], environ) == 0

    assert link.is_symlink()
    assert (tmp_path / "target").read_text().count("\n") == 2


def test_what_is_no_file_stays(environ: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A FIFO, as a device would be, is refused in one line, and so is the ledger, whatever it is called.
    """
    ledger = Path(environ["TURNGATE_STATE_DIR"], FILE_NAME)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(ledger)
    (tmp_path / "hard").hardlink_to(ledger)
    places = {
        tmp_path / "fifo": "no regular file",
        ledger: "the ledger itself",
        tmp_path / "link": "the ledger itself",
        tmp_path / "hard": "the ledger itself",
        Path(f"{ledger}-wal"): "the ledger itself",
    }

    for place, says in places.items():
        before = sorted((path, path.lstat().st_ino) for path in tmp_path.iterdir())
        assert main(["export", "--format", "jsonl", "--out", str(place)], environ) == 2

        said = capsys.readouterr().err
        assert said.startswith(f"turngate: {place}: not written: ")
        assert says in said
        assert said.count("\n") == 1
        assert sorted((path, path.lstat().st_ino) for path in tmp_path.iterdir()) == before
    assert main(["log"], environ) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_one_that_a_signal_ends_leaves_nothing(environ: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    """
    What stood there before stays, and there is no part of the new one beside it.
    """
    with open_database(environ["TURNGATE_STATE_DIR"]) as store, store.write() as transaction:
        transaction.execute(
            "WITH RECURSIVE line (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM line WHERE n < 100000) INSERT INTO decisions (id,"
            " at, event, session_id, agent_id, project, prompt_id, human_turn, outcome, detail, findings, dropped, transcript_path,"
            " client_version) SELECT 'd' || n, '2026-01-01T00:00:00.000Z', 'Stop', '', '', '', '', '', 'pass_clean', '', '[]', 0,"
            " '', '' FROM line"
        )
    file = tmp_path / "out" / "all.csv"
    file.parent.mkdir()
    file.write_text("before")

    with subprocess.Popen((*TURNGATE, "export", "--format", "csv", "--out", str(file)), env=environ) as process:
        while process.poll() is None and not any(path.suffix == ".part" for path in file.parent.iterdir()):
            pass
        process.send_signal(number)

    assert process.returncode == -number
    assert [*file.parent.iterdir()] == [file]
    assert file.read_text() == "before"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param([], "--format", id="no-form"),
        pytest.param(["--format", "xml"], "'xml'", id="unknown-form"),
        pytest.param(["--format", "csv", "--what", "turns"], "'turns'", id="unknown-table"),
        pytest.param(["--format", "csv", "--since", "soon"], "'soon' is no time", id="no-time"),
        pytest.param(["--format", "csv", "--tz", "Mars/Base"], "'Mars/Base' is no time zone", id="no-zone"),
        pytest.param(
            ["--format", "csv", "--out", "/nowhere/x"], "/nowhere/x: not written: No such file", id="no-folder"
        ),
    ],
)
def test_what_cannot_be_done_is_one_line(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    """
    It names what is wrong, and the exit code is 2.
    """
    try:
        code = main(["export", *options], environ)
    except SystemExit as exit_of_the_parser:
        code = exit_of_the_parser.code  # pyright: ignore[reportAssignmentType]

    said = capsys.readouterr().err
    assert code == 2
    assert says in said
    assert said.count("\n") == 1


def test_a_reader_who_has_had_enough_ends_it_quietly(environ: dict[str, str]) -> None:
    """
    `turngate export | head -0` ends without a word on stderr.
    """
    with subprocess.Popen(
        (*TURNGATE, "export", "--format", "jsonl"), env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        said = process.stderr.read()

    assert (process.returncode, said) == (0, b"")


def test_looking_makes_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Where nothing was recorded there is nothing to write out but names.
    """
    state = tmp_path / "none"

    assert main(["export", "--format", "csv"], {"TURNGATE_STATE_DIR": str(state)}) == 0

    assert capsys.readouterr().out.startswith("id,at,event,")
    assert not state.exists()
