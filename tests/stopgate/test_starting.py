"""
A hook that finds no service starts one: once, with nothing of its own in it, and without waiting long.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from turngate.judge.service.server import HUNG
from turngate.stopgate.cli import main
from turngate.stopgate.failed_start import remember_failure
from turngate.stopgate.service_commands import standing
from turngate.stopgate.starting import COMMAND, NEVER_SERVED, WAIT_S, service_environ

from .hook_runner import HELD, PYTHON, Hook, Ran, assert_sound, ended
from .raw_service import RawService, response

ANSWER = b'{"decision": "block", "reason": "of the new service"}'

PATIENCE_S = 30.0
"""For a service that does come, on a machine that is busy with other things."""

SERVICE = """
import json, os, socket, sys, time
way, report, answer = sys.argv[1:4]
state = os.environ["TURNGATE_STATE_DIR"]
channels = {}
for number in range(100):
    try:
        channels[number] = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
facts = {"pid": os.getpid(), "session": os.getsid(0), "cwd": os.getcwd(), "environ": dict(os.environ), "open": channels}
with open(report, "a") as file:
    file.write(json.dumps(facts) + chr(10))
if way == "fails":
    sys.exit(2)
if way == "never-listens":
    time.sleep(30)
server = socket.socket(socket.AF_UNIX)
server.bind(state + "/turngate.sock")
server.listen(128)
server.settimeout(30)
while True:
    connection, _ = server.accept()
    if way == "hangs-up":
        connection.close()
        sys.exit(int(answer))
    raw = b""
    while b"\\r\\n\\r\\n" not in raw:
        raw += connection.recv(65536)
    length = int(raw.partition(b"content-length: ")[2].partition(b"\\r")[0])
    while len(raw.partition(b"\\r\\n\\r\\n")[2]) < length:
        raw += connection.recv(65536)
    status = "409" if way == "another-version" else "200"
    body = answer if status == "200" else ""
    head = f"HTTP/1.1 {status} X\\r\\nturngate-version: 0.1.0\\r\\ncontent-length: {len(body)}\\r\\n\\r\\n"
    connection.sendall((head + body).encode())
    connection.close()
"""

HOOK = "from turngate.stopgate import starting, hook; starting.COMMAND = {command!r}; starting.WAIT_S = {wait_s}; hook.main()"
PATIENT = f"from turngate.stopgate import starting, hook; starting.WAIT_S = {PATIENCE_S}; hook.main()"


class Stand:
    """
    A user whose hooks start the service above, which behaves in one of its ways.
    """

    def __init__(self, folder: Path) -> None:
        self.hook = Hook(folder, TURNGATE_SERVICE_AUTOSTART="on")
        self.report = folder / "report.jsonl"
        self.answer = ANSWER
        """What the service says, or how it ends where it hangs up."""

    def command(self, way: str = "serves") -> tuple[str, ...]:
        """
        The hook that starts the service.
        """
        service = ("-I", "-c", SERVICE, way, str(self.report), self.answer.decode())
        wait_s = PATIENCE_S if way == "serves" else WAIT_S
        return (PYTHON, "-I", "-c", HOOK.format(command=service, wait_s=wait_s))

    def run(self, way: str = "serves", **environ: str) -> Ran:
        """
        A stop, and the service as the hook starts it.
        """
        return self.hook.run(HELD, self.command(way), environ=environ)

    def services(self) -> list[dict[str, Any]]:
        """
        What each service that was started found around itself.
        """
        return [json.loads(line) for line in self.report.read_text().splitlines()] if self.report.exists() else []

    def assert_decided_here(self, ran: Ran) -> None:
        """
        The stop was decided by the hook's own process.
        """
        assert_sound(ran)
        assert ran.holds
        assert self.hook.outcomes() == ["block_background"]


@pytest.fixture(name="stand")
def make_stand(short_path: Path) -> Iterator[Stand]:
    stand = Stand(short_path)
    yield stand
    for service in stand.services():
        with suppress(ProcessLookupError):
            os.kill(service["pid"], signal.SIGKILL)


def without_id(answer: bytes) -> bytes:
    """
    Give an answer without the decision's id, of which each has its own.
    """
    return re.sub(rb"turngate wrong \w+", b"turngate wrong ID", answer)


def can_connect(path: Path) -> bool:
    """
    Whether anybody listens.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(path)) == 0


