from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.stopgate.cli import main
from turngate.stopgate.events import Event
from turngate.stopgate.pausing import (
    LONGEST,
    BadPauses,
    add_pause,
    end_pauses,
    new_pause,
    pause_for,
    read_duration,
    read_pauses,
)

from .hook_runner import HELD, Hook, a_stop

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def run(hook: Hook, *arguments: str, environ: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(arguments, {**hook.environ, **(environ or {})})
    return code, out.getvalue(), err.getvalue()


def test_a_pause_lets_every_stop_pass_and_resume_ends_it(hook: Hook) -> None:
    """
    A stop that is held otherwise passes with `pass_off` and says why in the log; resuming ends the pause at once.
    """
    code, out, _ = run(hook, "pause", "--for", "2h")
    assert (code, out.startswith("paused: everything, until 20")) == (0, True)

    assert hook.run(HELD).out == b""
    assert run(hook, "resume")[1] == "resumed: everything\n"
    assert hook.run(HELD).holds

    first, second = hook.log()
    assert (first["outcome"], second["outcome"]) == ("pass_off", "block_background")
    assert first["detail"].startswith("paused: everything, until ")
    assert run(hook, "resume")[1] == "nothing was paused\n"


def test_no_command_is_refused_in_a_pause(hook: Hook) -> None:
    """
    A pause is of the gate as a whole.
    """
    call = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "x &"}}
    assert hook.run(call).answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert run(hook, "pause")[0] == 0

    assert hook.run(call).out == b""
    assert hook.outcomes()[-1] == "pass_off"


def test_no_judge_is_asked_in_a_pause(hook: Hook) -> None:
    """
    A pause costs nothing.
    """
    hook.script({"findings": []})
    run(hook, "pause")

    hook.run(a_stop())
    run(hook, "resume")
    hook.run(a_stop())

    assert [len(line["calls"]) for line in hook.log()] == [0, 1]


def test_a_pause_from_an_agents_shell_is_told_once_to_the_person(hook: Hook) -> None:
    """
    The agent cannot switch the gate off in silence: the next stop of each session tells the person, once.
    """
    _, out, _ = run(hook, "pause", environ={"CLAUDECODE": "1"})
    assert "the person is told" in out

    told = [hook.run({**HELD, "session_id": session}).answer for session in ("s1", "s1", "s2")]

    message = "turngate: paused from an agent's shell: everything, until `turngate resume` (`turngate resume` ends it)"
    assert told == [{"systemMessage": message}, {}, {"systemMessage": message}]


def test_a_pause_is_for_one_session_or_one_folder(hook: Hook, tmp_path: Path) -> None:
    """
    Another session, and a folder beside, are held as ever; what lies below the folder is meant too.
    """
    run(hook, "pause", "--session", "s1")
    run(hook, "pause", "--project", str(tmp_path / "a"))

    def holds(session: str, cwd: str) -> bool:
        return hook.run({**HELD, "session_id": session, "cwd": str(tmp_path / cwd)}).holds

    assert not holds("s1", "b")
    assert not holds("s2", "a")
    assert not holds("s3", "a/deep/er")
    assert holds("s4", "ab")
    assert run(hook, "resume", "--session", "s1")[1] == "resumed: session s1\n"
    assert holds("s1", "b")
    assert not holds("s5", "a")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"pauses": 1}', b'{"pauses": [1]}', b'{"pauses": [{"id": "x", "since": "never"}]}', b"\xff"],
)
def test_a_damaged_file_pauses_nothing_and_can_be_mended(content: bytes, hook: Hook) -> None:
    """
    What cannot be read never switches the gate off; `resume` and `pause` put the file right.
    """
    hook.state.mkdir()
    (hook.state / "turngate.pauses.json").write_bytes(content)

    assert hook.run(HELD).holds
    with pytest.raises(BadPauses, match="is damaged"):
        read_pauses(str(hook.state))
    assert run(hook, "resume")[0] == 0
    assert read_pauses(str(hook.state)) == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--for", "soon"], "'soon' is no time", id="no time"),
        pytest.param(["--for", ""], "'' is no time", id="empty"),
        pytest.param(["--for", "0m"], "is no time", id="nothing"),
        pytest.param(["--for", "900d"], "up to a year", id="too long"),
        pytest.param(["--for", "-2h"], "expected one argument", id="negative"),
        pytest.param(["--session", "a", "--project", "b"], "not allowed with", id="both"),
    ],
)
def test_a_pause_that_cannot_be_is_one_line_and_exit_2(arguments: list[str], says: str, hook: Hook) -> None:
    """
    What is wrong is named, and nothing is paused.
    """
    err = io.StringIO()
    with redirect_stderr(err):
        try:
            code = main(["pause", *arguments], hook.environ)
        except SystemExit as exc:
            code = exc.code

    assert code == 2
    assert says in err.getvalue()
    assert err.getvalue().count("\n") == 1
    assert not hook.state.exists()


def test_a_pause_ends_by_itself(tmp_path: Path) -> None:
    """
    At its end the pause is over; the next one that is made clears it away.
    """
    folder, event = str(tmp_path), Event("Stop", session_id="s")
    add_pause(folder, new_pause(NOW, {}, lasting=HOUR, session="s"), NOW)

    assert pause_for(event, folder, NOW + HOUR - timedelta(seconds=1))
    assert pause_for(event, folder, NOW + HOUR) is None
    add_pause(folder, new_pause(NOW + HOUR, {}, session="t"), NOW + HOUR)
    assert [pause.session for pause in read_pauses(folder)] == ["t"]


def test_a_new_pause_takes_the_place_of_the_same(tmp_path: Path) -> None:
    """
    Pausing twice is one pause, with the later end; ending it removes the file.
    """
    folder = str(tmp_path)
    add_pause(folder, new_pause(NOW, {}, lasting=HOUR), NOW)
    add_pause(folder, new_pause(NOW, {}, lasting=2 * HOUR), NOW)

    (pause,) = read_pauses(folder)
    assert pause.until == NOW + 2 * HOUR
    assert len(end_pauses(folder, NOW)) == 1
    assert not (tmp_path / "turngate.pauses.json").exists()


@given(st.integers(0, 300), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_reads_every_time_up_to_a_year(days: int, hours: int, minutes: int, seconds: int) -> None:
    """
    Days, hours, minutes and seconds add up.
    """
    expected = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    if expected:
        assert read_duration(text) == expected
    else:
        with pytest.raises(BadPauses):
            read_duration(text)


@given(st.text(alphabet="0123456789dhms -+.", max_size=12))
def test_no_text_is_a_time_beyond_the_bounds(text: str) -> None:
    """
    Whatever is read lies above nothing and within a year.
    """
    with suppress(BadPauses):
        assert timedelta(0) < read_duration(text) <= LONGEST


def test_nothing_but_the_file_is_kept(hook: Hook) -> None:
    """
    The file is the user's alone.
    """
    run(hook, "pause")

    path = hook.state / "turngate.pauses.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(json.loads(path.read_text())) == ["pauses"]
