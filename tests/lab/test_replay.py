"""
The replay: what the gate would have done with the stops of the past, and what it would have cost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store
from turngate.costing.records import CallEnd
from turngate.costing.usage import Usage
from turngate.lab.errors import LabError
from turngate.lab.past.replay import TAG, Replayed, Size, plan, replay, sessions_of
from turngate.lab.past.replay_cost import Output, Prices, usages
from turngate.lab.past.replay_report import spread
from turngate.lab.past.short_names import short_names
from turngate.rubric.library import load
from turngate.rubric.render import render
from turngate.stopgate.evidence import build_turn
from turngate.stopgate.transcript import read
from turngate.stopgate.transcript.stops import stops_in

from ..costing.ledger_lines import a_start
from ..shared import SHARED, needs_shared
from .replay_stage import PRICES, START, Past, replay_json
from .replay_stage import replay as replay_command

Capture = pytest.CaptureFixture[str]


@pytest.fixture(name="environ")
def a_user(tmp_path: Path) -> dict[str, str]:
    """
    A user without a key, whose model has prices of their own.
    """
    config = tmp_path / "config"
    config.mkdir()
    (config / "prices.toml").write_text(PRICES)
    return {
        "HOME": str(tmp_path / "home"),
        "TURNGATE_CONFIG": str(config / "config.toml"),
        "TURNGATE_STATE_DIR": str(tmp_path / "state"),
        "TURNGATE_JUDGE_MODEL": "judge-model",
    }


@pytest.fixture(name="folder")
def a_folder(tmp_path: Path) -> Path:
    """
    Where the client keeps its transcripts.
    """
    return tmp_path / "projects"


# What the gate would have done


def test_a_running_task_holds_for_free_and_is_named_once(
    capsys: Capture, environ: dict[str, str], folder: Path
) -> None:
    """
    The first stop beside it is held without a model; the next ones, and that after its notification, are judged.
    """
    past = Past("s1")
    past.turn(0, "It builds.", launches="b1")
    past.turn(1)
    past.ended(2, "b1")
    past.write(folder / "demo")

    found = replay_json(capsys, environ, folder)

    assert (found["total"]["stops"], found["total"]["free_holds"], found["total"]["judge_calls"]) == (3, 1, 2)
    assert found["total"]["spared"] == {"block_background": 1}
    assert found["total"]["spared_share"] == pytest.approx(1 / 3)


def test_a_turns_second_hold_is_its_last(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Three tasks of one human turn, each at a stop of its own: the cap counts across the stops, and the third is not asked about.
    """
    past = Past("s1")
    past.turn(0, "It builds.", launches="b1")
    for minute, (done, launched) in enumerate([("b1", "b2"), ("b2", "b3")], start=1):
        past.ended(minute, done, launches=launched)
    past.write(folder)

    assert replay_json(capsys, environ, folder)["total"]["spared"] == {"block_background": 2, "pass_cap_spent": 1}


@pytest.mark.parametrize(
    ("variables", "spared"),
    [
        pytest.param({"TURNGATE_GATE_MODE": "off"}, {"pass_off": 2}, id="the gate is off"),
        pytest.param({"TURNGATE_GATE_MODE": "shadow"}, {"shadow_background": 1}, id="shadow"),
        pytest.param({"TURNGATE_BACKGROUND_MODE": "off"}, {}, id="tasks do not hold"),
        pytest.param({"TURNGATE_GATE_CONTINUATIONS": "0"}, {"pass_cap_spent": 2}, id="nothing may be held"),
        pytest.param(
            {"TURNGATE_JUDGE_BACKEND": "off"}, {"block_background": 1, "pass_no_judge": 1}, id="the judge is off"
        ),
        pytest.param(
            {"TURNGATE_JUDGE_MAX_INPUT_TOKENS": "1500"},
            {"block_background": 1, "pass_no_judge": 1},
            id="no room for a turn",
        ),
    ],
)
def test_the_users_own_settings_count(
    capsys: Capture, environ: dict[str, str], folder: Path, variables: dict[str, str], spared: dict[str, int]
) -> None:
    """
    What the gate is set to is what it would have done.
    """
    past = Past("s1")
    past.turn(0, "It builds.", launches="b1")
    past.turn(1)
    past.write(folder)

    assert replay_json(capsys, environ | variables, folder)["total"]["spared"] == spared


