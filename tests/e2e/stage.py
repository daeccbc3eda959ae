"""
One scene: the real client, a scripted main loop, a scripted judge and the real hook between them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from turngate.judge.scripted_api import Received as JudgeRequest
from turngate.judge.scripted_api import Script as JudgeAnswer
from turngate.judge.scripted_api import ScriptedMessagesApi

from .client import HOOK, TURNGATE, Client, Json, Run
from .main_loop_api import Received, Script, ScriptedMainLoop

CLEAN: Json = {"findings": []}


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
    Sets up scenes under `folder`; the gate's state is shared by all of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self._environ = {
            "TURNGATE_STATE_DIR": str(folder / "state"),
            "TURNGATE_CONFIG": str(folder / "config.toml"),
            # Above the default of 8 s: several clients and hooks at once may be slow to start on a small machine.
            "TURNGATE_JUDGE_DEADLINE_S": "40",
        }

    def play(
        self,
        prompt: str,
        agents: Mapping[str, Script],
        verdicts: Sequence[JudgeAnswer] = (),
        *,
        otherwise: JudgeAnswer = CLEAN,
        judge_url: str = "",
        hooks: Sequence[str] = (str(HOOK),),
        environ: Mapping[str, str] | None = None,
        resume: bool = False,
    ) -> Played:
        """
        Run one prompt; with `resume` it is the next one of the session played before.

        `judge_url` names another judge than the scripted one.
        """
        with ScriptedMainLoop(agents) as main_loop, ScriptedMessagesApi(verdicts, otherwise=otherwise) as judge:
            settings = {**self._environ, "TURNGATE_JUDGE_BASE_URL": judge_url or judge.url, **(environ or {})}
            client = Client(self.folder, settings)
            client.use_hooks(hooks)
            run = client.run(prompt, main_loop_url=main_loop.url, resume=resume)

        beyond = [(request.opening, request.news) for request in main_loop.unscripted]
        assert not beyond, f"agents went on after their scripts were over: {beyond}"
        assert not run.left_processes, f"processes outlived the client: {run.left_processes}"
        return Played(run, main_loop, judge.requests, self._log(client))

    def _log(self, client: Client) -> list[Json]:
        lines = subprocess.run(
            [TURNGATE, "log", "--json", "-n", "100"], env=client.environ, capture_output=True, text=True, check=True
        ).stdout
        return [json.loads(line) for line in lines.splitlines()]


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
