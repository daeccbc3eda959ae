"""
A user with a service of their own, endpoints on loopback, and what must hold after any fault: one check for all of them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.costing.outcomes import OUTCOMES
from turngate.costing.store import StoreError
from turngate.judge.scripted_api import Received, ScriptedMessagesApi
from turngate.judge.service.sockets import SOCKET_NAME
from turngate.stopgate.hook import LAST_WORDS_S
from turngate.stopgate.relay import GRACE_S
from turngate.stopgate.service_commands import ServiceTrouble, standing

from ..hook_runner import CLAIM, SCRIPT, Hook, Ran, a_stop, assert_sound

DEADLINE_S = 2.0
AMPLE_S = 10.0
"""A deadline for what is not about the deadline, on a busy machine."""

PATIENCE_S = 30.0
"""How long a test waits for what must come; nothing is concluded from how long it took."""

START_S = 1.0
"""For a process to start and to end on a busy machine, beside what the contract allows."""

MOST_HOLDS = 2
SERVE = (sys.executable, "-I", "-m", "turngate.stopgate.serving")
KEY = "plain-key-9f8e7d6c5b4a"

Try = tuple[str | None, bool]
"""How one try ended, None for one that was killed, and whether its usage is known."""

ANSWERED: Try = ("answered", True)
KILLED: Try = (None, False)


class Stopped(NamedTuple):
    """
    A stop, as the client saw it: its session, its hook's end, and the seconds from the hook's start to its end.
    """

    session: str
    ran: Ran
    took_s: float
    deadline_s: float


class Begun:
    """
    A hook that has got its event, and has not been waited for.
    """

    def __init__(self, process: subprocess.Popen[bytes], event: dict[str, object], deadline_s: float) -> None:
        self._process = process
        self._session = str(event["session_id"])
        self._deadline_s = deadline_s
        self._started_at = time.monotonic()
        self._event = json.dumps(event).encode()

    def feed(self) -> None:
        """
        Give the hook its event, which it waits for.
        """
        channel, self._process.stdin = self._process.stdin, None
        assert channel
        with channel:
            channel.write(self._event)

    def ended(self) -> Stopped:
        """
        Wait for the hook's end.
        """
        out, err = self._process.communicate(timeout=60)
        took_s = time.monotonic() - self._started_at
        return Stopped(self._session, Ran(self._process.returncode, out, err), took_s, self._deadline_s)


class Awaited:
    """
    An answer of the scripted endpoint that is given when the test says so; `asked` is set when the question is there.
    """

    def __init__(self, answer: object = CLAIM) -> None:
        self.asked = threading.Event()
        self._may_answer = threading.Event()
        self._answer = json.dumps(answer)

    def __call__(self, _: Received) -> str:
        self.asked.set()
        self._may_answer.wait(PATIENCE_S)
        return self._answer

    def answer(self) -> None:
        self._may_answer.set()


class Stage:
    """
    One user's state directory and the service that keeps it, over as many stops and faults as a test module has.
    """

    def __init__(self, folder: Path, **environ: str) -> None:
        """
        `environ` is for the service too.
        """
        self.hook = Hook(folder, ANTHROPIC_API_KEY=KEY, **environ)
        self.service: subprocess.Popen[bytes] | None = None
        """The latest that was started here."""
        self.nobody = a_closed_port()
        """An endpoint for stops that ask no model."""
        self.pid = 0
        """The service's, when it was last looked at."""
        self._environ = environ
        self._words = folder / "words-of-the-service"
        self._started: list[subprocess.Popen[bytes]] = []
        self._numbers = itertools.count(1)
        self._held: Counter[str] = Counter()

    # The service

    def serve(self, command: Sequence[str] = SERVE) -> subprocess.Popen[bytes]:
        """
        Start a service as a hook does, but as a child of the test; what it says is kept.
        """
        with self._words.open("ab") as words:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                cwd="/",
                env={name: self.hook.environ[name] for name in ("HOME", "PATH", "TURNGATE_STATE_DIR", *self._environ)},
            )
        self._started.append(process)
        return process

    def ready(self, command: Sequence[str] = SERVE) -> int:
        """
        Give the process of a service that has its SDK, started where none answers.
        """
        if self.status() is None:
            self.service = self.serve(command)
            self.warmed()
        status = self.status()
        assert status
        self.pid = status["pid"]
        return self.pid

    def warmed(self) -> None:
        """
        Wait for the service to answer, and for its SDK: a busy machine may take long for the import.
        """
        wait_for(lambda: self.status() is not None)
        self.assert_serves(deadline_s=60.0)

    @property
    def socket(self) -> Path:
        return self.hook.state / SOCKET_NAME

    def status(self) -> dict[str, Any] | None:
        """
        Give what the service says of itself; None where nobody answers.
        """
        with contextlib.suppress(ServiceTrouble):
            return standing(self.hook.environ)
        return None

    def freeze(self, connections: int = 0) -> None:
        """
        Stop all threads of the service while so many are connected, and wait until they are.
        """
        wait_for(lambda: waiting_at(self.socket) == connections)
        os.kill(self.pid, signal.SIGSTOP)
        wait_for(lambda: all(_state(path) == "T" for path in Path(f"/proc/{self.pid}/task").iterdir()))

    @contextlib.contextmanager
    def descriptors_left(self, number: int) -> Generator[None]:
        """
        Let the service open so many descriptors more.
        """
        before = resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
        opened = [int(path.name) for path in Path(f"/proc/{self.pid}/fd").iterdir()]
        # The limit is one on numbers, and the lowest free ones are given first.
        free = (candidate for candidate in itertools.count() if candidate not in opened)
        limit = next(itertools.islice(free, number, None))
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
        yield
        resource.prlimit(self.pid, resource.RLIMIT_NOFILE, before)

    def end(self) -> None:
        """
        End the service, and all that was started here.
        """
        if status := self.status():  # one that a hook has started
            os.kill(status["pid"], signal.SIGKILL)
        for process in self._started:
            process.kill()
            process.wait(PATIENCE_S)

    def words(self) -> bytes:
        """
        Give all that the services wrote to their standard channels.
        """
        return self._words.read_bytes() if self._words.exists() else b""

    # Stops

    def stop(self, api: ScriptedMessagesApi | str, **options: Any) -> Stopped:
        """
        Stop once, with this endpoint; see `begin`.
        """
        begun = self.begin(api, **options)
        begun.feed()
        return self.noted(begun.ended())

    def begin(
        self,
        api: ScriptedMessagesApi | str,
        *,
        session: str = "",
        deadline_s: float = DEADLINE_S,
        environ: dict[str, str] | None = None,
        command: Sequence[str] = (SCRIPT,),
        **fields: object,
    ) -> Begun:
        """
        Start the hook of a stop; by default that of a session of its own.
        """
        url = api if isinstance(api, str) else api.url
        event = a_stop(session_id=session or self.new_session(), **fields)
        settings = {"TURNGATE_JUDGE_BASE_URL": url, "TURNGATE_JUDGE_DEADLINE_S": f"{deadline_s:g}"}
        process = self.hook.start(command, environ={**settings, **(environ or {})})
        return Begun(process, event, deadline_s)

    def new_session(self) -> str:
        return f"session-{next(self._numbers)}"

    def stop_all(self, begun: Sequence[Begun]) -> list[Stopped]:
        """
        Give the hooks their events all at once, and wait for them.
        """
        for one in begun:
            one.feed()
        with ThreadPoolExecutor(len(begun)) as pool:
            return [self.noted(stopped) for stopped in pool.map(Begun.ended, begun)]

    def noted(self, stopped: Stopped) -> Stopped:
        """
        Count what the hook answered.
        """
        self._held[stopped.session] += stopped.ran.holds
        return stopped

    # What must hold

    def assert_survived(
        self,
        *stopped: Stopped,
        outcome: str | Collection[str],
        tries: Sequence[Try] = (),
        lines: range | None = None,
        same_service: bool = True,
    ) -> None:
        """
        Check what must hold after any fault.

        The stops were answered in time and validly, each has its line with one of these outcomes (`lines`: how many they have in all; a
        service may write one for a hook that is gone), each try has its own, nothing was held too often or without being counted, the
        service has said nothing, and the next stop is judged.
        """
        for one in stopped:
            assert_sound(one.ran)
        before = self.pid
        assert (before == self.ready()) is same_service
        self.assert_serves()
        sessions = {one.session for one in stopped}
        self.assert_logged(sessions, lines or one_each(stopped), outcome)
        self.assert_in_time(stopped)
        self.assert_tries(sessions, tries)
        self.assert_counted(sessions)
        assert self.words() == b""

    def assert_serves(self, *, deadline_s: float = 20.0) -> None:
        """
        Check that the service judges a stop, and holds it.
        """
        decisions = self._decisions()
        with ScriptedMessagesApi(otherwise=CLAIM) as api:
            stopped = self.stop(api, deadline_s=deadline_s)
        assert_sound(stopped.ran)
        assert stopped.ran.holds, (stopped, self.hook.log()[-1:])
        self.assert_logged({stopped.session}, one_each([stopped]), "block_verdict")
        self.assert_tries({stopped.session}, [ANSWERED])
        assert self._decisions() > decisions

    def assert_logged(self, sessions: Collection[str], lines: range, outcome: str | Collection[str]) -> None:
        """
        Check the lines that `turngate log --json` has of these sessions, once all are there.
        """
        expected = {outcome} if isinstance(outcome, str) else {*outcome}
        assert expected <= set(OUTCOMES)
        wait_for(lambda: len(self.lines(sessions)) >= lines.start)
        found = self.lines(sessions)
        assert len(found) in lines, found
        assert {line["outcome"] for line in found} <= expected, found

    def assert_in_time(self, stopped: Sequence[Stopped]) -> None:
        """
        Check that no hook took longer than the relay waits, and where it heard nothing, than it takes at most to write that down.
        """
        logged = self.lines({one.session for one in stopped})
        unheard = {line["session_id"] for line in logged if line["outcome"] == "pass_service_error"}
        for one in stopped:
            writing_s = LAST_WORDS_S if one.session in unheard else 0.0
            assert one.took_s <= one.deadline_s + GRACE_S + writing_s + START_S, one

    def assert_tries(self, sessions: Collection[str], tries: Sequence[Try]) -> None:
        """
        Check that each try has its line, and a usage where one came.
        """
        expected = sorted(tries, key=str)
        # A line that could not be written in time is written a little later.
        wait_for(lambda: self.tries(sessions) == expected, otherwise=lambda: f"{self.tries(sessions)} != {expected}")

    def tries(self, sessions: Collection[str]) -> list[Try]:
        """
        Give the tries of these sessions in the ledger, in no order.
        """
        with open_database(self.hook.state) as database:
            calls = Ledger(database).calls()
        ends = [call.end for call in calls if call.start.session_id in sessions]
        return sorted(((end.outcome, end.usage is not None) if end else KILLED for end in ends), key=str)

    def assert_counted(self, sessions: Collection[str]) -> None:
        """
        Check the continuations: no turn in the store, and none by what its hooks answered, has more than it may; each hold is counted.
        """
        with open_database(self.hook.state) as database:
            rows = database.rows("SELECT session_id, spent FROM turns")
        assert all(spent <= MOST_HOLDS for _, spent in rows), rows
        counted = dict(rows)
        for session in sessions:
            assert self._held[session] <= MOST_HOLDS
            assert self._held[session] <= counted.get(session, 0), session

    def _decisions(self) -> int:
        status = self.status()
        return status["decisions"] if status else 0

    def lines(self, sessions: Collection[str]) -> list[dict[str, Any]]:
        try:
            return [line for line in self.hook.log() if line["session_id"] in sessions]
        except StoreError:
            return []