def test_requests_have_the_size_of_those_that_the_gate_would_send(
    capsys: Capture, environ: dict[str, str], folder: Path
) -> None:
    """
    Each turn is that of the transcript cut off at the stop, whatever came later.
    """
    past = Past("s1")
    expected: list[tuple[int, int, int]] = []
    for minute, reply in enumerate(["Fertig. Überall grün. ✅", "Done " * 900]):
        past.turn(minute, reply)
        cut = past.write(folder.with_name("cut"))
        turn = build_turn(read(str(cut)), reply=reply.strip(), subagent=False)
        request = render(load(), turn, tag=TAG)
        sent = request.system + request.user
        expected.append((len(sent), len(sent.encode()), request.estimated_tokens))
    past.write(folder)

    found = replay_json(capsys, environ, folder)["total"]

    for place, name in enumerate(("request_characters", "request_bytes", "request_tokens")):
        small, large = sorted(sizes[place] for sizes in expected)
        assert found[name] == {"median": small, "p95": large, "max": large}
    assert found["estimated_input_tokens"] == sum(tokens for *_, tokens in expected)


def test_a_subagent_belongs_to_its_session() -> None:
    """
    They share a memory, so they are played together; an older client's lies beside the session.
    """
    files = [
        "p/s1.jsonl",
        "p/s1/subagents/agent-a.jsonl",
        "p/s2.jsonl",
        "p/agent-b.jsonl",
        "p/s1/subagents/agent-b.jsonl",
    ]

    assert sessions_of(map(Path, files)) == [
        (Path("p/agent-b.jsonl"),),
        (Path("p/s1.jsonl"), Path("p/s1/subagents/agent-a.jsonl"), Path("p/s1/subagents/agent-b.jsonl")),
        (Path("p/s2.jsonl"),),
    ]


def test_a_stop_that_two_transcripts_tell_of_is_counted_once(
    capsys: Capture, environ: dict[str, str], folder: Path
) -> None:
    """
    A copy in another folder, and a session that was resumed in a new file, repeat what they go on from.
    """
    past = Past("s1")
    past.turn(0)
    past.write(folder / "a")
    past.turn(1)
    past.write(folder / "b")

    found = replay_json(capsys, environ, folder)

    assert (found["total"]["stops"], found["repeated_stops"]) == (2, 1)


@needs_shared
def test_every_stop_of_real_sessions_is_played(environ: dict[str, str]) -> None:
    """
    None is lost and none goes wrong; one where no model is asked has a reason.
    """
    assert SHARED is not None
    files = sorted([*SHARED.glob("data/transcripts/*/*.jsonl"), *SHARED.glob("captures/*transcript.jsonl")])

    played = replay(files, plan(environ), jobs=1)

    outcomes = {stop.outcome for stop in played.stops if not stop.request}
    assert len(played.stops) + played.repeated == sum(1 for file in files for _ in stops_in(str(file)))
    assert len(played.stops) > 100
    assert played.unreadable == ()
    assert all(stop.request for stop in played.stops if stop.outcome == "pass_clean")
    assert outcomes <= {
        "block_background",
        "pass_api_error",
        "pass_empty_reply",
        "pass_wakeup_pending",
        "pass_cap_spent",
    }
    assert max(stop.request.tokens for stop in played.stops if stop.request) <= 2500


# What it would have cost


