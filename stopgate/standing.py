"""
How the service stands: what `turngate status` and `GET /healthz` say of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from ..costing.amounts import plain
from ..costing.stamps import stamp
from ..costing.store import StoreError
from ..judge.breaker import LOOK_BACK, OPEN_FOR, is_open

if TYPE_CHECKING:
    from ..costing.latency import Percentiles
    from ..costing.ledger import Ledger
    from ..costing.metrics import Metrics
    from ..costing.records import CallEnd, CallStart, DecisionLine
    from ..judge.connect import Judge


VENDOR: Final = "the vendor's own address"

TROUBLES: Final = frozenset(
    (
        *("pass_judge_timeout", "pass_judge_error", "pass_judge_unreadable", "pass_judge_refused"),
        *("pass_state_error", "pass_service_error", "pass_internal_error"),
    )
)


class Standing:
    """
    Watches the ledger's lines as they are made, and remembers of them what a person wants to know.
    """

    def __init__(self, version: str, metrics: Metrics, started_at: datetime) -> None:
        self._version: Final = version
        self._metrics: Final = metrics
        self._started_at: Final = started_at
        self._asked: dict[str, str] = {}
        self._last_error: dict[str, str] | None = None

    def decision(self, line: DecisionLine) -> None:
        """
        Count a decision, and remember what went wrong.
        """
        self._metrics.decision(line)
        if line.outcome in TROUBLES:
            self._last_error = {"at": stamp(line.at), "what": line.outcome, "detail": line.detail}

    def call_ended(self, start: CallStart, end: CallEnd) -> None:
        """
        Count a call, and remember what went wrong.
        """
        self._metrics.call_ended(start, end)
        if end.outcome != "answered":
            what = f"{end.outcome} at {start.endpoint}"
            self._last_error = {"at": stamp(start.at), "what": what, "detail": end.detail}

    def page_failed(self, error: BaseException) -> None:
        """
        Remember a fault of ours in showing the web page, without what it said: that may be a text of a session.
        """
        self._last_error = {"at": stamp(datetime.now(UTC)), "what": "web page", "detail": type(error).__name__}

    def asked(self, judge: Judge) -> None:
        """
        Remember who was asked last, and which variable or setting named them.
        """
        target = judge.target
        self._asked = {
            "backend": target.backend,
            "model": target.model,
            "endpoint": target.place,
            "endpoint_from": target.endpoint_from or VENDOR,
            "key_from": target.key_variable,
        }

    def breaker_open_for(self, ledger: Ledger) -> list[str]:
        """
        Give the endpoints that are left alone now.
        """
        now = datetime.now(UTC)
        # The failure that opened it may have taken as long as a deadline can be.
        endpoints = ledger.endpoints_since(now - OPEN_FOR - timedelta(minutes=10))
        return [endpoint for endpoint in endpoints if is_open(ledger.recent_outcomes(endpoint, LOOK_BACK), now)]

    def in_short(self) -> Mapping[str, object]:
        """
        Give what a stranger may know.
        """
        return {"status": "ok", "version": self._version}

    def in_full(self, ledger: Ledger | None, trouble: str) -> Mapping[str, object]:
        """
        Give all; `trouble` is why there is no ledger. Money is in US dollars, as plain decimals, and null where it is not known.
        """
        sums = self._metrics.summary()
        return {
            **self.in_short(),
            "pid": os.getpid(),
            "alive_since": stamp(self._started_at),
            "decisions": sums.decisions,
            "calls": sums.calls,
            "calls_in_flight": sums.in_flight,
            "hook_ms": {event: _latency(found) for event, found in sums.hooks.items()},
            "judge_ms": _latency(sums.judge),
            **self._from_ledger(ledger, trouble),
            "last_judge": self._asked or None,
            "last_error": self._last_error,
        }

    def _from_ledger(self, ledger: Ledger | None, trouble: str) -> Mapping[str, object]:
        unknown = {"ledger": None, "spent_today_usd": None, "unpriced_calls_today": None, "breaker_open": None}
        if ledger is None:
            return {**unknown, "ledger_error": trouble}
        try:
            today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            spent = ledger.spent_usd(today)
            return {
                "ledger": ledger.database.path,
                "ledger_error": None,
                "spent_today_usd": plain(spent.usd),
                "unpriced_calls_today": spent.unknown,
                "breaker_open": self.breaker_open_for(ledger),
            }
        except StoreError as error:
            return {**unknown, "ledger_error": str(error)}


def _latency(found: Percentiles) -> dict[str, int | None]:
    return {"p50": _ms(found.p50_s), "p95": _ms(found.p95_s)}


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
