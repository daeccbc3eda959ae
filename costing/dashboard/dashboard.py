"""
The web page over a ledger: each page from the filters in its address, and what a person says of a verdict into the ledger.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qs

from ..amounts import readable_cost
from ..ledger import Ledger
from ..outcomes import COMMAND_PASSED
from ..store import StoreError
from ..windows import zone_name
from .asked import NO_PROJECT, SPANS, Asked, read_asked
from .assets import Asset, asset, missing_extra
from .latest import LEFT_OUT, LOOKED_AT, Latest, has_left_out, latest
from .marking import NoLabel, right_label
from .overview_view import Budget, charts, health_lines, plots, tiles
from .pages import page, script_json
from .rows import row
from .single_sums import SingleSums
from .state import state_of
from .sums import Sums
from .turn_view import turn_view


class Sources(NamedTuple):
    """
    Where the page's data come from. All are called in threads.
    """

    ledger: Callable[[], tuple[Ledger | None, str]]
    """Or why there is none."""
    health: Callable[[], Mapping[str, Any]]
    """As `GET /healthz` says in full."""
    usd_per_day: Callable[[], Decimal | None]
    faults: Callable[[], Sequence[str]]
    """Those of the rubric in use."""
    safe_note: Callable[[str], str]
    """Gives a text without secrets."""
    zone: Callable[[], tzinfo]
    """That of the machine."""
    now: Callable[[], datetime]


class Dashboard:
    """
    The pages. What a damaged row holds is shown as unknown; a ledger that cannot be read is said to be so.
    """

    def __init__(self, version: str, sources: Sources) -> None:
        self._version: Final = version
        self._sources: Final = sources
        self._sums: Final = SingleSums()

    def missing(self) -> str:
        """
        Name what is not installed and how to get it; empty where nothing is missing.
        """
        return missing_extra()

    def asset(self, name: str) -> Asset | None:
        """
        Give a file of the pages.
        """
        return asset(name)

    def overview(self, query: str) -> str:
        """
        Give the first page for the filters in the address.
        """
        asked = self._asked(query)
        seen = self._see(asked)
        choice = "" if asked.project is None else asked.project or NO_PROJECT
        known = seen.sums.projects if seen.sums else ()
        return self._page(
            "overview.html",
            asked,
            title="turngate",
            spans=SPANS,
            projects=sorted({*(name or NO_PROJECT for name in known), choice} - {""}),
            chosen_project=choice,
            no_project=NO_PROJECT,
            parts=self._parts(asked, seen),
            charts=charts(seen.sums) if seen.sums else [],
            figures=script_json(seen.figures),
            state=seen.state,
        )

    def live(self, query: str) -> str:
        """
        Give what changes of it, as JSON: HTML by the place that it belongs to, and the plots. Where the page's state, `seen` in the
        address, is that of the ledger, the judge's health alone.
        """
        asked = self._asked(query)
        state = self._state()
        if state and parse_qs(query).get("seen") == [state]:
            health = page("health.html", lines=health_lines(self._sources.health()))
            return json.dumps({"parts": {"health": health}, "state": state})
        seen = self._see(asked)
        found = {"parts": self._parts(asked, seen), "state": seen.state, "figures": seen.figures}
        return json.dumps(found, allow_nan=False)

    def turn(self, decision_id: str, form_secret: str) -> str | None:
        """
        Give the page of one decision; None where there is none.
        """
        asked = self._asked("")
        ledger, trouble = self._sources.ledger()
        try:
            found = turn_view(ledger, decision_id, asked.zone) if ledger is not None else None
        except StoreError as error:
            ledger, trouble = None, str(error)
            found = None
        if ledger is None:
            return self._page("trouble.html", asked, title="turngate", trouble=trouble)
        if found is None:
            return None
        faults = list(dict.fromkeys((*found.found, *self._sources.faults())))
        title = f"{found.row.outcome}, {found.row.time}"
        return self._page("turn.html", asked, title=title, turn=found, faults=faults, form_secret=form_secret)

    def mark(self, decision_id: str, fields: Mapping[str, list[str]]) -> str | None:
        """
        Keep what a person says of a verdict, or forget it; give why it cannot be kept, None where there is no such decision.
        """
        ledger, trouble = self._sources.ledger()
        if ledger is None:
            return trouble
        try:
            decision = ledger.decision(decision_id)
            if decision is None:
                return None
            if fields.get("do") == ["back"]:
                ledger.unlabel(decision_id)
                return ""
            label = right_label(decision.line, fields.get("fault", []), self._sources.faults())
            note = self._sources.safe_note(" ".join(fields.get("note", [])))
            ledger.label(decision_id, label, self._sources.now(), note)
        except (NoLabel, StoreError) as error:
            return str(error)
        return ""

    def _asked(self, query: str) -> Asked:
        return read_asked(query, self._sources.now(), self._sources.zone())

    def _state(self) -> str:
        ledger, _ = self._sources.ledger()
        try:
            return state_of(ledger.database, self._sources.now()) if ledger else ""
        except StoreError:
            return ""

    def _see(self, asked: Asked) -> _Seen:
        health, limit = self._sources.health(), self._sources.usd_per_day()
        ledger, trouble = self._sources.ledger()
        if ledger is None:
            return _Seen(health, limit, None, None, trouble)
        try:
            now = self._sources.now()
            state, sums = self._sums.read(ledger.database, asked, now)
            return _Seen(
                health,
                limit,
                sums,
                latest(ledger, asked, now),
                "",
                asked.project is None,
                state,
                _is_empty(ledger),
                has_left_out(ledger.database, asked, now),
            )
        except StoreError as error:
            return _Seen(health, limit, None, None, str(error))

    def _parts(self, asked: Asked, seen: _Seen) -> dict[str, str]:
        """
        Give the parts of the overview that change by themselves, as HTML.
        """
        health = page("health.html", lines=health_lines(seen.health))
        if seen.sums is None or seen.latest is None:
            return {
                "notes": page("notes.html", trouble=seen.trouble, problems=asked.problems, empty=False),
                "health": health,
            }
        sums, found = seen.sums, seen.latest
        rows = [row(decision, asked.zone, found.labels.get(decision.line.id, "")) for decision in found.decisions]
        return {
            "notes": page("notes.html", trouble="", problems=(*asked.problems, *seen.problems), empty=seen.is_empty),
            "sums": page("sums.html", tiles=tiles(sums, seen.budget)),
            **{f"table-{chart.name}": page("table.html", table=chart.table) for chart in charts(sums)},
            "turns": page(
                "turns.html",
                rows=rows,
                looked_at_all=found.looked_at_all,
                looked_at=LOOKED_AT,
                passed_commands=sums.outcomes.get(COMMAND_PASSED, 0),
                empty=seen.is_empty,
            ),
            "health": health,
        }

    def _page(self, template: str, asked: Asked, **values: object) -> str:
        return page(template, turngate=self._version, zone=zone_name(asked.zone), asked=asked, **values)


class _Seen(NamedTuple):
    health: Mapping[str, Any]
    usd_per_day: Decimal | None
    sums: Sums | None
    latest: Latest | None
    trouble: str
    is_of_all: bool = True
    state: str = ""
    """Before the sums were read: what came meanwhile is read next time."""
    is_empty: bool = False
    has_left_out: bool = False

    @property
    def problems(self) -> tuple[str, ...]:
        return (LEFT_OUT,) if self.has_left_out else ()

    @property
    def budget(self) -> Budget:
        spent, unknown = self.health.get("spent_today_usd"), self.health.get("unpriced_calls_today")
        return Budget(readable_cost(spent), unknown if isinstance(unknown, int) else 0, self.usd_per_day)

    @property
    def figures(self) -> dict[str, Any]:
        if self.sums is None:
            return {}
        # The budget is that of all projects together.
        return plots(self.sums, self.usd_per_day if self.is_of_all else None)


def _is_empty(ledger: Ledger) -> bool:
    return not ledger.database.rows("SELECT 1 FROM decisions LIMIT 1") and not ledger.database.rows(
        "SELECT 1 FROM calls LIMIT 1"
    )
