"""
`turngate serve`, `status` and `stop` as a person meets them, each in a process of its own.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.stopgate import service_commands
from turngate.stopgate.starting import NEVER_SERVED

from .hook_runner import CLAIM, Hook, a_stop
from .raw_service import RawService
from .serve_process import Person, Said

NONE_RUNS = "no service is running\n"
NO_STOP_YET = "last stop      none was decided yet; `turngate doctor` says whether the hooks are there\n"


@pytest.fixture(name="person")
def person_fixture(short_path: Path) -> Person:
    return Person(short_path / "p")


@pytest.fixture(name="api")
def api_fixture() -> Iterator[ScriptedMessagesApi]:
    with ScriptedMessagesApi(otherwise=CLAIM) as api:
        yield api


def assert_one_line(said: Said, *words: str) -> None:
    """
    The command failed, with exit 2 and one line that has the words.
    """
    assert said.code == 2, said
    assert said.out == ""
    assert said.err.startswith("turngate: ")
    assert said.err.count("\n") == 1
    assert all(word in said.err for word in words), said.err


def test_without_a_service_all_commands_say_so(person: Person) -> None:
    """
    It is no failure, and leaves no file behind.
    """
    assert person.run("status") == (0, NONE_RUNS + NO_STOP_YET, "")
    assert person.run("status", "--json") == (0, "null\n", "")
    assert person.run("stop") == (0, "no service is running\n", "")
    assert not person.state.exists()


def test_a_service_is_served_looked_at_and_ended(person: Person) -> None:
    """
    `serve` stays in the foreground until `stop`, and ends without a word.
    """
    with person.serving() as process:
        status = person.run("status")
        found = json.loads(person.run("status", "--json").out)
        stopped = person.run("stop")
        code = process.wait(60)
        assert process.stderr
        assert process.stderr.read() == ""

    assert status.code == 0
    assert f"(process {process.pid})" in status.out
    assert "none asked yet" in status.out
    assert (found["status"], found["pid"], found["decisions"], found["calls"]) == ("ok", process.pid, 0, 0)
    assert found["spent_today_usd"] == "0"
    assert stopped == (0, f"the service is ended (process {process.pid})\n", "")
    assert code == 0
    assert person.run("status").out.startswith(NONE_RUNS)
    assert not (person.state / "turngate.sock").exists()


def test_status_says_who_was_asked_with_which_key_and_what_went_wrong(
    short_path: Path, api: ScriptedMessagesApi
) -> None:
    """
    The variable and the setting are named, never the key itself.
    """
    hook = Hook(
        short_path,
        ANTHROPIC_API_KEY="sk-ant-the-key",
        TURNGATE_JUDGE_BASE_URL=api.url,
        TURNGATE_JUDGE_DEADLINE_S="60",
    )
    person = Person(short_path / "p", **hook.environ)
    with person.serving():
        assert hook.run(a_stop()).holds
        api.add("no verdict")
        hook.run(a_stop(prompt_id="prompt-2"))
        status, found = person.run("status").out, json.loads(person.run("status", "--json").out)

    place = api.url.removeprefix("http://")
    assert f"claude-sonnet-5-5 (anthropic) at {place} by judge.base_url, key from ANTHROPIC_API_KEY" in status
    assert "sk-ant-the-key" not in status + json.dumps(found)
    assert (found["decisions"], found["calls"], found["breaker_open"]) == (2, 2, [])
    assert found["hook_ms"]["Stop"]["p50"] <= found["hook_ms"]["Stop"]["p95"]
    assert found["last_error"]["what"] == "pass_judge_unreadable"
    assert float(found["spent_today_usd"]) > 0


def test_the_open_breaker_is_named_by_status_and_metrics(short_path: Path) -> None:
    """
    Five failures in a row, and the endpoint is left alone: a person sees which.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
        hook = Hook(
            short_path,
            ANTHROPIC_API_KEY="k",
            TURNGATE_JUDGE_BASE_URL=f"http://{nobody}",
            TURNGATE_JUDGE_DEADLINE_S="60",
        )
        person = Person(short_path / "p", **hook.environ)
        with person.serving():
            for number in range(2):
                hook.run(a_stop(prompt_id=f"prompt-{number}"))
            found = json.loads(person.run("status", "--json").out)
            held_back = hook.run(a_stop(prompt_id="prompt-9"))

    assert found["breaker_open"] == [nobody]
    assert held_back.out == b""
    assert hook.outcomes()[-1] == "pass_breaker_open"


