"""
What lives in the service from stop to stop: open stores, open judges, and the counts; and what each route does with them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..costing.measured_ledger import MeasuredLedger
from ..costing.metrics import Metrics
from ..costing.windows import machine_zone
from ..judge.bounded_loop import in_thread
from ..judge.connect import Judge, NoJudge, connect
from ..judge.context import CallContext
from ..judge.judgement import Judgement
from ..judge.open_models import OpenModels
from ..judge.service.app import HookReply, RelayedEvent
from ..judge.sharing import shared
from ..judge.single_flight import SingleFlight
from .answering import clock_since, passed_without_gate, unread_event
from .events import STOP_EVENTS
from .once import once
from .places import config_dir
from .relayed_stop import answer_relayed, failed_relayed
from .settings import BadSetting, ledger_url, read_settings
from .standing import Standing
from .stores import Stores

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from ..rubric.turn import Turn
    from .gate import Store

LABELLED_EVENTS: Final = (*STOP_EVENTS, "StopFailure", "PreToolUse", "unknown")

SUMS_AFTER_S: Final = 30.0
"""After the start: the first stops come first."""
SUMS_EVERY_S: Final = 3600.0
"""How often one looks for days that are over."""


class Resident:
    """
    The service of one state directory. `environ` is the service's own, which decides for `POST /v1/judge` alone.
    """

    def __init__(self, folder: str, environ: Mapping[str, str], version: str) -> None:
        started_at = datetime.now(UTC)
        self.metrics: Final = Metrics(
            version,
            events=LABELLED_EVENTS,
            started_at=started_at,
            breaker_is_open=self._is_breaker_open,
            owed_lines=lambda: self._stores.owed(),
        )
        self._folder: Final = folder
        self._environ: Final = environ
        self._standing: Final = Standing(version, self.metrics, started_at)
        self._stores: Final = Stores(folder, lambda database: MeasuredLedger(database, self._standing))
        self._flights: Final = SingleFlight()
        self._zone: Final = machine_zone(environ)
        self._sums_due_at = time.monotonic() + SUMS_AFTER_S

    # The routes

    async def hook(self, relayed: RelayedEvent) -> HookReply:
        """
        Decide about a stop that a hook relayed.
        """
        _ = self._models  # made in the loop that uses it
        return await in_thread(lambda: self._answered(relayed))

    async def judge(self, turn: Turn, seconds: float) -> Judgement:
        """
        Judge a turn for another machine, by the service's own settings and key, within `seconds` or its own deadline.
        """
        started = time.monotonic()
        judge = await in_thread(lambda: self._own_judge(started, seconds))
        if isinstance(judge, NoJudge):
            return Judgement("no_judge", detail=judge.reason)
        self._standing.asked(judge)
        return await self._models.judge(judge, turn)

    def health(self, full: bool) -> Mapping[str, object]:
        """
        Say how the service stands.
        """
        if not full:
            return self._standing.in_short()
        store = self.store(ledger_url(self._environ))
        return self.health_by(store.ledger, store.error)

    def health_by(self, ledger: Ledger | None, trouble: str) -> Mapping[str, object]:
        """
        Say in full how the service stands, as this ledger has it; `trouble` is why there is none.
        """
        return self._standing.in_full(ledger, trouble)

    def refused(self, detail: str) -> None:
        """
        Write down that a request to the hook's route could not be understood; the turn ended.
        """
        clock = clock_since(time.monotonic())
        asyncio.get_running_loop().run_in_executor(
            None,
            lambda: passed_without_gate(
                unread_event({}), "pass_service_error", detail, self.store(ledger_url(self._environ)), clock
            ),
        )

    def failed(self, error: BaseException) -> None:
        """
        Write down a fault of ours in answering a request.
        """
        self.refused(f"internal error: {type(error).__name__}: {error}")

    def page_failed(self, error: BaseException) -> None:
        """
        Remember a fault of ours in showing the web page; no stop was concerned.
        """
        self._standing.page_failed(error)

    # What a stop needs

    def store(self, url: str) -> Store:
        """
        Give an open store.
        """
        return self._stores.get(url)

    def ask(self, judge: Judge, turn: Turn, stop: str, *, started_at: datetime) -> Judgement:
        """
        Ask with a model that is open already; other threads and other machines that ask about the same stop wait for the same call.
        """
        self._standing.asked(judge)
        once = shared(
            lambda asked: self._models.ask(judge, asked),
            stop,
            judge.ledger,
            started_at=started_at,
            deadline_at=judge.deadline_at,
        )
        return self._flights.ask(stop, lambda: once(turn), deadline_at=judge.deadline_at)

    # Upkeep

    def tick(self) -> None:
        """
        Write down what the ledgers owe, and now and then add up a day that is over. Called each second.
        """
        self._stores.pay()
        if time.monotonic() >= self._sums_due_at and self._stores.opened():
            is_left = self._stores.keep_sums(self._zone, datetime.now(UTC))
            self._sums_due_at = time.monotonic() + (0 if is_left else SUMS_EVERY_S)

    async def close_models(self) -> None:
        """
        Let go of the judges' connections.
        """
        await self._models.close()

    def end(self, *, wait_s: float) -> None:
        """
        Write down what is owed, waiting at most so long, and close all.
        """
        self._stores.pay(wait_s=wait_s)
        self._stores.close()

    @once
    def _models(self) -> OpenModels:
        return OpenModels(asyncio.get_running_loop(), self.metrics.in_flight)

    def _answered(self, relayed: RelayedEvent) -> HookReply:
        try:
            return answer_relayed(relayed, self._folder, self)
        except Exception as error:
            return failed_relayed(relayed, self, error)

    def _own_judge(self, started: float, seconds: float) -> Judge | NoJudge:
        try:
            settings = read_settings(self._environ).settings
        except BadSetting as error:
            return NoJudge(str(error))
        if settings.judge.backend == "remote":
            return NoJudge("a service whose own judge.backend is remote judges for nobody else")
        config = config_dir(self._environ)
        return connect(
            settings.judge._replace(rubric_folder=Path(config, "rubrics") if config else None),
            self._environ,
            self._stores.get(settings.ledger_url).ledger,
            CallContext(),
            deadline_at=started + min(seconds, settings.judge.deadline_s),
            scripted=Path(self._folder, "scripted.jsonl"),
            prices_folder=Path(config) if config else None,
        )

    def _is_breaker_open(self) -> bool:
        ledgers = [store.ledger for store in self._stores.opened().values() if store.ledger is not None]
        return any(self._standing.breaker_open_for(ledger) for ledger in ledgers)
