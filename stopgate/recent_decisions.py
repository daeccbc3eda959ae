"""
What the gate decided lately: so that silence shows, and so that a week of shadow says whether blocking is safe.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ..costing.ledger import Ledger
from ..costing.outcomes import OUTCOMES, Outcome
from ..costing.records import DecisionLine
from ..costing.stamps import stamp
from ..costing.store import Store, StoreError
from .pausing import BadPauses, read_pauses
from .settings import Settings

MOST_LOOKED_AT: Final = 10
WEEK: Final = timedelta(days=7)

LEAST_JUDGED: Final = 20
"""Stops of a week, below which nothing is said about it."""

MOST_HELD: Final = 0.25
"""Of the judged stops; more would be a nuisance."""

_NOT_DECIDED: Final = ("pass_not_a_turn", "jobs_pass", "jobs_deny", "jobs_unparsed")
_STOPS: Final[tuple[Outcome, ...]] = tuple(outcome for outcome in OUTCOMES if outcome not in _NOT_DECIDED)
_JUDGED: Final = ("pass_clean", "pass_noted", "pass_ungrounded", "shadow_verdict")


class ShadowWeek(NamedTuple):
    """
    The last seven days, in which nothing was held.
    """

    judged: int
    would_hold: int
    called_wrong: int

    @property
    def is_safe(self) -> bool:
        """
        Whether it says that blocking would be no nuisance: enough was judged, little would be held, and nothing of that was called wrong.
        """
        return self.judged >= LEAST_JUDGED and self.would_hold <= MOST_HELD * self.judged and not self.called_wrong


def judged_lately(ledger: Ledger, most: int = MOST_LOOKED_AT) -> list[DecisionLine]:
    """
    Give the latest stops, newest last. Raises `StoreError`.
    """
    return [decision.line for decision in ledger.decisions(most, outcomes=_STOPS)]


def shadow_week(store: Store, now: datetime) -> ShadowWeek | None:
    """
    Add up a whole week of shadow; None where the last seven days were none, or not all of them. Raises `StoreError`.
    """
    since = stamp(now - WEEK)
    rows = store.rows("SELECT outcome, COUNT(*) FROM decisions WHERE at >= ? GROUP BY outcome", (since,))
    counts: Mapping[str, int] = {str(outcome): int(times) for outcome, times in rows}
    held = counts.get("block_verdict", 0) + counts.get("block_background", 0)
    is_whole = bool(store.rows("SELECT 1 FROM decisions WHERE at < ? LIMIT 1", (since,)))
    if held or not is_whole:
        return None
    wrong = store.rows(
        "SELECT COUNT(*) FROM decisions JOIN labels ON labels.decision_id = decisions.id"
        " WHERE decisions.at >= ? AND outcome LIKE 'shadow_%' AND label = 'wrong'",
        (since,),
    )[0][0]
    would_hold = counts.get("shadow_verdict", 0) + counts.get("shadow_background", 0)
    return ShadowWeek(sum(counts.get(outcome, 0) for outcome in _JUDGED), would_hold, int(wrong))


def lately(store: Store | None, settings: Settings, state: str, now: datetime) -> list[tuple[str, str]]:
    """
    Give the lines of `turngate status` about the gate itself, whether a service runs or not.
    """
    lines = [*_last_stop(store), *_pauses(state, now)]
    if settings.gate_mode != "block":
        lines.append(("mode", settings.gate_mode))
    if settings.gate_mode == "shadow" and store is not None:
        lines += _suggestion(store, now)
    return lines


def _last_stop(store: Store | None) -> list[tuple[str, str]]:
    try:
        found = judged_lately(Ledger(store), 1) if store else []
    except StoreError as error:
        return [("last stop", f"not known: {error}")]
    if not found:
        return [("last stop", "none was decided yet; `turngate doctor` says whether the hooks are there")]
    return [("last stop", f"{found[-1].at:%Y-%m-%d %H:%M} UTC: {found[-1].outcome}")]


def _pauses(state: str, now: datetime) -> list[tuple[str, str]]:
    try:
        return [("paused", pause.in_words) for pause in read_pauses(state) if pause.holds_at(now)]
    except BadPauses as error:
        return [("paused", str(error))]


def _suggestion(store: Store, now: datetime) -> list[tuple[str, str]]:
    try:
        week = shadow_week(store, now)
    except StoreError:
        return []
    if week is None or not week.is_safe:
        return []
    text = f"in a week of shadow {week.would_hold} of {week.judged} judged stops would have been held, and you called none of"
    return [("suggestion", f'{text} them wrong (`turngate log --would-hold`): gate.mode = "block" is safe')]
