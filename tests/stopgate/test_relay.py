"""
The real hook process and a service on its socket: what is sent, and what each kind of answer leads to.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from turngate.stopgate.relay import VERSION

from .hook_runner import HELD, PYTHON, SCRIPT, Hook, Ran, a_stop, assert_sound
from .installed_tree import installed_tree
from .raw_service import RawService, response

ANSWER = b'{"decision": "block", "reason": "\xc3\xa4"}'
WHOLE = response(200, ANSWER)
BASE_32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""As Crockford gives it."""


def read_base_32(text: str) -> int:
    number = 0
    for digit in text:
        number = number * 32 + BASE_32.index(digit.upper())
    return number


SHORT = {"TURNGATE_JUDGE_DEADLINE_S": "0.1"}


@pytest.fixture(name="hook")
def make_hook(short_path: Path) -> Hook:
    """
    A user whose state directory has a path that is short enough for a socket.
    """
    return Hook(short_path)


@pytest.fixture(name="command", scope="module")
def make_command(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """
    The hook as a file of an installation, the way the settings name it.
    """
    file = installed_tree(tmp_path_factory.mktemp("installed")) / "turngate" / "stopgate" / "__main__.py"
    return (PYTHON, "-I", "-S", str(file))


def assert_passed(hook: Hook, ran: Ran, detail: str) -> None:
    """
    The turn ends in silence, and the log says why.
    """
    assert_sound(ran)
    assert ran.out == b""
    assert [(line["outcome"], line["session_id"]) for line in hook.log()] == [("pass_service_error", "session-1")]
    assert detail in hook.log()[0]["detail"]


def assert_decided_here(hook: Hook, ran: Ran) -> None:
    """
    The stop was decided by the hook's own process.
    """
    assert_sound(ran)
    assert ran.holds
    assert hook.outcomes() == ["block_background"]


@pytest.mark.parametrize("way", ["file", "script"])
def test_the_answer_of_the_service_goes_to_the_client(hook: Hook, command: tuple[str, ...], way: str) -> None:
    """
    Byte for byte, with the line for the debug log; the hook itself writes nothing into the ledger.
    """
    with RawService(hook.state, response(200, ANSWER, turngate_notice="x%C3%A4:%20y%2C%25")):
        ran = hook.run(HELD, command if way == "file" else (SCRIPT,))

    assert ran == (0, ANSWER, b"turngate: x\xc3\xa4: y,%\n")
    assert list(hook.state.iterdir()) == []


def test_a_pass_writes_nothing(hook: Hook, command: tuple[str, ...]) -> None:
    """
    An empty body is zero bytes on standard output, and no line on the other channel.
    """
    with RawService(hook.state, response()):
        assert hook.run(HELD, command) == (0, b"", b"")


def test_an_answer_in_small_pieces_is_put_together(hook: Hook, command: tuple[str, ...]) -> None:
    """
    A stream has no messages: the answer may come byte by byte, and ends where its length says.
    """

    def play(connection: socket.socket) -> None:
        service.read(connection)
        for byte in WHOLE:
            connection.sendall(bytes((byte,)))
        connection.recv(1)  # until the hook hangs up: it does not wait for the service to do so

    with RawService(hook.state, play) as service:
        assert hook.run(HELD, command).out == ANSWER


def test_an_answer_may_come_before_the_event_was_read(hook: Hook, command: tuple[str, ...]) -> None:
    """
    Who answers early and hangs up is heard all the same.
    """
    event = json.dumps(HELD | {"filler": "x" * 2_000_000}).encode()

    def play(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(WHOLE)
        connection.shutdown(socket.SHUT_RD)

    with RawService(hook.state, play):
        assert hook.run(event, command).out == ANSWER


def test_the_request_is_what_the_contract_says(hook: Hook, command: tuple[str, ...]) -> None:
    """
    One line, ten headers at most and the event's bytes as they came.
    """
    event = b'{"hook_event_name": "Stop", "odd": "\xff\x00\xf0\x9f\x98\x80"}\n' + b" " * 300_000
    before_ms = int(time.monotonic() * 1000) - 20
    with RawService(hook.state, response()) as service:
        hook.run(event, command)

    (sent,) = service.sent
    assert sent.line == "POST /v1/hook/claude-code HTTP/1.1"
    assert sent.body == event
    # The clock that all processes of a machine share.
    started_ms = int(sent.headers.pop("turngate-started-ms"))
    assert before_ms <= started_ms <= time.monotonic() * 1000
    # By Crockford's base 32 the start of an id is its time in milliseconds.
    decision = sent.headers.pop("turngate-decision")
    assert len(decision) == 15
    assert 0 <= time.time() * 1000 - read_base_32(decision[:9]) < 60_000
    del sent.headers["turngate-environ"]
    assert sent.headers == {
        "host": "turngate",
        "content-type": "application/json",
        "content-length": str(len(event)),
        "connection": "close",
        "turngate-version": VERSION,
        "turngate-deadline-s": "8",
    }


def test_the_version_is_that_of_the_installation() -> None:
    """
    The relay's number is written down, and must follow the package's.
    """
    assert version("turngate") == VERSION


def test_only_the_variables_of_the_contract_are_relayed(hook: Hook, command: tuple[str, ...]) -> None:
    """
    With any bytes in them; what a stop is not decided with stays in the hook's process.
    """
    relayed = {
        "TURNGATE_X": "a&b=c%20 \n\t",
        "TURNGATE_Y": "",
        "TURNGATE_Z": os.fsdecode(b"\xff\xfe"),
        "ANTHROPIC_API_KEY": "sk-ant-1+/",
        "ANTHROPIC_BASE_URL": "https://gateway.example/v1?a=b",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "CLAUDE_CODE_USE_VERTEX": "0",
        "CLAUDE_CONFIG_DIR": "/c",
        "CLAUDE_PROJECT_DIR": str(hook.work),
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SESSION_ATTENDED": "1",
        "CLAUDECODE": "1",
        "XDG_CONFIG_HOME": "/x",
        "XDG_STATE_HOME": "/y",
    }
    kept = {"AWS_SECRET_ACCESS_KEY": "s", "GITHUB_TOKEN": "t", "ANTHROPIC_AUTH_TOKEN": "u", "XTURNGATE_X": "v"}
    with RawService(hook.state, response()) as service:
        hook.run(HELD, command, environ=relayed | kept)

    expected = (hook.environ | relayed).items()
    assert service.sent[0].environ == {name.encode(): os.fsencode(value) for name, value in expected if name != "PATH"}


def test_relative_paths_are_relayed_as_absolute_ones(hook: Hook, command: tuple[str, ...]) -> None:
    """
    The service works in another directory; `~` is told as it is, since the home is relayed too.
    """
    state = hook.work / "below"
    with RawService(state, response()) as service:
        hook.run(HELD, command, environ={"TURNGATE_STATE_DIR": "below", "TURNGATE_CONFIG": "../c.toml"})
        hook.run(HELD, command, environ={"TURNGATE_STATE_DIR": str(state), "TURNGATE_CONFIG": "~/c.toml"})

    assert service.sent[0].environ[b"TURNGATE_STATE_DIR"] == os.fsencode(state)
    assert service.sent[0].environ[b"TURNGATE_CONFIG"] == os.fsencode(hook.work) + b"/../c.toml"
    assert service.sent[1].environ[b"TURNGATE_CONFIG"] == b"~/c.toml"


def test_a_relative_path_from_a_directory_that_is_gone_is_not_relayed(hook: Hook, command: tuple[str, ...]) -> None:
    """
    The service could only guess what it was meant to lead to.
    """
    gone = hook.work / "gone"
    gone.mkdir()
    hook.environ["TURNGATE_CONFIG"] = "c.toml"
    with RawService(hook.state, response()) as service:
        ran = hook.run(HELD, ("sh", "-c", f'cd "{gone}" && rmdir "{gone}" && exec "$@"', "sh", *command))

    assert_decided_here(hook, ran)
    assert service.sent == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        *(("20", "20"), ("0.1", "0.1"), ("600", "600"), ("7.25", "7.25"), (" 9 ", "9")),
        *(("0.05", "8"), ("601", "8"), ("nan", "8"), ("inf", "8"), ("-3", "8"), ("soon", "8"), ("", "8")),
    ],
)
def test_the_assumed_deadline_is_told(hook: Hook, command: tuple[str, ...], said: str, told: str) -> None:
    """
    That of the variable where it is one, else the default.
    """
    with RawService(hook.state, response()) as service:
        hook.run(HELD, command, environ={"TURNGATE_JUDGE_DEADLINE_S": said})

    assert service.sent[0].headers["turngate-deadline-s"] == told