def test_a_second_service_is_refused(person: Person) -> None:
    """
    One line names the process that serves already.
    """
    with person.serving() as process:
        assert_one_line(person.run("serve"), "another service", str(process.pid))
        assert "alive since" in person.run("status").out


def test_a_socket_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    """
    The limit is the system's: 108 bytes with the last one NUL.
    """
    person = Person(tmp_path / ("p" * 100))

    assert_one_line(person.run("serve"), "107", "TURNGATE_STATE_DIR")


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_state_directory_in_which_others_may_write_is_refused(person: Person, mode: int) -> None:
    """
    They could put a socket of their own in the place of ours.
    """
    person.state.mkdir()
    person.state.chmod(mode)

    assert_one_line(person.run("serve"), str(person.state), f"{mode:04o}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_state_directory_of_another_user_is_refused(person: Person) -> None:
    """
    Whoever owns it may read what is in it.
    """
    person.state.mkdir()
    os.chown(person.state, 65534, 65534)

    assert_one_line(person.run("serve"), str(person.state), "another user")


def test_a_port_in_use_is_refused(person: Person) -> None:
    """
    One line names setting and port, and the socket is not left behind.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        assert_one_line(person.run("serve", environ={"TURNGATE_SERVICE_HTTP_PORT": port}), "service.http_port", port)

    assert not (person.state / "turngate.sock").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TURNGATE_SERVICE_HTTP_PORT", "65536"),
        ("TURNGATE_SERVICE_IDLE_EXIT_S", "soon"),
        ("TURNGATE_LEDGER_URL", "mysql://x"),
    ],
)
def test_a_bad_setting_is_refused(person: Person, name: str, value: str) -> None:
    """
    A service that starts with half of its settings would be worse than none.
    """
    assert_one_line(person.run("serve", environ={name: value}), name)


def test_a_service_that_hangs_is_told_from_none(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    `status` says that it does not answer; `stop` says how long it waited.
    """
    monkeypatch.setattr(service_commands, "ANSWER_WAIT_S", 0.3)
    monkeypatch.setattr(service_commands, "END_WAIT_S", 0.3)
    with person.serving() as process:
        process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(service_commands.ServiceTrouble, match="does not answer"):
                service_commands.standing(person.environ)
            with pytest.raises(service_commands.ServiceTrouble, match=f"process {process.pid} has not ended"):
                service_commands.end_service(person.environ)
        finally:
            process.send_signal(signal.SIGCONT)


def test_who_holds_the_lock_without_a_socket_is_not_ended(person: Person) -> None:
    """
    The number in a file may be anybody's: who is to end is who listens, and that is told by the system.
    """
    person.state.mkdir()
    lock = person.state / "turngate.service.lock"
    lock.write_text(f"{os.getpid()}\n")
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        assert person.run("stop") == (0, "no service is running\n", "")


def test_status_says_why_the_last_start_failed(person: Person) -> None:
    """
    A service that a hook starts has nobody to speak to; its reason is kept, and gone with the next that serves.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        started = subprocess.run(
            (sys.executable, "-I", "-m", "turngate.stopgate.serving"),
            env={**person.environ, "TURNGATE_SERVICE_HTTP_PORT": port},
            check=False,
            timeout=60,
        )
    said = person.run("status").out
    with person.serving():
        assert "alive since" in person.run("status").out

    assert started.returncode == NEVER_SERVED
    failure = f"the last start failed: service.http_port: port {port} of 127.0.0.1 is in use\n"
    assert said.startswith(NONE_RUNS + failure)
    assert person.run("status").out.startswith(NONE_RUNS)


def test_a_lock_that_nobody_holds_is_of_a_service_that_is_gone(person: Person) -> None:
    """
    The number in it may be another process's by now.
    """
    person.state.mkdir()
    (person.state / "turngate.service.lock").write_text(f"{os.getpid()}\n")

    assert person.run("stop").out == "no service is running\n"


def test_a_service_that_nobody_needs_ends_by_itself(person: Person) -> None:
    """
    After `service.idle_exit_s` without a request; looking at it is one.
    """
    with person.serving(TURNGATE_SERVICE_IDLE_EXIT_S="1") as process:
        assert process.wait(60) == 0

    assert person.run("status").out.startswith(NONE_RUNS)


def test_another_server_on_the_socket_is_no_service(person: Person) -> None:
    """
    What answers in another way is named, not believed.
    """
    with RawService(person.state, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]"):
        assert_one_line(person.run("status"), "turngate.sock")
