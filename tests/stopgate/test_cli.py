from __future__ import annotations

import csv
import json
import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pytest

from turngate.costing.database import FILE_NAME, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.records import CallEnd, CallStart, DecisionLine, FindingLine
from turngate.costing.usage import Usage
from turngate.stopgate.cli import main

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
PROGRAM = Path(sys.executable).with_name("turngate")
COMMANDS = (["log"], ["log", "--json"], ["cost"], ["cost", "--json"], ["cost", "--csv"], ["show", "a"])


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "TURNGATE_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def filled(environ: dict[str, str]) -> dict[str, str]:
    """
    A ledger of three decisions, "aa1", "ab2" and "ac3"; the second asked a judge.
    """
    with open_database(environ["TURNGATE_STATE_DIR"]) as database:
        ledger = Ledger(database)
        start = CallStart(AT, "anthropic", "claude-sonnet-5-5", decision_id="ab2", project="/p")
        usage = Usage(550, 130, 0, 0, 0, 900)
        end = CallEnd("answered", 1312, usage=usage, cost_usd=Decimal("0.00249"), price_source="user")
        ledger.settle_call(ledger.open_call(start), start, end)
        finding = FindingLine("claim", "All tests pass \u2713", "No test ran.", held=True)
        ledger.record_decision(DecisionLine(AT, "Stop", "pass_empty_reply", id="aa1", project="/p"))
        ledger.record_decision(
            DecisionLine(
                AT + timedelta(seconds=1), "Stop", "block_verdict", id="ab2", project="/p", findings=(finding,), spent=1
            )
        )
        ledger.record_decision(DecisionLine(AT + timedelta(seconds=2), "Stop", "pass_off", id="ac3", project="/p"))
    return environ


def run(arguments: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environ, check=False)


def on_terminal(arguments: list[str], environ: dict[str, str]) -> str:
    ours, theirs = pty.openpty()
    with subprocess.Popen([PROGRAM, *arguments], stdout=theirs, env={**environ, "TERM": "xterm"}):
        os.close(theirs)
        shown = b""
        while piece := read_some(ours):
            shown += piece
    os.close(ours)
    return shown.decode()


def read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how Linux says that the other side is closed
        return b""


