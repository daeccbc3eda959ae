"""
One scene: the real client, a scripted main loop, a scripted judge and the real hook between them.
"""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGCONT, Signals
from typing import NamedTuple, Self

import pytest

from turngate.judge.scripted_api import Received as JudgeRequest
from turngate.judge.scripted_api import Script as JudgeAnswer
from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.judge.service.sockets import LOCK_NAME

from .client import FAKE_KEY, HOOK, TURNGATE, Client, Json, Run
from .main_loop_api import Received, Script, ScriptedMainLoop
from .processes import Process, kill_all_with, processes_with

CLEAN: Json = {"findings": []}

by_a_service = pytest.mark.parametrize("stage", ["relay"], indirect=True)
"""For a scene that is about the service alone."""


def finding(fault: str, quote: str, reason: str) -> Json:
    """
    A verdict with one finding.
    """
    return {"findings": [{"fault": fault, "quote": quote, "reason": reason}]}


class Played(NamedTuple):
    """
    What a scene came to.
    """

    client: Run
    main_loop: ScriptedMainLoop
    judged: list[JudgeRequest]
    decisions: list[Json]
    """The ledger, as `turngate log --json` prints it, oldest first."""

    @property
    def outcomes(self) -> list[str]:
        """
        The outcome of each decision.
        """
        return [d["outcome"] for d in self.decisions]

    def decisions_at(self, event: str) -> list[Json]:
        """
        The decisions at one kind of event.
        """
        return [d for d in self.decisions if d["event"] == event]