def test_what_the_service_asks_for_is_sent_after(hook: Hook, command: tuple[str, ...]) -> None:
    """
    The variable of a key that only the user's settings name, one that is not set, and the deadline that they set.
    """
    asks = response(428, turngate_needs="MY_KEY,NO_KEY", turngate_deadline_s="20")
    with RawService(hook.state, asks, WHOLE) as service:
        ran = hook.run(HELD, command, environ={"MY_KEY": "k 1", "OTHER_KEY": "o"})

    assert ran.out == ANSWER
    first, second = service.sent
    assert (b"MY_KEY" in first.environ, first.headers["turngate-deadline-s"]) == (False, "8")
    assert second.environ == first.environ | {b"MY_KEY": b"k 1", b"NO_KEY": None}
    assert second.headers["turngate-deadline-s"] == "20"
    assert second.body == first.body
    for name in ("turngate-started-ms", "turngate-decision"):
        assert second.headers[name] == first.headers[name]


def test_a_deadline_alone_can_be_asked_for(hook: Hook, command: tuple[str, ...]) -> None:
    """
    The stop is then waited for as long as the settings say: here, hardly at all.
    """
    with RawService(hook.state, response(428, turngate_deadline_s="0.1"), lambda _: time.sleep(60)):
        ran = hook.run(HELD, command)

    assert_passed(hook, ran, "did not answer in time")