def test_the_first_stop_starts_a_service_and_is_answered_by_it(stand: Stand) -> None:
    """
    As is the next stop, which starts none.
    """
    assert [stand.run().out for _ in range(2)] == [ANSWER, ANSWER]
    assert len(stand.services()) == 1
    assert stand.hook.state.stat().st_mode & 0o777 == 0o700
    assert not (stand.hook.state / "turngate.db").exists()


def test_a_service_that_a_hook_starts_does_not_delay_the_client(stand: Stand) -> None:
    """
    The client waits for all who hold the hook's pipes, those that it forgot to close among them: nobody does.
    """
    pipes = [os.pipe() for _ in range(6)]
    process = subprocess.Popen(
        stand.command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=stand.hook.work,
        env=stand.hook.environ,
        pass_fds=[write for _, write in pipes],
    )
    for _, write in pipes:
        os.close(write)
    ran = ended(process, HELD)
    ends = [os.read(read, 1) for read, _ in pipes]  # this waits for as long as anybody holds the other end
    for read, _ in pipes:
        os.close(read)

    assert ran == (0, ANSWER, b"")
    assert ends == [b""] * 6
    assert can_connect(stand.hook.state / "turngate.sock")  # it still runs


def test_a_service_has_nothing_of_the_hook(stand: Stand) -> None:
    """
    Its own session, the root as its working directory, no channel, and nobody's key.
    """
    secrets = {"ANTHROPIC_API_KEY": "k", "TURNGATE_REMOTE_TOKEN": "k", "TURNGATE_MY_KEY": "k", "AWS_SECRET": "k"}
    stand.run(**secrets, CLAUDE_PROJECT_DIR=str(stand.hook.work), TURNGATE_JUDGE_MODEL="m", HTTPS_PROXY="p", LC_ALL="C")
    (service,) = stand.services()

    assert service["session"] == service["pid"]
    assert service["cwd"] == "/"
    assert service["open"] == dict.fromkeys("012", "/dev/null")
    assert service["environ"] == {
        **stand.hook.environ,
        "TURNGATE_JUDGE_MODEL": "m",
        "HTTPS_PROXY": "p",
        "LC_ALL": "C",
    }


@pytest.mark.parametrize(
    ("name", "is_passed_on"),
    [
        *((name, True) for name in ("PATH", "HOME", "LC_CTYPE", "no_proxy", "ALL_PROXY", "TURNGATE_SERVICE_HTTP_PORT")),
        *((name, True) for name in ("XDG_CONFIG_HOME", "SSL_CERT_FILE", "TURNGATE_JUDGE_API_KEY_ENV")),
        *((name, False) for name in ("ANTHROPIC_API_KEY", "TURNGATE_REMOTE_TOKEN", "TURNGATE_TOKEN_X", "TURNGATE_KEY")),
        *((name, False) for name in ("PYTHONPATH", "LD_PRELOAD", "CLAUDECODE", "CLAUDE_PROJECT_DIR", "GITHUB_TOKEN")),
    ],
)
def test_a_service_gets_only_variables_that_it_needs(name: str, is_passed_on: bool) -> None:
    """
    Whatever else is set stays with the hook.
    """
    assert service_environ({name: "x"}, "/s") == {"TURNGATE_STATE_DIR": "/s"} | ({name: "x"} if is_passed_on else {})


def test_the_project_cannot_dress_the_service(stand: Stand) -> None:
    """
    A variable that it sets does not reach a process that serves other projects too.
    """
    (stand.hook.work / ".claude").mkdir()
    settings = {"env": {"HTTPS_PROXY": "evil", "TURNGATE_JUDGE_BASE_URL": "evil", "TURNGATE_SERVICE_AUTOSTART": "off"}}
    (stand.hook.work / ".claude" / "settings.json").write_text(json.dumps(settings))
    stand.run(HTTPS_PROXY="evil", TURNGATE_JUDGE_BASE_URL="evil", TURNGATE_SERVICE_AUTOSTART="off")

    assert "evil" not in stand.services()[0]["environ"].values()