class Stage:
    """
    Sets up scenes under `folder`; the gate's state and its service are shared by all of them, and end with the `with` block.
    """

    def __init__(self, folder: Path, *, is_relayed: bool) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.is_relayed = is_relayed
        self.state = folder / "state"
        self.lock = self.state / LOCK_NAME
        self.may_lack_a_service = not is_relayed
        """Set by a scene that ends its service."""
        mark = uuid.uuid4().hex
        # A service gets the variables of this name, and so does whatever it may start.
        self._mark = f"TURNGATE_E2E_MARK={mark}"
        self._environ = {
            "TURNGATE_STATE_DIR": str(self.state),
            "TURNGATE_CONFIG": str(folder / "config.toml"),
            # Above the default of 8 s: several clients and hooks at once may be slow to start on a small machine.
            "TURNGATE_JUDGE_DEADLINE_S": "40",
            "TURNGATE_SERVICE_AUTOSTART": "on" if is_relayed else "off",
            "TURNGATE_E2E_MARK": mark,
        }

    def __enter__(self) -> Self:
        """
        Set up scenes.
        """
        return self

    def __exit__(self, *_: object) -> None:
        """
        End the service, having checked that it and nothing else is there, and that it has nothing of the clients'.
        """
        try:
            self._check_what_is_left()
            self.end_service()
            left = [process.command for process in processes_with(self._mark)]
        finally:
            kill_all_with(self._mark)
        assert not left, f"outlived `turngate stop`: {left}"

    def beside(self, name: str) -> Stage:
        """
        Give another home and project, under the same state directory.
        """
        other = Stage(self.folder / name, is_relayed=self.is_relayed)
        other.state, other.lock, other._mark, other._environ = self.state, self.lock, self._mark, self._environ
        return other

    def play(
        self,
        prompt: str,
        agents: Mapping[str, Script],
        verdicts: Sequence[JudgeAnswer] = (),
        *,
        otherwise: JudgeAnswer = CLEAN,
        judge_url: str = "",
        key: str = FAKE_KEY,
        hooks: Sequence[str] = (str(HOOK),),
        environ: Mapping[str, str] | None = None,
        resume: bool = False,
        options: Sequence[str] = (),
    ) -> Played:
        """
        Run one prompt; with `resume` it is the next one of the session played before.

        Without `hooks` the user's settings stay as they are; `options` go to the client.
        `judge_url` names another judge than the scripted one, which wants `key`.
        """
        with (
            ScriptedMainLoop(agents) as main_loop,
            ScriptedMessagesApi(verdicts, otherwise=otherwise, key=key) as judge,
        ):
            settings = {
                **self._environ,
                "ANTHROPIC_API_KEY": key,
                "TURNGATE_JUDGE_BASE_URL": judge_url or judge.url,
                **(environ or {}),
            }
            client = Client(self.folder, settings)
            if hooks:
                client.use_hooks(hooks)
            run = client.run(prompt, main_loop_url=main_loop.url, resume=resume, options=options)

        beyond = [(request.opening, request.news) for request in main_loop.unscripted]
        assert not beyond, f"agents went on after their scripts were over: {beyond}"
        assert not run.left_processes, f"processes outlived the client: {run.left_processes}"
        return Played(run, main_loop, judge.requests, self.decisions())

    def decisions(self) -> list[Json]:
        """
        Give the ledger's decisions about this project, oldest first.
        """
        lines = self._turngate("log", "--json", "-n", "100").splitlines()
        return [d for d in map(json.loads, lines) if d["project"] == str(self.project)]

    def services(self) -> list[Process]:
        """
        Find what runs outside the clients, which is the service where there is one.
        """
        return processes_with(self._mark)

    def standing(self) -> Json:
        """
        Give the service's own account.
        """
        return json.loads(self._turngate("status", "--json"))

    def start_service(self) -> None:
        """
        Have a hook start it, and let it judge a stop elsewhere, so that it has imported all that a judge takes.
        """
        event = {"hook_event_name": "Stop", "session_id": "elsewhere", "last_assistant_message": "All is well."}
        with ScriptedMessagesApi(otherwise=CLEAN, key=FAKE_KEY) as judge:
            elsewhere = {"ANTHROPIC_API_KEY": FAKE_KEY, "TURNGATE_JUDGE_BASE_URL": judge.url}
            subprocess.run([HOOK], input=json.dumps(event).encode(), env=self._own_environ | elsewhere, check=True)
        assert len(judge.requests) == 1
        assert len(self.services()) == 1

    def send_service(self, signal: Signals) -> None:
        """
        Send it a signal.
        """
        self.may_lack_a_service = True
        os.kill(int(self.lock.read_text()), signal)

    def wake_service(self) -> None:
        """
        Let it go on where it was stopped.
        """
        for service in self.services():
            os.kill(service.pid, SIGCONT)

    def end_service(self) -> None:
        """
        End it where there is one, and wait for its end.
        """
        self.wake_service()
        self._turngate("stop")

    def _check_what_is_left(self) -> None:
        left = self.services()
        commands = [process.command.partition(" ")[2] for process in left]
        if left or not self.may_lack_a_service:
            assert commands == ["-I -m turngate.stopgate.serving"] * self.is_relayed
        for service in left:
            held = service.descriptors
            assert service.cwd == "/"
            assert [held.pop(number) for number in range(3)] == [os.devnull] * 3
            ours = (str(self.state), "socket:", "anon_inode:")
            foreign = [what for what in held.values() if not what.startswith(ours)]
            assert not foreign, f"the service holds {foreign}"

    def _turngate(self, *arguments: str) -> str:
        ran = subprocess.run([TURNGATE, *arguments], env=self._own_environ, capture_output=True, text=True, check=True)
        return ran.stdout

    @property
    def _own_environ(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), **self._environ}


def hold_in(received: Received, *, event: str = "Stop", hook: str = str(HOOK)) -> str:
    """
    The text of the hold that the agent was given, having checked that it was given nothing else.

    The client says it twice: as a user message, and behind the hook's command as a system message.
    """
    reason = received.news[0][1].removeprefix("Stop hook feedback:\n")

    as_user = ("user", f"Stop hook feedback:\n{reason}")
    as_system = ("system", f'{event} hook blocking error from command: "{hook}": {reason}')
    assert received.news == [as_user, as_system], f"not a hold and nothing else: {received.news}"
    return reason