def test_log_lists_what_was_or_would_have_been_held(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    With `--would-hold` nothing else, and `-n` counts these alone.
    """
    with open_database(filled["TURNGATE_STATE_DIR"]) as database:
        for number, outcome in enumerate(
            ("shadow_verdict", "pass_clean", "shadow_background", "jobs_deny", "pass_off")
        ):
            at = AT + timedelta(minutes=1 + number)
            Ledger(database).record_decision(DecisionLine(at, "Stop", outcome, id=f"b{number}", project="/p"))

    main(["log", "--would-hold", "--json"], filled)
    main(["log", "--would-hold", "-n", "1", "--json"], filled)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["outcome"] for line in lines] == [
        *("block_verdict", "shadow_verdict", "shadow_background"),
        "shadow_background",
    ]


def test_log_says_so_where_nothing_would_have_been_held(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    That is not the same as nothing recorded.
    """
    main(["log", "--would-hold"], environ)
    with open_database(environ["TURNGATE_STATE_DIR"]) as database:
        Ledger(database).record_decision(DecisionLine(AT, "Stop", "pass_clean", id="a"))
    main(["log", "--would-hold"], environ)

    none_yet, none_held = capsys.readouterr().out.splitlines()
    assert none_yet.startswith("Nothing recorded yet")
    assert none_held == "No stop was held, and none would have been."


def test_log_json_is_one_object_per_line_newest_last(
    filled: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    `log --json` gives the latest decisions with their calls nested, oldest first.
    """
    assert main(["log", "--json", "-n", "2"], filled) == 0

    second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert (second["id"], third["id"]) == ("ab2", "ac3")
    assert second["calls"][0]["cost_usd"] == "0.00249"
    assert third["calls"] == []


def test_log_is_a_table(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    `log` shows outcome, tokens, cost and reason of each decision.
    """
    assert main(["log"], filled) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["id", "aa1", "ab2", "ac3"]
    for part in ("2026-11-30 12:00", "block_verdict", "1,450 + 130", "$0.0025", "claim: No test ran."):
        assert part in lines[2]


def test_log_leaves_out_commands_that_were_let_through(
    filled: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    They are thousands: they are counted beside the list, and `--all` and `--json` have them.
    """
    with open_database(filled["TURNGATE_STATE_DIR"]) as database:
        ledger = Ledger(database)
        for number in range(30):
            ledger.record_decision(
                DecisionLine(AT + timedelta(seconds=5 + number), "PreToolUse", "jobs_pass", id=f"j{number}")
            )
        ledger.record_decision(DecisionLine(AT + timedelta(seconds=50), "PreToolUse", "jobs_deny", id="jx"))

    def listed(*arguments: str) -> tuple[list[str], str]:
        assert main(["log", *arguments], filled) == 0
        said = capsys.readouterr()
        return [line.split()[0] for line in said.out.splitlines()], said.err

    not_listed = "turngate: not listed: 30 commands that the jobs check let through (--all)\n"
    assert listed() == (["id", "aa1", "ab2", "ac3", "jx"], not_listed)
    assert listed("-n", "1") == (["id", "jx"], "")
    assert listed("-n", "2") == (["id", "ac3", "jx"], not_listed)
    assert listed("-n", "2", "--all") == (["id", "j29", "jx"], "")
    assert [len(listed(*form)[0]) for form in (["--json", "-n", "100"], ["--all", "-n", "100"])] == [34, 35]


def test_a_log_of_nothing_but_such_commands_says_so(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    It does not say that nothing was recorded.
    """
    with open_database(environ["TURNGATE_STATE_DIR"]) as database:
        Ledger(database).record_decision(DecisionLine(AT, "PreToolUse", "jobs_pass", id="j1"))

    assert main(["log"], environ) == 0
    assert capsys.readouterr() == ("", "turngate: not listed: 1 command that the jobs check let through (--all)\n")


def test_show_gives_a_decision_or_a_call_as_json(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    A decision is what `log --json` says of it, and a call is one of its calls.
    """
    assert main(["log", "--json"], filled) == 0
    logged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    called = next(decision for decision in logged if decision["calls"])

    for name, expected in ((called["id"], called), (called["calls"][0]["id"], called["calls"][0])):
        assert main(["show", name, "--json"], filled) == 0
        assert json.loads(capsys.readouterr().out) == expected


def test_show_takes_the_beginning_of_an_id(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    `show` prints the one decision whose id begins so, with quote, reason and cost.
    """
    assert main(["show", "ab"], filled) == 0

    shown = capsys.readouterr().out
    for part in ("ab2", "block_verdict", "All tests pass \u2713", "No test ran.", "900", "$0.0025", "user"):
        assert part in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["show", "a"], "'a' begins more than one id: aa1, ab2, ac3", id="not-unique"),
        pytest.param(["show", "zz"], "no decision 'zz'", id="unknown"),
        pytest.param(["show", ""], "begins more than one id", id="empty-id"),
        pytest.param(["show", "\ud800"], "no decision", id="surrogate"),
        pytest.param(["show", "\x1b[31m\n"], "no decision", id="control-characters"),
        pytest.param(["show"], "ID", id="no-id"),
        pytest.param(["log", "-n", "0"], "'0' is no number from 1 up", id="none"),
        pytest.param(["log", "-n", "many"], "'many' is no number from 1 up", id="no-number"),
        pytest.param(["log", "-n", "9" * 30], "is no number from 1 up", id="beyond-64-bits"),
        pytest.param(["cost", "--by", "moon"], "moon", id="unknown-way"),
        pytest.param(["cost", "--json", "--csv"], "not allowed with", id="two-forms"),
        pytest.param(["fly"], "fly", id="unknown-command"),
        pytest.param([], "COMMAND", id="no-command"),
    ],
)
def test_a_bad_request_is_one_line_and_exit_2(
    arguments: list[str], says: str, filled: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    What cannot be done as asked is told in one line on stderr; stdout stays empty.
    """
    try:
        code = main(arguments, filled)
    except SystemExit as exc:
        code = exc.code

    shown = capsys.readouterr()
    assert code == 2
    assert shown.out == ""
    assert says in shown.err
    assert shown.err.startswith("turngate")
    assert shown.err.count("\n") == 1
    assert shown.err.strip().isprintable()


@pytest.mark.parametrize("arguments", [["log"], ["cost"], ["cost", "--by", "model"]], ids=" ".join)
def test_nothing_recorded_yet_is_a_friendly_line(
    arguments: list[str], environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Without a ledger there is nothing wrong: one line says so, and looking leaves no files behind.
    """
    assert main(arguments, environ) == 0

    assert capsys.readouterr().out.startswith("Nothing recorded yet")
    assert not Path(environ["TURNGATE_STATE_DIR"]).exists()


def test_nothing_recorded_yet_is_sound_json_and_csv(
    environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    For programs an empty ledger is no line at all in the log, a report without rows, and a head without lines.
    """
    assert main(["log", "--json"], environ) == 0
    assert capsys.readouterr().out == ""

    assert main(["cost", "--json"], environ) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["by"], report["rows"], report["total"]["cost_usd"]) == ("day", [], "0")

    assert main(["cost", "--csv"], environ) == 0
    assert capsys.readouterr().out.splitlines() == [f"day,{','.join(report['total'])}"]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_damaged_ledger_is_one_line_and_exit_2(
    arguments: list[str], environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    A file that is no ledger is named; there is no traceback.
    """
    folder = Path(environ["TURNGATE_STATE_DIR"])
    folder.mkdir()
    (folder / FILE_NAME).write_bytes(b"garbage" * 100)

    assert main(arguments, environ) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == f"turngate: {folder / FILE_NAME}: file is not a database\n"


def test_cost_adds_up_by_what_is_asked(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    `cost --by model --json` has the exact amount.
    """
    assert main(["cost", "--by", "model", "--json"], filled) == 0

    report = json.loads(capsys.readouterr().out)
    assert [(row["model"], row["cost_usd"]) for row in report["rows"]] == [("claude-sonnet-5-5", "0.00249"), ("", "0")]
    assert report["total"]["decisions"] == 3


def test_cost_csv_is_for_a_spreadsheet(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    `cost --by model --csv` has the rows of `--json`, without the total.
    """
    assert main(["cost", "--by", "model", "--csv"], filled) == 0
    lines = list(csv.DictReader(capsys.readouterr().out.splitlines()))

    assert main(["cost", "--by", "model", "--json"], filled) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert lines == [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]], ids=["table", "json", "csv"])
def test_cost_tells_of_a_broken_file_of_prices(
    filled: dict[str, str], tmp_path: Path, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    The report comes all the same; one line on stderr names file, key and value, since all new costs are unknown.
    """
    assert main(["cost", *form], {**filled, "TURNGATE_CONFIG": str(tmp_path / "config.toml")}) == 0
    sound = capsys.readouterr()

    (tmp_path / "prices.toml").write_text('[[price]]\nmodel = "m"\ninput = "a lot"\noutput = 1\n')
    assert main(["cost", *form], {**filled, "TURNGATE_CONFIG": str(tmp_path / "config.toml")}) == 0
    broken = capsys.readouterr()

    assert (sound.err, broken.out) == ("", sound.out)
    assert broken.err == (
        f"turngate: costs stay unknown until this is put right: {tmp_path / 'prices.toml'}:"
        " input of 'm' = 'a lot' is no number\n"
    )


def test_the_installed_program_knows_its_version(environ: dict[str, str]) -> None:
    """
    `turngate version` prints the version of the distribution.
    """
    found = run(["version"], environ)

    assert (found.returncode, found.stdout, found.stderr) == (0, f"turngate {version('turngate')}\n", "")


@pytest.mark.parametrize("command", ["log", "show", "cost", "version"])
def test_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Each command's help ends with a line that can be typed.
    """
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"], {})

    assert ended.value.code == 0
    assert f"example: turngate {command}" in capsys.readouterr().out


def test_a_reader_that_had_enough_is_no_error(filled: dict[str, str]) -> None:
    """
    `turngate log --json | head -1` is quiet, though far more than a pipe holds was to be written.
    """
    with open_database(filled["TURNGATE_STATE_DIR"]) as database:
        Ledger(database).record_decision(DecisionLine(AT, "Stop", "pass_off", detail="x" * 2_000_000))

    ours, theirs = os.pipe()
    os.close(ours)
    found = subprocess.run([PROGRAM, "log", "--json"], stdout=theirs, stderr=subprocess.PIPE, env=filled, check=False)
    os.close(theirs)

    assert (found.returncode, found.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_that_cannot_be_written_is_one_line(filled: dict[str, str]) -> None:
    """
    Where stdout takes no more, the person is told and the exit code is 2.
    """
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [PROGRAM, "log"], stdout=full, stderr=subprocess.PIPE, env=filled, text=True, check=False
        )

    assert (found.returncode, found.stderr) == (2, "turngate: cannot write the answer: No space left on device\n")


def test_text_beyond_the_outputs_encoding_is_escaped(filled: dict[str, str]) -> None:
    """
    A reply's check mark does not end the command where the output is plain ASCII.
    """
    found = run(["show", "ab2"], {**filled, "PYTHONIOENCODING": "ascii"})

    assert found.returncode == 0
    assert "All tests pass \\u2713" in found.stdout


def test_styles_are_for_terminals_only(filled: dict[str, str]) -> None:
    """
    Escape sequences go to a terminal, and neither to a pipe nor to people who set `NO_COLOR`.
    """
    assert "\x1b[" in on_terminal(["cost"], filled)
    assert "\x1b[" not in on_terminal(["cost"], {**filled, "NO_COLOR": "1"})
    assert "\x1b[" not in run(["cost"], filled).stdout


def test_looking_at_nothing_imports_nothing_heavy() -> None:
    """
    The commands load tables, prices and models only when they are needed.
    """
    code = "import sys, turngate.stopgate.cli; print(*{name.partition('.')[0] for name in sys.modules})"

    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())

    assert not loaded & {"rich", "genai_prices", "pydantic", "anthropic", "httpx", "asyncio", "platformdirs"}


def damage(environ: dict[str, str], *statements: str) -> None:
    with closing(sqlite3.connect(Path(environ["TURNGATE_STATE_DIR"], FILE_NAME))) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("arguments", [["log"], ["log", "--json"], ["show", "ab2"], ["cost"], ["cost", "--json"]])
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE decisions SET findings = '{bad'", id="findings-no-json"),
        pytest.param("UPDATE decisions SET findings = 'null'", id="findings-null"),
        pytest.param("UPDATE decisions SET findings = '[1, {\"fault\": null}]'", id="findings-odd"),
        pytest.param("UPDATE decisions SET at = 'garbage'", id="time"),
        pytest.param("UPDATE decisions SET at = '2026-11-30'", id="time-without-zone"),
        pytest.param("UPDATE decisions SET spent = 'x', hook_ms = 1.5, reply_chars = 'z'", id="counts"),
        pytest.param("UPDATE decisions SET detail = x'ff00', project = x'ff'", id="bytes"),
        pytest.param("UPDATE decisions SET detail = CAST(x'ff00ff' AS TEXT)", id="no-utf-8"),
        pytest.param("UPDATE calls SET model = CAST(x'ff00ff' AS TEXT)", id="call-no-utf-8"),
        pytest.param("UPDATE calls SET at = 'garbage'", id="call-time"),
        pytest.param("UPDATE calls SET at = '2026-11-30T00:00:00'", id="call-time-without-zone"),
        pytest.param("UPDATE calls SET cost_usd = 'abc'", id="cost"),
        pytest.param("UPDATE calls SET cost_usd = ''", id="cost-empty"),
        pytest.param("UPDATE calls SET cost_usd = 'NaN'", id="cost-nan"),
        pytest.param("UPDATE calls SET cost_usd = '1e9999999'", id="cost-huge"),
        pytest.param("UPDATE calls SET cost_usd = '1e120'", id="cost-high"),
        pytest.param("UPDATE calls SET cost_usd = '1e-120'", id="cost-tiny"),
        pytest.param("UPDATE calls SET cost_usd = '-1'", id="cost-negative"),
        pytest.param("UPDATE calls SET input_tokens = 'many'", id="tokens-text"),
        pytest.param("UPDATE calls SET output_tokens = NULL", id="tokens-half"),
        pytest.param("UPDATE calls SET input_tokens = 9223372036854775807", id="tokens-huge"),
        pytest.param("UPDATE calls SET raw_usage = '{'", id="raw-usage"),
        pytest.param("UPDATE calls SET try_number = 'x', latency_ms = 'y', backend = x'ff'", id="call-fields"),
    ],
)
def test_a_damaged_row_is_shown_as_far_as_it_can_be_read(
    filled: dict[str, str], arguments: list[str], statement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Nothing of the rest is lost, no cost becomes 0, and one line on stderr names the file and the rows.
    """
    damage(filled, statement)

    assert main(arguments, filled) == 0

    shown = capsys.readouterr()
    assert "ab2" in shown.out or "cost" in arguments
    assert len(shown.err.splitlines()) <= 1
    if "cost" not in arguments and "no-utf-8" not in statement and "CAST" not in statement:
        assert FILE_NAME in shown.err
        assert "ab2" in shown.err or "calls " in shown.err
    if "cost_usd" in statement:
        assert "unknown" in shown.out or '"cost_usd": null' in shown.out


def test_no_stored_text_steers_the_terminal(filled: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """
    Escape sequences in any column, ids included, are shown as what they are.
    """
    texts: dict[str, tuple[str, ...]] = {
        "decisions": ("id", "project", "detail", "session_id", "outcome", "client_version")
    }
    texts["calls"] = ("id", "decision_id", "model", "endpoint", "detail", "request_id", "model_answered")
    for table, columns in texts.items():
        for column in columns:
            damage(filled, f"UPDATE {table} SET {column} = char(27) || '[2J' || {column} || char(155) || char(7)")

    for arguments in (
        ["log"],
        ["show", "\x1b[2Jab2"],
        *(["cost", "--by", by] for by in ("model", "project", "outcome")),
    ):
        assert main(arguments, filled) == 0
        assert not {"\x1b", "\x9b", "\x07"} & set(capsys.readouterr().out)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_state_directory_that_is_a_file_is_named(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    That is no ledger without lines.
    """
    (tmp_path / "state").write_text("")

    assert main(arguments, {"TURNGATE_STATE_DIR": str(tmp_path / "state")}) == 2

    assert f"{tmp_path / 'state'} cannot be used: Not a directory" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["log", "--help"]], ids=" ".join)