class MidCall:
    """
    A stop whose judge has been asked and has not answered.
    """

    def __init__(self, stage: Stage, api: ScriptedMessagesApi, **options: Any) -> None:
        self.stage = stage
        self.session = stage.new_session()
        self.judge = Awaited()
        api.add(self.judge)
        self._begun = stage.begin(api, session=self.session, **options)
        self._begun.feed()
        assert self.judge.asked.wait(PATIENCE_S)

    def ended(self) -> Stopped:
        return self.stage.noted(self._begun.ended())


def one_each(stopped: Sequence[Stopped]) -> range:
    return range(len(stopped), len(stopped) + 1)


def wait_for(condition: Callable[[], object], otherwise: Callable[[], str] = lambda: "") -> None:
    """
    Wait until something is so, and fail where it never is.
    """
    give_up_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_at, otherwise() or "what was waited for never came"
        time.sleep(0.02)


def is_running(process: int) -> bool:
    """
    Whether a process is there, and not only waited for.
    """
    return _state(Path(f"/proc/{process}")) not in ("", "Z")


def thaw(process: int) -> None:
    os.kill(process, signal.SIGCONT)


def waiting_at(path: Path) -> int:
    """
    Give the number of connections that wait in a socket's queue, or are open: all but the one that listens.
    """
    lines = Path("/proc/net/unix").read_text().splitlines()
    return sum(line.endswith(f" {path}") for line in lines) - 1


def _state(process: Path) -> str:
    with contextlib.suppress(OSError, IndexError):
        return (process / "stat").read_text().rpartition(")")[2].split()[0]
    return ""


def resident_peak_kb(process: int) -> int:
    """
    Give the most memory that a process has had, in KB.
    """
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def a_closed_port() -> str:
    """
    Give the URL of a port of loopback on which nobody listens.
    """
    with closing(socket.socket()) as listening:
        listening.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listening.getsockname()[1]}"