def test_many_hooks_at_once_start_one_service(stand: Stand) -> None:
    """
    The others wait for it, and all are answered.
    """
    processes = [stand.hook.start(stand.command()) for _ in range(12)]
    rans: list[Ran] = []
    threads = [threading.Thread(target=lambda one=one: rans.append(ended(one, HELD))) for one in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert len(stand.services()) == 1
    assert [ran.out for ran in rans] == [ANSWER] * 12


LATE = """
import pathlib, time
def late(there=starting.trusted_environ):
    pathlib.Path({marker!r}).touch()
    while not pathlib.Path({socket!r}).exists():
        time.sleep(0.01)
    return there()
starting.trusted_environ = late
starting._Start.begin = lambda _: pathlib.Path({begun!r}).touch()
"""


def test_a_service_that_came_up_meanwhile_is_used(stand: Stand) -> None:
    """
    Reading the settings takes as long as a service takes to start: before a hook starts one it looks once more.
    """
    marker, begun = stand.hook.home / "marker", stand.hook.home / "begun"
    late = LATE.format(marker=str(marker), begun=str(begun), socket=str(stand.hook.state / "turngate.sock"))
    code = stand.command()[-1].replace("; starting.COMMAND", f"{late}\nstarting.COMMAND")
    process = stand.hook.start((PYTHON, "-I", "-c", code))
    assert process.stdin
    process.stdin.write(json.dumps(HELD).encode())
    process.stdin.close()
    process.stdin = None
    while not marker.exists():
        time.sleep(0.01)
    with RawService(stand.hook.state, response(200, b'{"by": "another"}')):
        out, _ = process.communicate(timeout=60)

    assert out == b'{"by": "another"}'
    assert not begun.exists()


@pytest.mark.parametrize("way", ["fails", "never-listens", "another-version"])
def test_without_a_usable_service_the_stop_is_decided_in_the_process(stand: Stand, way: str) -> None:
    """
    After a second at most.
    """
    stand.assert_decided_here(stand.run(way))
    assert len(stand.services()) == 1


def test_what_a_service_on_its_way_up_broke_off_is_decided_in_the_process(stand: Stand) -> None:
    """
    Its exit code says that it answered nobody, so it has paid for nothing.
    """
    stand.answer = str(NEVER_SERVED).encode()

    stand.assert_decided_here(stand.run("hangs-up"))


@pytest.mark.parametrize("code", [0, 1, HUNG])
def test_what_a_new_service_broke_off_later_is_not_decided_again(stand: Stand, code: int) -> None:
    """
    It may have paid for an answer: the turn ends, as with any service that breaks off.
    """
    stand.answer = str(code).encode()

    ran = stand.run("hangs-up")

    assert ran.out == b""
    assert stand.hook.outcomes() == ["pass_service_error"]


def test_a_service_that_cannot_start_is_not_tried_again_at_once(stand: Stand) -> None:
    """
    Each try costs its stop up to a second; the reason is kept for a minute.
    """
    stand.hook.state.mkdir(mode=0o700)
    remember_failure(str(stand.hook.state), "service.http_port: port 80 of 127.0.0.1 is in use")

    stand.assert_decided_here(stand.run("answers"))

    assert stand.services() == []


def test_a_service_is_not_started_where_the_user_says_so(stand: Stand) -> None:
    """
    `service.autostart = false`, in a file or in the environment.
    """
    config = stand.hook.home / "config.toml"
    config.write_text("[service]\nautostart = false\n")
    del stand.hook.environ["TURNGATE_SERVICE_AUTOSTART"]

    stand.assert_decided_here(stand.run(TURNGATE_CONFIG=str(config)))
    assert stand.services() == []


def test_a_broken_settings_file_is_named_and_starts_nothing(stand: Stand) -> None:
    """
    It is the gate that says what is wrong with it.
    """
    config = stand.hook.home / "config.toml"
    config.write_text("[service]\nautostart = 3\n")
    ran = stand.run(TURNGATE_CONFIG=str(config))

    assert_sound(ran)
    assert str(config).encode() in ran.err
    assert stand.services() == []


def test_a_state_directory_that_cannot_be_made_starts_nothing(stand: Stand) -> None:
    """
    And holds nothing: there is no memory of what was held before.
    """
    stand.hook.state.touch()
    ran = stand.run()

    assert_sound(ran)
    assert ran.out == b""
    assert stand.services() == []


@pytest.mark.parametrize("program", ["", "/nonexistent/python"])
def test_an_interpreter_that_cannot_be_started_is_no_obstacle(stand: Stand, program: str) -> None:
    """
    The stop is decided in the process.
    """
    code = f"import sys; sys.executable = {program!r}; {stand.command()[-1]}"

    stand.assert_decided_here(stand.hook.run(HELD, (PYTHON, "-I", "-c", code)))


@pytest.mark.parametrize("status", [409, 503])
def test_a_service_that_ends_is_replaced(stand: Stand, status: int) -> None:
    """
    One of another version, or one that was told to: once nobody listens any more, the hook starts its own.
    """

    def play(connection: Any) -> None:
        old.read(connection)
        connection.sendall(response(status))
        old.end()

    with RawService(stand.hook.state, play) as old:
        assert stand.run().out == ANSWER

    assert len(stand.services()) == 1


def test_a_service_that_only_says_that_it_ends_is_waited_for_no_longer_than_a_second(stand: Stand) -> None:
    """
    Then the stop is decided in the process.
    """
    with RawService(stand.hook.state, response(503)):
        ran = stand.run("never-listens")

    stand.assert_decided_here(ran)
    assert stand.services() == []


def test_a_dead_service_is_followed_by_another(stand: Stand) -> None:
    """
    A process that was killed leaves its socket's file behind.
    """
    assert stand.run().out == ANSWER
    os.kill(stand.services()[0]["pid"], signal.SIGKILL)
    socket_file = stand.hook.state / "turngate.sock"
    while can_connect(socket_file):
        time.sleep(0.01)
    socket_file.unlink()

    assert stand.run().out == ANSWER
    assert len(stand.services()) == 2


HANGING = "import threading; starting.LAST_RESORT_S = 0.2; starting.trusted_environ = threading.Event().wait; "


def test_settings_that_hang_do_not_keep_the_turn(stand: Stand) -> None:
    """
    A file on a dead network drive: the process ends by itself, in silence.
    """
    code = stand.command()[-1].replace("starting.COMMAND", HANGING + "starting.COMMAND")

    assert stand.hook.run(HELD, (PYTHON, "-I", "-c", code)) == (0, b"", b"")


def test_the_command_is_the_service_of_this_installation(stand: Stand) -> None:
    """
    The real one, started by the real hook; it answers what the hook itself would have.
    """
    alone = stand.hook.run(HELD, environ={"TURNGATE_SERVICE_AUTOSTART": "off"})
    stand.hook.environ["TURNGATE_STATE_DIR"] = str(stand.hook.home / "s")
    served = stand.hook.run(HELD, (PYTHON, "-I", "-c", PATIENT))
    found = standing(stand.hook.environ)

    assert main(["stop"], stand.hook.environ) == 0
    assert COMMAND[:2] == ("-I", "-m")
    assert served._replace(out=without_id(served.out)) == alone._replace(out=without_id(alone.out))
    assert found
    assert stand.hook.outcomes() == ["block_background"]


def test_a_tool_does_not_wait_for_a_new_service(stand: Stand) -> None:
    """
    Its check has a second in all: the hook starts a service for the next one, and decides by itself.
    """
    call = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "x &"}}

    ran = stand.hook.run(call, stand.command("never-listens"))

    assert ran.answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert stand.hook.outcomes() == ["jobs_deny"]
