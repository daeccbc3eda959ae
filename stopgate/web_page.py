"""
The web page of a service: what it shows comes from the ledger that the service's own settings name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from ..costing.dashboard.dashboard import Dashboard, Sources
from ..costing.dashboard.pooled_store import PooledStore
from ..costing.dashboard.spare_memory import keep_little
from ..costing.ledger import Ledger
from ..costing.opening import open_ledger_store
from ..costing.windows import machine_zone
from ..judge.service.web import Web
from ..judge.service.web_access import WebAccess
from .places import config_dir
from .relay import VERSION
from .settings import BadSetting, ledger_url, read_settings

if TYPE_CHECKING:
    from .resident import Resident

LONGEST_NOTE: Final = 500

STATEMENT_S: Final = 10.0
"""For one statement of a page, and for the lock of others when a label is written."""


class WebPage:
    """
    The pages of one service, as an app for browsers.

    It has connections of its own to the ledger: who adds up years on that of the gate would keep stops waiting.
    """

    def __init__(self, resident: Resident, folder: str, environ: Mapping[str, str], token: str) -> None:
        keep_little()
        self._resident: Final = resident
        self._folder: Final = folder
        self._environ: Final = environ
        self._url: str = ""
        self._store = self._at("")
        self._moving: Final = Lock()
        zone = machine_zone(environ)
        sources = Sources(
            ledger=self._ledger,
            health=self._health,
            usd_per_day=lambda: _usd_per_day(environ),
            faults=lambda: _faults(environ),
            safe_note=_safe_note,
            zone=lambda: zone,
            now=lambda: datetime.now(UTC),
        )
        self.app: Final = Web(Dashboard(VERSION, sources), WebAccess(token), resident.page_failed)

    def close(self) -> None:
        """
        Close the ledger.
        """
        self._store.close()

    def _ledger(self) -> tuple[Ledger | None, str]:
        url = ledger_url(self._environ)
        with self._moving:
            left = self._store if url != self._url else None
            if left is not None:
                self._url, self._store = url, self._at(url)
            store = self._store
        if left is not None:
            left.close()
        error = store.reopen()
        return (None, error) if error else (Ledger(store), "")

    def _health(self) -> Mapping[str, Any]:
        return self._resident.health_by(*self._ledger())

    def _at(self, url: str) -> PooledStore:
        return PooledStore(lambda: open_ledger_store(self._folder, url, busy_timeout_s=STATEMENT_S, checkpoints=False))


def _usd_per_day(environ: Mapping[str, str]) -> Decimal | None:
    try:
        limit = read_settings(environ).settings.judge.usd_per_day
    except BadSetting:
        return None
    return None if limit is None else Decimal(limit)


def _faults(environ: Mapping[str, str]) -> Sequence[str]:
    from ..rubric.library import BadRubric, UnknownRubric, load

    config = config_dir(environ)
    try:
        name = read_settings(environ).settings.judge.rubric_name
        return load(name, Path(config, "rubrics") if config else None).faults
    except (BadSetting, UnknownRubric, BadRubric):
        return ()


def _safe_note(text: str) -> str:
    from ..rubric.masking import clean, mask

    return mask(" ".join(clean(text).split()))[:LONGEST_NOTE]