def test_help_that_nobody_reads_is_no_error(environ: dict[str, str], arguments: list[str]) -> None:
    """
    `turngate --help | true` says nothing on stderr.
    """
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([PROGRAM, *arguments], stdout=theirs, stderr=subprocess.PIPE, env=environ, check=False)
    os.close(theirs)

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_bad_setting_hides_no_log(filled: dict[str, str]) -> None:
    """
    Every stop passes meanwhile, and this is where one looks for the reason: it is named, and the log is shown.
    """
    ran = run(["log", "--json"], filled | {"TURNGATE_GATE_MODE": "sometimes"})

    assert ran.returncode == 0
    assert len(ran.stdout.splitlines()) == 3
    assert ran.stderr.count("\n") == 1
    assert "TURNGATE_GATE_MODE" in ran.stderr


def test_a_call_of_no_decision_is_shown_by_its_own_id(environ: dict[str, str]) -> None:
    """
    A developer's log names the calls that a team's service made; on the server they stand for themselves.
    """
    with open_database(environ["TURNGATE_STATE_DIR"]) as database:
        call_id = Ledger(database).open_call(CallStart(AT, "anthropic", "claude-sonnet-5-5"))

    ran = run(["show", call_id], environ)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"call: {call_id}" in ran.stdout
    assert "never ended" in ran.stdout
