"""
The harvest: every turn of recorded sessions as a case, masked, once, whatever happens on the way.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
from pathlib import Path

import pytest

from turngate.lab.cases import read_cases
from turngate.lab.commands.harvest import add
from turngate.lab.errors import LabError
from turngate.lab.past import harvest as harvest_module
from turngate.lab.past.harvest import Gathered, Way, gather, harvest
from turngate.lab.past.harvest_file import Sample
from turngate.stopgate.console import Parser

from ..shared import SHARED, needs_shared
from ..stopgate.transcripts import Session, notification


def session_of(turns: int, *, name: str = "s1") -> Session:
    session = Session()
    for turn in range(turns):
        session.prompt(f"Request {turn}", prompt_id=f"p{turn}", sessionId=name)
        session.runs("Bash", "1 passed", command=f"pytest -q tests/test_{turn}.py")
        session.says(
            f"Reply {turn}.", message=f"{name}-m{turn}", sessionId=name, timestamp=f"2026-11-30T10:00:{turn:02}Z"
        )
    return session


def sessions(folder: Path, count: int, turns: int = 3) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        session_of(turns, name=f"s{number}").write(folder, f"s{number}.jsonl")
    return folder


def run(*arguments: object, environ: dict[str, str] | None = None) -> int:
    parser = Parser()
    add(parser.add_subparsers())
    asked = parser.parse_args(["harvest", *map(str, arguments)])
    code: int = asked.command(asked, environ or {"HOME": os.environ["HOME"]})
    return code


def ids_in(out: Path) -> list[str]:
    return [json.loads(line)["id"] for line in out.read_text().splitlines()]


def test_each_stop_is_a_case(tmp_path: Path):
    """
    With the turn that the gate would have seen, and where it came from; nobody has labelled it.
    """
    folder, out = sessions(tmp_path / "in", 1, turns=2), tmp_path / "out.jsonl"

    found = harvest([folder], out=out, jobs=1)

    first, second = read_cases(out)
    assert (found.stops, found.cases, found.skipped) == (2, 2, {})
    assert (second.turn.request, second.turn.reply, second.turn.previous_reply) == ("Request 1", "Reply 1.", "Reply 0.")
    assert [call.line for call in second.turn.tool_calls] == ["Bash: pytest -q tests/test_1.py -> exit 0: 1 passed"]
    assert (second.source, second.session, second.client_version, second.model) == (
        "s0.jsonl#2",
        "s0",
        "2.1.328",
        "claude-opus-5-5",
    )
    assert (first.labels, first.sample, first.split, first.tags) == (None, "picked", "dev", [])


def test_the_file_is_its_owners_alone(tmp_path: Path):
    """
    Turns of a person's work: mode 0600, and no path of the person's in it or beside it.
    """
    folder, out = sessions(tmp_path / "in", 1), tmp_path / "out.jsonl"

    harvest([folder], out=out, jobs=1)

    beside = tmp_path / "out.jsonl.done"
    assert [stat.S_IMODE(file.stat().st_mode) for file in (out, beside)] == [0o600, 0o600]
    assert str(tmp_path) not in out.read_text() + beside.read_text()


def test_secrets_are_masked(tmp_path: Path):
    """
    In prompts, commands, outputs and replies.
    """
    secret = "ghp_" + "a1B2" * 9
    session = Session()
    session.prompt(f"use {secret}")
    session.runs("Bash", f"token {secret}", command=f"curl -H 'Authorization: Bearer {secret}' x")
    session.says(f"I used {secret}.")
    session.write(tmp_path)

    harvest([tmp_path], out=tmp_path / "cases", jobs=1)

    text = (tmp_path / "cases").read_text()
    assert secret not in text
    assert "[secret]" in text


def test_what_the_gate_would_not_judge_is_counted(tmp_path: Path):
    """
    Under the gate's own codes: an empty reply, a wake-up that is pending, a turn that was held twice.
    """
    session = Session()
    session.prompt("one")
    session.block({"type": "thinking", "thinking": "x"}, stop="end_turn")
    session.prompt("two")
    session.queue("enqueue", notification("b1"))
    session.says("I wait.")
    session.prompt("three")
    for _ in range(2):
        session.says("Done.")
        session.held("no", command="/usr/bin/turngate-hook")
    session.says("Done at last.")
    session.write(tmp_path)

    found = harvest([tmp_path], out=tmp_path / "cases", jobs=1)

    assert found.skipped == {"pass_empty_reply": 1, "pass_wakeup_pending": 1, "pass_cap_spent": 1}
    assert (found.stops, found.cases) == (5, 2)


def test_an_event_that_the_gate_leaves_alone_is_skipped(tmp_path: Path):
    """
    As by `gate.events`.
    """
    session = Session(sidechain=True)
    session.prompt("look", agentId="a1")
    session.says("Done.", agentId="a1")
    path = Path(session.write(tmp_path, "agent-a1.jsonl"))

    assert gather(path, Way(events=("Stop",))).skipped == {"pass_off": 1}
    (line,) = gather(path, Way()).cases.values()
    assert (json.loads(line)["tags"], json.loads(line)["turn"]["subagent"]) == (["subagent"], True)


def test_a_task_that_runs_is_not_told_as_uncollected(tmp_path: Path):
    """
    It counts as running where it was launched, and no more once it ended unread.
    """
    session = Session()
    session.prompt("build")
    session.runs("Bash", "", details={"backgroundTaskId": "b1"}, command="make", run_in_background=True)
    session.says("It runs.")
    path = Path(session.write(tmp_path))

    (line,) = gather(path, Way()).cases.values()

    assert json.loads(line)["turn"]["facts"]["uncollected_background"] == []


def test_run_again_it_goes_on(tmp_path: Path):
    """
    What is done is not read again; what is new or has grown is, and nothing comes twice.
    """
    folder, out = sessions(tmp_path / "in", 2), tmp_path / "out.jsonl"
    harvest([folder], out=out, jobs=1)
    before = out.read_text()

    again = harvest([folder], out=out, jobs=1)
    session_of(5, name="s0").write(folder, "s0.jsonl")
    session_of(1, name="new").write(folder, "new.jsonl")
    grown = harvest([folder], out=out, jobs=1)

    assert (again.done_before, again.stops) == (2, 0)
    assert (grown.done_before, grown.known, grown.cases) == (1, 3, 9)
    assert out.read_text().startswith(before)
    assert len(set(ids_in(out))) == 9


@pytest.mark.parametrize("kept", [0, 0.3, 0.7, 1], ids=lambda share: f"kept-{share}")
def test_after_a_crash_nothing_is_lost_or_twice(kept: float, tmp_path: Path):
    """
    Cut off anywhere in either file, the next run makes it whole.
    """
    folder, out = sessions(tmp_path / "in", 4), tmp_path / "out.jsonl"
    harvest([folder], out=out, jobs=1)
    whole, done = out.read_bytes(), tmp_path / "out.jsonl.done"
    out.write_bytes(whole[: int(len(whole) * kept)])
    done.write_bytes(done.read_bytes().splitlines(keepends=True)[0] + b'"half')

    harvest([folder], out=out, jobs=1)

    assert sorted(out.read_bytes().splitlines()) == sorted(whole.splitlines())


@pytest.mark.parametrize("sample", [None, 4], ids=["all", "sample"])
def test_where_the_cases_are_gone_it_begins_anew(sample: int | None, tmp_path: Path):
    """
    What was done is worth nothing without its cases.
    """
    folder, out = sessions(tmp_path / "in", 2), tmp_path / "out.jsonl"
    harvest([folder], out=out, sample=sample, jobs=1)
    whole = out.read_bytes()
    for gone in tmp_path.glob("out.jsonl*"):
        if gone.suffix != ".done":
            gone.unlink()

    found = harvest([folder], out=out, sample=sample, jobs=1)

    assert (found.done_before, out.read_bytes()) == (0, whole)


def test_interrupted_it_keeps_what_is_done(tmp_path: Path):
    """
    Ctrl-C in the middle costs the transcript that was read.
    """
    folder, out = sessions(tmp_path / "in", 3), tmp_path / "out.jsonl"

    def interrupt(done: int, _of: int, _cases: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        harvest([folder], out=out, jobs=1, progress=interrupt)
    kept = len(ids_in(out))
    found = harvest([folder], out=out, jobs=1)

    assert (kept, found.done_before, found.cases) == (6, 2, 9)


def test_a_session_in_two_folders_is_kept_once(tmp_path: Path):
    """
    A copy under another name, and one that goes on under another session id with the same messages.
    """
    folder = sessions(tmp_path / "in", 1)
    session_of(3, name="s0").write(folder, "copy.jsonl")
    resumed = (folder / "s0.jsonl").read_text().replace('"sessionId":"s0"', '"sessionId":"other"')
    (folder / "resumed.jsonl").write_text(resumed)

    found = harvest([folder], out=tmp_path / "out.jsonl", jobs=1)

    assert (found.stops, found.cases, found.known) == (9, 3, 6)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_sample_is_the_same_whatever_the_jobs(jobs: int, tmp_path: Path):
    """
    The cases of the lowest hashes of seed and id, of all transcripts.
    """
    folder, out, every = sessions(tmp_path / "in", 5), tmp_path / "out.jsonl", tmp_path / "all.jsonl"
    harvest([folder], out=every, jobs=1)

    found = harvest([folder], out=out, sample=4, seed=7, jobs=jobs)

    assert found.cases == 4
    assert ids_in(out) == sorted(ids_in(every), key=Sample(4, 7).rank)[:4]
    assert {case.sample for case in read_cases(out)} == {"random"}
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_sample_goes_on_with_new_sessions(tmp_path: Path):
    """
    Harvested in two steps, it is that of one.
    """
    folder, out, at_once = sessions(tmp_path / "in", 3), tmp_path / "out.jsonl", tmp_path / "at_once.jsonl"
    harvest([folder], out=out, sample=5, jobs=1)
    sessions(folder, 6)

    harvest([folder], out=out, sample=5, jobs=1)
    harvest([folder], out=at_once, sample=5, jobs=1)

    assert out.read_text() == at_once.read_text()


def test_each_turn_is_as_likely_to_be_drawn():
    """
    Over 2,000 seeds, each of ten cases is of a sample of three about 600 times (six standard deviations: 123).
    """
    ids = [f"t-{number}" for number in range(10)]
    drawn = [case for seed in range(2_000) for case in sorted(ids, key=Sample(3, seed).rank)[:3]]

    assert all(abs(drawn.count(case) - 600) < 123 for case in ids)


@pytest.mark.skipif(
    multiprocessing.get_all_start_methods()[0] != "fork", reason="the worker has to be given a fault by a fork"
)
def test_a_worker_that_dies_costs_its_transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """
    All others are harvested, and one line tells of it.
    """
    folder = sessions(tmp_path / "in", 5)
    monkeypatch.setattr(harvest_module, "gather", dying)

    found = harvest([folder], out=tmp_path / "out.jsonl", jobs=2)

    assert found.problems == ["s2.jsonl: the process that read it ended"]
    assert found.cases == 12


def dying(path: Path, way: Way) -> Gathered:
    if path.name == "s2.jsonl":
        os.kill(os.getpid(), signal.SIGKILL)
    return gather(path, way)


@pytest.mark.parametrize("name", ["", ".", "pipe", "done-pipe"])
def test_what_is_no_file_is_not_written_over(tmp_path: Path, name: str):
    """
    No name, a folder, a FIFO, or a FIFO where it keeps what is done: one line, and nobody waits for its other end.
    """
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "done-pipe.done")
    out = tmp_path / name if name not in ("", ".") else Path(name)

    with pytest.raises(LabError, match="expected the name of a file|no regular file"):
        harvest([sessions(tmp_path / "in", 1)], out=out, jobs=1)


def test_a_transcript_that_cannot_be_read_is_one_line(tmp_path: Path):
    """
    A link to nowhere and a folder of that name; the next run tries them again.
    """
    folder, out = sessions(tmp_path / "in", 1), tmp_path / "out.jsonl"
    (folder / "gone.jsonl").symlink_to(tmp_path / "nowhere")

    found = harvest([folder], out=out, jobs=1)

    assert (found.cases, len(found.problems)) == (3, 1)
    assert found.problems[0].startswith("gone.jsonl: ")
    assert len(harvest([folder], out=out, jobs=1).problems) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["missing"], "no such file or folder", id="missing"),
        pytest.param(["empty"], "no transcript (*.jsonl) in empty", id="empty"),
        pytest.param(["in", "--seed", "1"], "--seed: draws a sample", id="seed-alone"),
        pytest.param(["in", "--out", "mine.jsonl"], "is no harvest to go on with", id="another-file"),
        pytest.param(["in", "--out", "old.jsonl", "--sample", "2"], "another --sample or --seed", id="another-sample"),
        pytest.param(["in", "--out", "in/s0.jsonl/x"], "cannot be written", id="not-writable"),
        pytest.param(["in", "--out", "self.jsonl"], "cannot be written: Too many levels", id="linked-to-itself"),
        pytest.param(["in", "--out", "bad.jsonl"], "bad.jsonl.done: line 3: damaged", id="damaged"),
    ],
)
def test_bad_arguments_are_one_line(arguments: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """
    That names what is wrong; nobody's file is touched.
    """
    monkeypatch.chdir(tmp_path)
    sessions(tmp_path / "in", 1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine.jsonl").write_text("mine\n")
    harvest([tmp_path / "in"], out=tmp_path / "old.jsonl", jobs=1)
    (tmp_path / "self.jsonl").symlink_to("self.jsonl")
    (tmp_path / "bad.jsonl").touch()
    (tmp_path / "bad.jsonl.done").write_text((tmp_path / "old.jsonl.done").read_text() + "[1]\n")

    with pytest.raises(LabError) as error:
        run(*arguments[:1], "--out", "out.jsonl", *arguments[1:])

    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert (tmp_path / "mine.jsonl").read_text() == "mine\n"


def test_two_at_once_do_not_write_one_file(tmp_path: Path):
    """
    The second says so.
    """
    folder, out = sessions(tmp_path / "in", 1), tmp_path / "out.jsonl"

    def again(*_: int) -> None:
        harvest([folder], out=out, jobs=1)

    with pytest.raises(LabError, match="another process fills this file"):
        harvest([folder], out=out, jobs=1, progress=again)


def test_the_command_reads_the_clients_own_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """
    Where no path is named, that of `CLAUDE_CONFIG_DIR`; and it says what it did.
    """
    sessions(tmp_path / "projects", 2)

    code = run(
        "--out", tmp_path / "out.jsonl", "--jobs", 1, environ={"CLAUDE_CONFIG_DIR": str(tmp_path), "HOME": "/nowhere"}
    )

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[:3] == [
        "transcripts: 2",
        "stops: 6",
        "skipped, since the gate would not have asked a judge: 0",
    ]
    assert lines[3] == f"cases in {tmp_path / 'out.jsonl'}: 6"
    assert lines[4].endswith(" MB/s")


def test_a_turn_of_thousands_of_calls_is_a_case(tmp_path: Path):
    """
    Cut to what a case may hold.
    """
    session = Session()
    session.prompt("go")
    for number in range(2_100):
        session.runs("Read", "x", file_path=f"f{number}.py")
    session.says("Done.")
    path = Path(session.write(tmp_path))

    found = gather(path, Way())

    assert (found.problem, len(found.cases)) == ("", 1)


@needs_shared
def test_the_real_sessions_are_harvested(tmp_path: Path):
    """
    Every stop of the shared sessions is a case that can be read.
    """
    assert SHARED is not None
    out = tmp_path / "out.jsonl"

    found = harvest([SHARED / "data/transcripts"], out=out, jobs=1)

    assert (found.transcripts, found.stops, found.problems) == (44, 134, [])
    assert len(read_cases(out)) == found.cases == 134