GARBAGE = {
    "not-http": b"hello\r\n\r\n",
    "another-protocol": WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "a-banner": b"SSH-2.0-x\r\n" + WHOLE,
    "no-status": WHOLE.replace(b"200 Said", b""),
    "status-of-two-digits": WHOLE.replace(b"200", b"20"),
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE,
    "continue-of-ours": response(100, content_length="0"),
    "another-server": response(200, ANSWER, turngate_version=""),
    "html": response(200, b"<html></html>", turngate_version="", content_type="text/html"),
    "html-of-ours": response(200, b"<html></html>"),
    "created": response(201, ANSWER),
    "no-content": response(204),
    "redirect": response(307, location="http://evil.example/"),
    "bad-request": response(400, b'{"error": "x"}\n'),
    "not-found": response(404),
    "timed-out": response(408),
    "too-large": response(413),
    "internal": response(500, ANSWER),
    "no-length": response(200, ANSWER, content_length=""),
    "length-of-words": response(200, ANSWER, content_length="many"),
    "negative-length": response(200, ANSWER, content_length="-1"),
    "odd-digits": response(200, ANSWER, content_length="+41"),
    "length-too-short": response(200, ANSWER, content_length="3"),
    "length-too-long": response(200, ANSWER, content_length="1000"),
    "two-lengths": response(200, ANSWER, Content_Length="41"),
    "chunked": response(200, b"0\r\n\r\n", transfer_encoding="chunked"),
    "folded-header": WHOLE.replace(b"connection: close", b"connection: close\r\n more"),
    "header-without-name": WHOLE.replace(b"connection: close", b": close"),
    "header-without-colon": WHOLE.replace(b"connection: close", b"close"),
    "space-before-the-colon": WHOLE.replace(b"connection:", b"connection :"),
    "control-in-a-header": WHOLE.replace(b"close", b"clo\0se"),
    "bare-newlines": WHOLE.replace(b"\r\n", b"\n"),
    "endless-head": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 10_000,
    "10-mb-body": response(200, b"{" + b" " * 10_000_000 + b"}"),
    "a-list": response(200, b"[]"),
    "null": response(200, b"null"),
    "two-lines": response(200, ANSWER + b"\n"),
    "byte-order-mark": response(200, b"\xef\xbb\xbf" + ANSWER),
    "not-utf-8": response(200, b'{"reason": "\xff"}'),
    "cut-in-the-head": WHOLE[:30],
    "cut-in-the-body": WHOLE[:-5],
    "one-byte": b"H",
    "nothing": b"",
    "two-answers": WHOLE + WHOLE,
    "notice-of-two-lines": response(200, ANSWER, turngate_notice="a%0Ab"),
    "notice-cut-off": response(200, ANSWER, turngate_notice="a%2"),
    "notice-badly-encoded": response(200, ANSWER, turngate_notice="a%+1"),
    "notice-without-end": response(200, ANSWER, turngate_notice="a" * 3000),
    "asks-for-nothing": response(428),
    "asks-for-odd-names": response(428, turngate_needs="A B"),
    "asks-for-an-empty-name": response(428, turngate_needs="A,,B"),
    "asks-for-too-many": response(428, turngate_needs=",".join(f"N{number}" for number in range(100))),
    "asks-for-an-endless-deadline": response(428, turngate_deadline_s="1e9"),
    "asks-for-no-deadline": response(428, turngate_deadline_s="nan"),
    "asks-again-and-again": response(428, turngate_needs="A"),
    "asks-without-a-version": response(428, turngate_needs="A", turngate_version=""),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_an_answer_that_is_none_lets_the_turn_end(hook: Hook, command: tuple[str, ...], garbage: bytes) -> None:
    """
    Nothing of it reaches the client, the log says why, and the stop is not decided a second time: it may have been paid for.
    """
    with RawService(hook.state, garbage):
        ran = hook.run(HELD, command)

    assert_passed(hook, ran, "service")
    assert ran.err.startswith(b"turngate: the service")


def reset(connection: socket.socket) -> None:
    """
    Break off so that the other side gets an error and no end.
    """
    connection.recv(10)
    connection.sendall(WHOLE[:40])


def trickle(connection: socket.socket) -> None:
    """
    Say something all the time, and never come to an end.
    """
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for _ in range(1000):
        connection.sendall(b"x")
        time.sleep(0.05)


UNHEARD = {
    "reset-in-the-answer": (reset, "hung up"),
    "silent": (lambda connection: time.sleep(60), "in time"),
    "never-ending": (trickle, "in time"),
    "hangs-up-at-once": (lambda connection: None, "hung up"),
}


@pytest.mark.parametrize(("play", "detail"), UNHEARD.values(), ids=UNHEARD)
def test_a_service_that_does_not_answer_lets_the_turn_end(
    hook: Hook, command: tuple[str, ...], play: Callable[[socket.socket], None], detail: str
) -> None:
    """
    At the deadline or at once, whatever it does instead.
    """
    with RawService(hook.state, play):
        ran = hook.run(HELD, command, environ=SHORT)

    assert_passed(hook, ran, detail)


@pytest.mark.parametrize("queue", [128, 0], ids=["in-the-queue", "queue-full"])
def test_a_service_that_never_accepts_lets_the_turn_end(hook: Hook, command: tuple[str, ...], queue: int) -> None:
    """
    A stopped process still has its socket, whose queue takes some and then nobody.
    """
    with RawService(hook.state, queue=queue) as service:
        others = [socket.socket(socket.AF_UNIX) for _ in range(2)]
        for other in others:
            other.setblocking(False)  # the second one would wait
            other.connect_ex(str(service.path))
        event = HELD | {"filler": "x" * 1_000_000}
        ran = hook.run(event, command, environ=SHORT)
        for other in others:
            other.close()

    assert_passed(hook, ran, "did not answer in time")


@pytest.mark.parametrize("space", ["", " "])
def test_the_check_before_a_tool_does_not_wait_for_the_judges_deadline(
    hook: Hook, command: tuple[str, ...], space: str
) -> None:
    """
    The agent waits meanwhile: one second, whatever the deadline is, and no time is spent on a line in the log.
    """
    event = b'{"session_id":"session-1","hook_event_name":%b"PreToolUse"}' % space.encode()
    with RawService(hook.state, lambda connection: time.sleep(60)):
        ran = hook.run(event, command, environ={"TURNGATE_JUDGE_DEADLINE_S": "600"})

    assert ran == (0, b"", b"")
    assert hook.log() == []


def test_a_stop_that_quotes_the_other_event_keeps_its_deadline(hook: Hook, command: tuple[str, ...]) -> None:
    """
    Inside a text its quotation marks are escaped.
    """
    event = json.dumps(a_stop(last_assistant_message='{"hook_event_name": "PreToolUse"}')).encode()

    def play(connection: socket.socket) -> None:
        service.read(connection)
        time.sleep(1.2)
        connection.sendall(WHOLE)

    with RawService(hook.state, play) as service:
        assert hook.run(event, command).out == ANSWER


def test_another_state_directorys_service_sends_the_stop_home(hook: Hook, command: tuple[str, ...]) -> None:
    """
    The service knows better where the stop's lines belong: it is decided in the hook's process.
    """
    with RawService(hook.state, response(421)) as service:
        ran = hook.run(HELD, command)

    assert_decided_here(hook, ran)
    assert service.connections == 1


@pytest.mark.parametrize("status", [409, 503])
def test_without_autostart_nobody_replaces_a_service_that_ends(
    hook: Hook, command: tuple[str, ...], status: int
) -> None:
    """
    The stop is then decided in the hook's process.
    """
    with RawService(hook.state, response(status)):
        ran = hook.run(HELD, command)

    assert_decided_here(hook, ran)


PATCHED = "import posix, _socket; {patch}; from turngate.stopgate import hook; hook.main()"


@pytest.mark.parametrize(
    "patch",
    ["posix.geteuid = lambda: 12345", "posix.geteuid = lambda: 12345; del _socket.SO_PEERCRED"],
    ids=["told-by-the-connection", "told-by-the-file"],
)
def test_another_users_service_is_not_spoken_to(hook: Hook, patch: str) -> None:
    """
    The event and the key go to nobody but a process of the user's own.
    """
    with RawService(hook.state, WHOLE) as service:
        hook.run(HELD, (PYTHON, "-I", "-c", PATCHED.format(patch=patch)))

    assert service.sent == []


def test_the_users_own_service_is_known_where_connections_do_not_tell(hook: Hook) -> None:
    """
    Then the owner of the socket's file tells.
    """
    with RawService(hook.state, WHOLE):
        assert hook.run(HELD, (PYTHON, "-I", "-c", PATCHED.format(patch="del _socket.SO_PEERCRED"))).out == ANSWER


def test_without_unix_sockets_the_stop_is_decided_in_the_process(hook: Hook) -> None:
    """
    As on a system that has none.
    """
    ran = hook.run(HELD, (PYTHON, "-I", "-c", PATCHED.format(patch="del _socket.AF_UNIX")))

    assert_decided_here(hook, ran)


def make_stale(path: Path) -> None:
    """
    Leave a socket's file whose process is gone.
    """
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))