def test_the_rubric_is_cached_where_calls_are_close(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Over all sessions: the first call is plain, the second writes the rubric, the third reads it, one after a pause is plain again.
    """
    one, two = Past("s1"), Past("s2")
    for past, minute in ((one, 0), (two, 2), (one, 4), (one, 20)):
        past.turn(minute)
    one.write(folder)
    two.write(folder)

    found = replay_json(capsys, environ, folder)

    rubric, tokens = found["rubric_tokens"], found["total"]["estimated_input_tokens"]
    in_mills = 1000 * tokens + (1250 - 1000) * rubric + (100 - 1000) * rubric
    assert rubric > 1000
    assert Decimal(found["total"]["estimated_cost_usd"]) == Decimal(in_mills) / 10**6


@pytest.mark.parametrize(
    ("cache", "kinds"),
    [
        pytest.param("auto", "plain write read read plain write", id="auto"),
        pytest.param("on", "write read read read write read", id="on"),
        pytest.param("off", "plain plain plain plain plain plain", id="off"),
    ],
)
def test_the_cache_is_used_as_it_is_set(cache: Any, kinds: str) -> None:
    """
    What was written is there for five minutes after it was last used, and not at five minutes sharp.
    """
    found = usages([called(minute) for minute in (0, 1, 5, 9.9, 14.9, 15)], prices(cache=cache))

    assert [kind_of(usage) for usage in found] == kinds.split()


@given(
    st.lists(st.none() | st.floats(0, 12, allow_nan=False).map(lambda gap: round(gap, 2)), max_size=12),
    st.sampled_from(["auto", "on", "off"]),
)
def test_no_call_reads_what_was_not_there(gaps: list[float | None], cache: Any) -> None:
    """
    Whatever the calls' times: all tokens are counted once, and a read follows a write or a read within five minutes.
    """
    minutes, minute = list[float | None](), 0.0
    for gap in gaps:
        minute += gap or 0
        minutes.append(None if gap is None else minute)

    found = usages([called(minute) for minute in minutes], prices(cache=cache))

    kept: float | None = None
    for usage, minute in zip(found, minutes, strict=True):
        assert usage is not None
        assert usage.prompt_tokens == 1500
        if usage.cache_read_tokens:
            assert kept is not None
            assert minute is not None
            assert minute - kept < 5
        kept = minute if kind_of(usage) != "plain" else kept


def test_a_price_that_nobody_knows_is_unknown(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Never 0: neither in the sum nor on the screen.
    """
    past = Past("s1")
    past.turn(0)
    past.write(folder)

    found = replay_json(capsys, environ, folder, "--model", "nobodys-model")
    text, _ = replay_command(capsys, environ, folder, "--model", "nobodys-model")

    assert (found["model"], found["total"]["estimated_cost_usd"], found["total"]["unknown_costs"]) == (
        "nobodys-model",
        None,
        1,
    )
    assert "unknown" in text
    assert "$" not in text


def test_prices_that_cannot_be_read_are_named(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    The figures come all the same, and no cost is guessed at.
    """
    Path(environ["TURNGATE_CONFIG"]).with_name("prices.toml").write_text("price = 1\n")
    past = Past("s1")
    past.turn(0)
    past.write(folder)

    out, complaint = replay_command(capsys, environ, "--json", folder)

    assert json.loads(out)["total"]["estimated_cost_usd"] is None
    assert complaint.startswith("turngate: costs stay unknown until this is put right: ")
    assert complaint.count("\n") == 1


def test_answers_are_as_long_as_the_users_own_were(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    The median of the ledger's answers is taken; calls without a usage, failures and played ones tell nothing.
    """
    past = Past("s1")
    past.turn(0)
    past.write(folder)
    assert replay_json(capsys, environ, folder)["output_tokens_per_call"] == 44
    assert not Path(environ["TURNGATE_STATE_DIR"]).exists()

    with open_ledger_store(environ["TURNGATE_STATE_DIR"]) as database:
        ledger = Ledger(database)
        for fields, outcome, tokens in (
            ({}, "answered", 10),
            ({}, "answered", 70),
            ({}, "answered", 90),
            ({}, "timeout", 900),
            ({}, "answered", None),
            ({"backend": "scripted"}, "answered", 800),
        ):
            start = a_start()._replace(**fields)
            usage = None if tokens is None else Usage(1, tokens)
            ledger.settle_call("", start, CallEnd(outcome, usage=usage))  # pyright: ignore[reportArgumentType]
    found = replay_json(capsys, environ, folder)

    assert (found["output_tokens_per_call"], found["output_tokens_from"]) == (70, "the median of 3 in your ledger")
    assert found["total"]["estimated_output_tokens"] == 70


@pytest.mark.parametrize(
    ("variables", "source"),
    [
        pytest.param({"TURNGATE_LEDGER_URL": "postgresql://db.invalid/x"}, "no server is asked", id="on a server"),
        pytest.param({}, "your ledger cannot be read: ", id="damaged"),
    ],
)
def test_a_ledger_that_cannot_be_read_is_no_hindrance(
    capsys: Capture, environ: dict[str, str], folder: Path, variables: dict[str, str], source: str
) -> None:
    """
    Then answers are as long as the docs have them, and the report says why.
    """
    state = Path(environ["TURNGATE_STATE_DIR"])
    state.mkdir()
    (state / "turngate.db").write_bytes(b"no database" * 1000)
    past = Past("s1")
    past.turn(0)
    past.write(folder)

    found = replay_json(capsys, environ | variables, folder)

    assert found["output_tokens_per_call"] == 44
    assert found["output_tokens_from"].startswith(f"by docs/costs.md; {source}")


# What is told


def test_the_report_is_read_by_a_person(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Projects and days with their figures, what was spared and why, how it was priced, and what cannot be known.
    """
    demo, other = Past("s1"), Past("s2", cwd="/srv/other")
    demo.turn(0, "It builds.", launches="b1")
    demo.turn(30)
    other.turn(60)
    demo.write(folder / "a")
    other.write(folder / "b")

    lines = replay_command(capsys, environ, folder)[0].splitlines()

    words = [line.split() for line in lines]
    assert [found[:5] for found in words if found[:1] in (["demo"], ["other"], ["total"])] == [
        ["demo", "2", "1", "1", "1"],
        ["other", "1", "0", "1", "0"],
        ["total", "3", "1", "2", "1"],
        ["total", "3", "1", "2", "1"],
    ]
    assert [found[:5] for found in words if found[:1] and found[0].startswith("2026-")] == [
        ["2026-11-29", "1", "1", "0", "1"],
        ["2026-11-30", "2", "0", "2", "0"],
    ]
    assert "3 stops in 2 transcripts." in lines
    assert "Without a model call: 1 (33.3%): block_background 1." in lines
    assert any(line.startswith("Cost: judge-model and rubric turn_end@") for line in lines)
    assert lines[lines.index("Not known here:") + 1].startswith("- what an agent would have done after a hold")


def test_totals_come_by_outcome_too(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Each row of a table is a code of the gate; a project is named by its whole folder only to programs.
    """
    past = Past("s1")
    past.turn(0, "It builds.", launches="b1")
    past.turn(1)
    past.turn(2)
    past.write(folder)

    by_outcome = replay_json(capsys, environ, folder, "--by", "outcome")["by"]
    by_project = replay_json(capsys, environ, folder, "--by", "project")["by"]

    assert list(by_outcome) == ["outcome"]
    assert [(row["outcome"], row["stops"], row["judge_calls"]) for row in by_outcome["outcome"]] == [
        ("pass_clean", 2, 2),
        ("block_background", 1, 0),
    ]
    assert [row["project"] for row in by_project["project"]] == ["/home/dev/demo"]


def test_only_the_days_that_are_asked_for_count(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    Both days are counted whole, in UTC. What happened before is played all the same: its holds are remembered.
    """
    past = Past("s1")
    past.turn(0, "It builds.", launches="b1")
    for minute in (9, 10, 24 * 60 + 9, 24 * 60 + 10):
        past.turn(minute)
    past.write(folder)

    found = replay_json(capsys, environ, folder, "--since", "2026-11-30", "--until", "2026-11-30", "--by", "day")

    assert [(row["day"], row["stops"], row["spared"]) for row in found["by"]["day"]] == [("2026-11-30", 2, {})]
    assert (found["since"], found["until"]) == ("2026-11-30", "2026-11-30")


def test_projects_are_named_shortly_and_never_alike() -> None:
    """
    By the last part of their folder, and by two where two projects share one.
    """
    assert short_names(["/home/a/web", "/home/a/api/", "/srv/b/api", "C:\\work\\app", ""]) == {
        "/home/a/web": "web",
        "/home/a/api/": "a/api",
        "/srv/b/api": "b/api",
        "C:\\work\\app": "app",
        "": "",
    }


def test_a_spread_is_made_of_sizes_that_were_there() -> None:
    """
    By the nearest rank, as the metrics have it.
    """
    assert spread([]) is None
    assert spread([7]) == (7, 7, 7)
    assert spread(range(1, 101)) == (50, 95, 100)


# Bad input


def test_what_cannot_be_read_is_one_counted_line(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    The others are played: a link to nowhere, a damaged file, one that is cut off.
    """
    past = Past("s1")
    past.turn(0)
    whole = past.write(folder)
    (folder / "a-link.jsonl").symlink_to("nowhere")
    (folder / "damaged.jsonl").write_bytes(os.urandom(5000) + b"\n{\n" + b"\0" * 100 + b"\n[]\n")
    (folder / "cut.jsonl").write_bytes(whole.read_bytes()[:-20])

    out, err = replay_command(capsys, environ, folder)

    named = "a-link.jsonl: No such file or directory; damaged.jsonl: not JSON Lines"
    assert err == f"turngate: 2 files or folders could not be read: {named}\n"
    assert {"1 stop in 4 transcripts.", "Files and folders that could not be read: 2."} <= set(out.splitlines())


def test_no_stop_is_told(capsys: Capture, environ: dict[str, str], folder: Path) -> None:
    """
    A session that never stopped gives no table of nothing.
    """
    folder.mkdir()
    (folder / "empty.jsonl").touch()

    assert replay_command(capsys, environ, folder)[0] == "No stop in 1 transcript.\n"
    assert replay_json(capsys, environ, folder)["total"]["spared_share"] is None


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["nowhere"], "nowhere: no such file or folder", id="no such path"),
        pytest.param(["."], r"no transcript \(\*.jsonl\) in \.", id="none in the folder"),
        pytest.param([], r".*/home/.claude/projects: no such file or folder", id="no client"),
        pytest.param(["--since", "2026-11-30", "--until", "2026-11-29"], "--since 2026-11-30 lies after", id="order"),
    ],
)
def test_what_cannot_be_played_is_said_in_one_line(
    capsys: Capture,
    environ: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    complaint: str,
) -> None:
    """
    A path that is not there, a folder without any transcript, days the wrong way round.
    """
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    with pytest.raises(LabError, match=complaint):
        replay_command(capsys, environ, *arguments)


@pytest.mark.parametrize("given", [["--since", "yesterday"], ["--jobs", "0"], ["--by", "week"]], ids=lambda g: g[0])
def test_a_bad_argument_is_one_line(capsys: Capture, environ: dict[str, str], given: list[str]) -> None:
    """
    The parser says which, and exits with 2.
    """
    with pytest.raises(SystemExit, match="2"):
        replay_command(capsys, environ, *given)

    assert capsys.readouterr().err.count("\n") == 1


def test_a_rubric_that_is_not_there_is_named(environ: dict[str, str]) -> None:
    """
    Before anything is played.
    """
    with pytest.raises(LabError, match="unknown rubric 'nobodys'"):
        plan(environ | {"TURNGATE_RUBRIC_NAME": "nobodys"})


# Without key and network

_PLAY = """
import os, sys
sys.addaudithook(lambda event, _: event.startswith("socket.") and os._exit(99))
from turngate.lab.commands.replay import add
from turngate.stopgate.console import Parser
parser = Parser()
add(parser.add_subparsers())
asked = parser.parse_args(["replay", *sys.argv[1:]])
if __name__ == "__main__":
    sys.exit(asked.command(asked, os.environ))
"""


def test_no_socket_is_opened_and_nothing_is_left_behind(tmp_path: Path, folder: Path, environ: dict[str, str]) -> None:
    """
    A process that would die of touching a socket prints all figures; home, state and temporary folder stay as they were.
    """
    past = Past("s1")
    past.turn(0, "It builds.", launches="b1")
    past.turn(1)
    past.write(folder)
    (tmp_path / "temporary").mkdir()
    environ |= {"TMPDIR": str(tmp_path / "temporary"), "PATH": os.environ["PATH"]}

    done = subprocess.run(
        [sys.executable, "-c", _PLAY, "--jobs", "1", folder], env=environ, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "2 stops in 1 transcript." in done.stdout
    assert not list((tmp_path / "temporary").iterdir())
    assert not Path(environ["TURNGATE_STATE_DIR"]).exists()
    assert not list((tmp_path / "home").iterdir())


def test_several_processes_find_what_one_finds(tmp_path: Path, folder: Path, environ: dict[str, str]) -> None:
    """
    The figures do not hang on who was first.
    """
    for number in range(4):
        past = Past(f"s{number}", cwd=f"/srv/p{number}")
        past.turn(number, "It builds.", launches=f"b{number}")
        past.turn(number + 1)
        past.session.calls("Bash", f"toolu_j{number}", command=f"./serve {number} &")
        past.write(folder)
    script = tmp_path / "play.py"
    script.write_text(_PLAY.replace("sys.addaudithook", "(lambda hook: None)"))

    def played(jobs: int) -> str:
        arguments = [sys.executable, str(script), "--json", "--jobs", str(jobs), str(folder)]
        return subprocess.run(arguments, env=environ, capture_output=True, text=True, check=True).stdout

    assert played(3) == played(1)
    assert '"free_holds": 4' in played(1)
    assert '"refused": 4' in played(1)


# The set-up


def called(minute: float | None) -> Replayed:
    at = None if minute is None else START + timedelta(minutes=minute)
    return Replayed(at, "/srv/p", "pass_clean", Size(5000, 5000, 1500))


def prices(**fields: Any) -> Prices:
    return Prices("judge-model", 1000, Output(44, "a test"), "auto", START)._replace(**fields)


def kind_of(usage: Usage | None) -> str:
    assert usage is not None
    return "read" if usage.cache_read_tokens else "write" if usage.cache_write_5m_tokens else "plain"
