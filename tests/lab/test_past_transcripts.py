"""
Recorded sessions as the harvest and the replay find them: each stop once, and nothing that could not be read passed over in silence.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from turngate.lab.commands import harvest, replay
from turngate.lab.errors import LabError
from turngate.lab.past.harvest import harvest as harvest_all
from turngate.lab.past.replay import plan
from turngate.lab.past.replay import replay as replay_all
from turngate.lab.past.stops import id_of
from turngate.stopgate.console import Parser
from turngate.stopgate.transcript.lines import LONGEST_LINE
from turngate.stopgate.transcript.stops import PastStop

from ..stopgate.transcripts import Session

SECRET = "ghp_" + "a1B2" * 9


class Said(NamedTuple):
    """
    What a command found and said.
    """

    stops: int
    """That were kept, or played."""
    out: str
    err: str


Look = Callable[..., Said]


@pytest.fixture(name="environ")
def a_user(tmp_path: Path) -> dict[str, str]:
    """
    A user with a home of their own.
    """
    return {
        "HOME": str(tmp_path),
        "TURNGATE_CONFIG": str(tmp_path / "config.toml"),
        "TURNGATE_STATE_DIR": str(tmp_path / "state"),
    }


@pytest.fixture(name="look", params=["harvest", "replay"])
def a_command(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str], environ: dict[str, str]
) -> Look:
    """
    Either command, run in this process.
    """
    parser, out = Parser(), tmp_path / "cases.jsonl"
    add, output = {"harvest": (harvest.add, ["--out", out]), "replay": (replay.add, ["--json"])}[request.param]
    add(parser.add_subparsers())

    def look(*paths: object, **more: str) -> Said:
        asked = parser.parse_args([request.param, "--jobs", "1", *map(str, output), *map(str, paths)])
        assert asked.command(asked, environ | more) == 0
        said = capsys.readouterr()
        if request.param == "harvest":
            return Said(len(out.read_text().splitlines()), said.out + out.read_text(), said.err)
        return Said(json.loads(said.out)["total"]["stops"], said.out, said.err)

    return look


def a_session(name: str = "s1", *, at: str = "2026-11-30T10:00:00Z") -> Session:
    session = Session()
    session.prompt("Go on", prompt_id=f"{name}-p", sessionId=name, timestamp=at)
    session.says("Done.", message=f"{name}-m", sessionId=name, timestamp=at)
    return session


def write(folder: Path, session: Session, name: str = "s1.jsonl") -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    return Path(session.write(folder, name))


def too_deep(folder: Path) -> None:
    """
    Make a folder that nobody can look into by its path, not even root.
    """
    folder.mkdir(exist_ok=True)
    place = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=place)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)


# What cannot be read


def linked_to_itself(folder: Path) -> str:
    (folder / "x.jsonl").symlink_to("x.jsonl")
    return "1 file or folder could not be read: x.jsonl: "


def closed(folder: Path) -> str:
    too_deep(folder / "deep")
    return f"1 file or folder could not be read: {folder}/deep/d"


def utf_16(folder: Path) -> str:
    (folder / "x.jsonl").write_text(a_session().data().decode(), "utf-16")
    return "1 file or folder could not be read: x.jsonl: not JSON Lines"


def binary(folder: Path) -> str:
    (folder / "x.jsonl").write_bytes(gzip.compress(os.urandom(200_000)))
    return "1 file or folder could not be read: x.jsonl: not JSON Lines"


def many(folder: Path) -> str:
    for number in range(5):
        (folder / f"x{number}.jsonl").write_text("[]\n")
    named = "; ".join(f"x{number}.jsonl: not JSON Lines" for number in range(3))
    return f"5 files or folders could not be read: {named}, and 2 more"


UNREADABLE = pytest.mark.parametrize("make", [linked_to_itself, closed, utf_16, binary, many])


@UNREADABLE
def test_what_cannot_be_read_is_one_line_beside_the_figures(
    make: Callable[[Path], str], look: Look, tmp_path: Path
) -> None:
    """
    It says how many there are and names the first; all else is read.
    """
    folder = write(tmp_path / "in", a_session()).parent
    told = make(folder)

    found = look(folder)

    assert found.stops == 1
    assert told in found.err
    assert found.err.count("\n") == 1


@UNREADABLE
def test_where_nothing_can_be_read_that_is_the_error(make: Callable[[Path], str], look: Look, tmp_path: Path) -> None:
    """
    The same line; there are no figures.
    """
    (tmp_path / "in").mkdir()
    told = make(tmp_path / "in")

    with pytest.raises(LabError) as error:
        look(tmp_path / "in")

    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_path_that_is_linked_to_itself_is_one_line(look: Look, tmp_path: Path) -> None:
    """
    As one in a folder is.
    """
    linked_to_itself(tmp_path)

    with pytest.raises(LabError, match=r"x\.jsonl: Too many levels"):
        look(tmp_path / "x.jsonl")


@pytest.mark.parametrize("data", [b"", b"\n\n", b'\n{"type":"summary"}\n'], ids=["empty", "blank", "no-turn"])
def test_a_transcript_without_a_stop_is_read(data: bytes, look: Look, tmp_path: Path) -> None:
    """
    A session that never stopped is no fault.
    """
    (tmp_path / "x.jsonl").write_bytes(data)

    assert look(tmp_path / "x.jsonl")[::2] == (0, "")


def test_a_reply_that_is_too_long_is_counted(look: Look, tmp_path: Path) -> None:
    """
    It was a stop, but no reply is known of it.
    """
    session = a_session()
    session.prompt("more")
    session.says("x" * LONGEST_LINE, message="long", timestamp="2026-11-30T11:00:00Z")

    found = look(write(tmp_path, session))

    assert found.stops == 1
    assert "reply_too_long: 1" in found.out or json.loads(found.out)["overlong_stops"] == 1


# Each stop once


def linked(file: Path) -> list[Path]:
    (file.parent / "link.jsonl").symlink_to(file)
    return [file.parent]


def linked_hard(file: Path) -> list[Path]:
    (file.parent / "link.jsonl").hardlink_to(file)
    return [file.parent]


def twice(file: Path) -> list[Path]:
    return [file, file, file.parent]


def copied(file: Path) -> list[Path]:
    (file.parent / "copy.jsonl").write_bytes(file.read_bytes())
    return [file.parent]


def stamped_anew(file: Path) -> list[Path]:
    text = file.read_text().replace("2026-11-30", "2026-12-24").replace("old", "new")
    (file.parent / "resumed.jsonl").write_text('{"type":"summary"}\n' + text)
    return [file.parent]


def with_ids(session: Session) -> Session:
    return session


def without_message_ids(session: Session) -> Session:
    session.lines = [line.replace(b'"id":"s1-m",', b"") for line in session.lines]
    return session


def with_prompt_ids_alone(session: Session) -> Session:
    session.lines = [line.replace(b'"parentUuid"', b'"p"') for line in without_message_ids(session).lines]
    return session


@pytest.mark.parametrize("again", [linked, linked_hard, twice, copied, stamped_anew])
@pytest.mark.parametrize("keep", [with_ids, without_message_ids, with_prompt_ids_alone])
def test_a_stop_that_is_met_twice_counts_once(
    keep: Callable[[Session], Session], again: Callable[[Path], list[Path]], look: Look, tmp_path: Path
) -> None:
    """
    Under another name, in a copy, or in a session that was resumed and has other times.
    """
    file = write(tmp_path / "in", keep(a_session()))

    assert look(*again(file)).stops == 1


def test_stops_without_any_id_are_told_apart(look: Look, tmp_path: Path) -> None:
    """
    By where they stand in their session.
    """
    session = Session()
    for _ in range(2):
        session.prompt("Go on", uuid="", parentUuid=None)
        session.block({"type": "text", "text": "Done."}, message="", uuid="", parentUuid=None, stop="end_turn")
    session.lines = [line.replace(b'"id":"msg_', b'"no":"msg_') for line in session.lines]

    assert look(write(tmp_path / "in", session)).stops == 2


def test_another_agent_message_or_reply_is_another_stop() -> None:
    """
    And another time or file is not.
    """
    stop = PastStop("a", 1, agent_id="a1", message_id="m1", reply="Done.", at="2026-11-30T10:00:00Z")
    others = [stop._replace(agent_id="a2"), stop._replace(message_id="m2"), stop._replace(reply="No.")]

    assert len({id_of(one) for one in (stop, *others)}) == 4
    assert id_of(stop._replace(path="b", end=2, at="", session_id="s2")) == id_of(stop)


# The person's own places and names


def test_the_clients_folder_may_begin_with_a_tilde(look: Look, tmp_path: Path) -> None:
    """
    In `CLAUDE_CONFIG_DIR`, too, it stands for the home.
    """
    write(tmp_path / "own/projects/p", a_session())

    assert look(CLAUDE_CONFIG_DIR="~/own").stops == 1


def test_names_are_masked_and_cleaned(look: Look, tmp_path: Path) -> None:
    """
    Session, model, version and project come from the file too.
    """
    session = Session(version=f"2 {SECRET}", cwd=f"/home/dev/{SECRET}\x1b[2J")
    session.prompt("Go on")
    session.says("Done.", model=f"m {SECRET}", sessionId=f"s {SECRET}\u202e")

    found = look(write(tmp_path, session))

    assert SECRET not in found.out
    assert "[secret]" in found.out
    assert "[2J" not in found.out
    assert "202e" not in found.out


# The replay alone


def test_a_stop_is_of_its_own_day(environ: dict[str, str], tmp_path: Path) -> None:
    """
    Whatever the clock said before; without a time it is of the day before it.
    """
    session = Session()
    times = ("2026-11-29T10:00:00Z", "2036-01-01T00:00:00Z", "2026-11-30T10:00:00Z", "")
    for number, at in enumerate(times):
        session.prompt(f"Go on {number}")
        session.says(f"Done {number}.", timestamp=at)

    played = replay_all([write(tmp_path, session)], plan(environ), jobs=1)

    assert [f"{stop.at:%Y-%m-%d}" for stop in played.stops] == ["2026-11-29", "2026-11-30", "2026-11-30", "2036-01-01"]


def test_a_resumed_session_counts_on_the_first_day(environ: dict[str, str], tmp_path: Path) -> None:
    """
    Also where only the days of the copy are asked for.
    """
    stamped_anew(write(tmp_path, a_session()))
    files = sorted(tmp_path.glob("*.jsonl"))

    played = replay_all(files, plan(environ, since=date(2026, 12, 1)), jobs=1)

    assert (len(played.stops), played.repeated) == (0, 1)


# Interrupted


@pytest.mark.parametrize("does", ["harvest", "replay"])
def test_interrupted_no_process_runs_on(does: str, environ: dict[str, str], tmp_path: Path) -> None:
    """
    What was given out ahead is taken back.
    """
    files = [write(tmp_path / "in", a_session(f"s{number}"), f"s{number}.jsonl") for number in range(12)]

    def interrupt(*_: int) -> None:
        raise KeyboardInterrupt

    run = {
        "harvest": partial(harvest_all, files, out=tmp_path / "out.jsonl"),
        "replay": partial(replay_all, files, plan(environ)),
    }[does]
    with pytest.raises(KeyboardInterrupt):
        run(jobs=2, progress=interrupt)

    assert multiprocessing.active_children() == []