def make_datagrams(path: Path) -> None:
    """
    The same of another kind of socket.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(path))


NO_SOCKETS = {
    "nothing": lambda path: None,
    "stale": make_stale,
    "another-kind": make_datagrams,
    "a-file": Path.touch,
    "a-folder": Path.mkdir,
    "a-pipe": os.mkfifo,
    "a-loop": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("make", NO_SOCKETS.values(), ids=NO_SOCKETS)
def test_where_nobody_listens_the_stop_is_decided_in_the_process(
    hook: Hook, command: tuple[str, ...], make: Callable[[Path], None]
) -> None:
    """
    Whatever has the socket's name.
    """
    hook.state.mkdir(mode=0o700)
    make(hook.state / "turngate.sock")

    assert_decided_here(hook, hook.run(HELD, command))


def test_a_path_too_long_for_a_socket_is_no_obstacle(hook: Hook, command: tuple[str, ...]) -> None:
    """
    Where no service can listen the hook decides, and waits for none.
    """
    hook.state /= "x" * 120
    hook.environ |= {"TURNGATE_STATE_DIR": str(hook.state), "TURNGATE_SERVICE_AUTOSTART": "on"}

    assert_decided_here(hook, hook.run(HELD, command))


def test_variables_too_long_for_a_header_are_no_obstacle(hook: Hook, command: tuple[str, ...]) -> None:
    """
    A project that sets a long one would else have its stops refused by the service, and pass.
    """
    hook.environ |= {f"TURNGATE_X{number}": "%" * 30_000 for number in range(3)}
    with RawService(hook.state, WHOLE) as service:
        ran = hook.run(HELD, command)

    assert_decided_here(hook, ran)
    assert service.sent == []


def test_an_input_over_the_limit_is_relayed_in_part(hook: Hook, command: tuple[str, ...]) -> None:
    """
    No event is that long; what the service gets is no event either.
    """
    with RawService(hook.state, response()) as service:
        ran = hook.run(b"[" + b"x" * 20_000_000, command)

    assert ran == (0, b"", b"")
    assert len(service.sent[0].body) <= 4 * 1024 * 1024


@pytest.mark.parametrize("redirections", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
def test_a_closed_channel_harms_no_relayed_answer(hook: Hook, command: tuple[str, ...], redirections: str) -> None:
    """
    The number of a closed channel is not given to the socket, and what can be written is.
    """
    with RawService(hook.state, response(200, ANSWER, turngate_notice="x")) as service:
        ran = hook.run(HELD, ("sh", "-c", f'"$@" {redirections}', "sh", *command))

    assert_sound(ran)
    assert ran.out == (ANSWER if ">" not in redirections or redirections.startswith("2") else b"")
    assert service.sent[0].body == (b"" if "<" in redirections else json.dumps(HELD).encode())


@pytest.mark.parametrize("descriptors", range(4, 10))
def test_too_few_descriptors_to_relay_end_without_a_traceback(
    hook: Hook, command: tuple[str, ...], descriptors: int
) -> None:
    """
    The turn ends all the same.
    """
    with RawService(hook.state, WHOLE):
        ran = hook.run(HELD, ("sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command))
    if b"Fatal Python error" in ran.err:
        pytest.skip("the interpreter needs more descriptors")

    assert_sound(ran)


def test_inside_a_client_of_our_own_no_service_is_spoken_to(hook: Hook, command: tuple[str, ...]) -> None:
    """
    The guard comes before everything.
    """
    with RawService(hook.state, WHOLE) as service:
        ran = hook.run(HELD, command, environ={"TURNGATE_GUARD": "1"})

    assert ran == (0, b"", b"")
    assert service.connections == 0


def test_a_guard_that_the_project_set_does_not_keep_a_stop_from_the_service(
    hook: Hook, command: tuple[str, ...]
) -> None:
    """
    Else a cloned repository could switch the gate off.
    """
    (hook.work / ".claude").mkdir()
    (hook.work / ".claude" / "settings.json").write_text('{"env": {"TURNGATE_GUARD": "1"}}')
    with RawService(hook.state, WHOLE):
        assert hook.run(HELD, command, environ={"TURNGATE_GUARD": "1"}).out == ANSWER


def test_a_log_that_cannot_be_written_does_not_keep_the_turn(hook: Hook, command: tuple[str, ...]) -> None:
    """
    After a fault of the service the ledger is tried for two seconds at most, here one that is no file.
    """
    (hook.state / "turngate.db").mkdir(parents=True)
    with RawService(hook.state, b"garbage"):
        ran = hook.run(HELD, command)

    assert_sound(ran)
    assert ran.out == b""


HANGING_LOG = """
import threading
from turngate.stopgate import hook, in_process
hook.LAST_WORDS_S = 0.2
in_process.log_outcome = lambda *_, **__: threading.Event().wait()
hook.main()
"""


def test_a_log_that_hangs_does_not_keep_the_turn(hook: Hook) -> None:
    """
    The process ends by itself, in silence.
    """
    with RawService(hook.state, b"garbage"):
        assert hook.run(HELD, (PYTHON, "-I", "-c", HANGING_LOG)) == (0, b"", b"")


def test_64_stops_at_once_are_all_answered(hook: Hook, command: tuple[str, ...]) -> None:
    """
    Also where the socket's queue is short: who finds it full comes again.
    """
    with RawService(hook.state, WHOLE, queue=1):
        processes = [hook.start(command) for _ in range(64)]
        outs: list[bytes] = []
        threads = [
            threading.Thread(target=lambda one=one: outs.append(one.communicate(json.dumps(HELD).encode())[0]))
            for one in processes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    assert outs == [ANSWER] * 64


HOSTILE = ("turngate", "site", "posix", "_socket", "select", "time", "sitecustomize", "relay", "__future__", "json")


@pytest.mark.parametrize("has_service", [True, False], ids=["relayed", "in-process"])
def test_a_project_has_no_way_into_the_hook(hook: Hook, command: tuple[str, ...], has_service: bool) -> None:
    """
    Neither its working directory nor the variables of Python lead to other modules, whether the hook finds a service or not.
    """
    for name in HOSTILE:
        (hook.work / f"{name}.py").write_text(f"open({str(hook.work / 'trace')!r}, 'w'); print('hostile')")
    variables = {"PYTHONPATH": str(hook.work), "PYTHONHOME": "/nonexistent", "PYTHONVERBOSE": "1", "PYTHONINSPECT": "1"}
    with RawService(hook.state, WHOLE) as service:
        if not has_service:
            service.end()
        ran = hook.run(HELD, command, environ=variables)

    assert_sound(ran)
    assert ran.holds
    assert not (hook.work / "trace").exists()


def test_the_hook_runs_as_a_file_of_the_sources_too(hook: Hook) -> None:
    """
    Then it finds its installed self as any other Python does.
    """
    source = Path(str(sys.modules["turngate.stopgate.relay"].__file__)).with_name("__main__.py")
    with RawService(hook.state, WHOLE):
        assert hook.run(HELD, (PYTHON, "-I", "-S", str(source))).out == ANSWER


def test_a_file_without_an_installation_says_so(hook: Hook, tmp_path: Path) -> None:
    """
    One line instead of a traceback, and the turn ends.
    """
    source = Path(str(sys.modules["turngate.stopgate.relay"].__file__)).with_name("__main__.py")
    alone = tmp_path / "__main__.py"
    alone.write_bytes(source.read_bytes())
    python_without_turngate = Path(sys.base_prefix) / "bin" / "python3"

    ran = hook.run(HELD, (str(python_without_turngate), "-I", "-S", str(alone)))

    assert_sound(ran)
    assert b"not installed" in ran.err
