"""
What tests of batches share: a run's folder, and a go of its questions through a scripted endpoint.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from turngate.costing.ledger import Ledger
from turngate.costing.opening import open_ledger_store
from turngate.costing.records import Call
from turngate.judge.connect import Target
from turngate.judge.scripted_api import Received, ScriptedMessagesApi
from turngate.judge.settings import JudgeSettings
from turngate.lab.batches.batch import run_batch
from turngate.lab.cases import Case, new_case
from turngate.lab.runs import Asked, Run, open_run, questions
from turngate.rubric.library import load
from turngate.rubric.turn import Turn

_AT_ONCE: dict[str, Any] = {"poll_s": 0.0, "settling_s": 0.0}

KEY = "sk-ant-only-for-tests-0123456789"
CLEAN = '{"findings": []}'


def some_cases(number: int) -> list[Case]:
    turns = (Turn(request=f"Do task {index}.", reply=f"Task {index} is done.") for index in range(number))
    return [new_case(f"c{index}", turn, labels=[]) for index, turn in enumerate(turns)]


class Stage:
    """
    A run in a folder; each `go` is what one command does. `said` is what it told the person.
    """

    def __init__(self, folder: Path, cases: int = 3, repeats: int = 1, **settings: Any) -> None:
        self.folder = folder / "run"
        self.said: list[str] = []
        self.settings = JudgeSettings(backend="anthropic", **settings)
        self.cases = some_cases(cases)
        self.repeats = repeats

    def run(self) -> Run:
        return open_run(self.folder, self.cases, Path("cases.jsonl"), load(), self.settings, self.repeats)

    def todo(self) -> list[Asked]:
        run = self.run()
        answered = {key for key, answer in run.answers.items() if answer.outcome in ("answered", "refused")}
        asked = questions(run.cases, load(), self.settings, self.repeats)
        return [one for one in asked if (one.case.id, one.repeat) not in answered]

    def target(self, url: str, key: str = KEY) -> Target:
        return Target("anthropic", self.settings.model, url, key, "ANTHROPIC_API_KEY")

    def go(
        self, api: ScriptedMessagesApi | str, *, key: str = KEY, limit_usd: str | None = None, **options: Any
    ) -> int:
        url = api if isinstance(api, str) else api.url
        return run_batch(
            self.run(),
            self.todo(),
            self.target(url, key),
            self.settings,
            limit_usd=None if limit_usd is None else Decimal(limit_usd),
            prices_folder=None,
            say=self.said.append,
            **{**_AT_ONCE, **options},
        )

    def texts(self) -> dict[tuple[str, int], str]:
        return {key: answer.text for key, answer in self.run().answers.items() if answer.outcome == "answered"}

    def failures(self) -> dict[str, str]:
        return {key[0]: answer.detail for key, answer in self.run().answers.items() if answer.outcome == "error"}

    def calls(self) -> list[Call]:
        with open_ledger_store(self.folder) as store:
            return Ledger(store).calls()


def creates(received: Received) -> bool:
    """
    Say whether a request submits a batch.
    """
    return received.method == "POST" and received.path.endswith("/batches")


def fetches_results(received: Received) -> bool:
    """
    Say whether a request is for results.
    """
    return received.path.endswith("/results")


def asks_for_state(received: Received) -> bool:
    """
    Say whether a request asks how far a batch is.
    """
    return received.method == "GET" and "/msgbatch" in received.path and not fetches_results(received)


def custom_ids(received: Received) -> list[str]:
    return [item["custom_id"] for item in received.body["requests"]]
