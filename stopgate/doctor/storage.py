"""
The state directory: who may read it, whether it can be written, what the ledger and the pauses in it say, and the clock.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from ...costing.database import FILE_NAME
from ...costing.ledger import Ledger
from ...costing.opening import open_ledger_store
from ...costing.store import Store, StoreError
from ..pausing import BadPauses, read_pauses
from ..recent_decisions import MOST_LOOKED_AT, judged_lately
from ..serving import TOKEN_FILE
from .finding import Finding, bad, ok, warn
from .scene import Scene

LEAST_FREE: Final = 100_000_000
"""In bytes."""

SPARE: Final = timedelta(minutes=2)
"""Other machines' clocks may be so far ahead."""


def check(scene: Scene) -> Iterator[Finding]:
    """
    Look into the state directory; what is not there yet is not made.
    """
    folder = scene.state
    if folder is None:
        yield bad("state", "there is no state directory", "set HOME or TURNGATE_STATE_DIR")
        return
    yield from _folder(folder)
    yield from _space(folder)
    yield from _pauses(scene, folder)
    if scene.settings.ledger_url or os.path.lexists(os.path.join(folder, FILE_NAME)):
        yield from _ledger(scene, folder)


def _folder(folder: str) -> Iterator[Finding]:
    there = folder
    while not os.path.lexists(there) and os.path.dirname(there) != there:
        there = os.path.dirname(there)
    if not os.path.isdir(there):  # noqa: PTH112
        yield bad("state", f"{there} is not a folder", "remove it, or name another by TURNGATE_STATE_DIR")
        return
    if not os.access(there, os.W_OK | os.X_OK):
        yield bad("state", f"{there} cannot be written: nothing can be held", f"chmod u+rwx {there}")
        return
    if there != folder:
        yield ok("state", f"{folder} is made by the first stop")
        return
    found = os.stat(folder)  # noqa: PTH116
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        yield bad("state", f"{folder} belongs to another user", "name another by TURNGATE_STATE_DIR")
    elif found.st_mode & 0o077:
        yield warn("state", f"{folder} is open to others: mode {stat.S_IMODE(found.st_mode):o}", f"chmod 700 {folder}")
    else:
        yield ok("state", f"{folder} is yours alone")
    for name in (FILE_NAME, TOKEN_FILE):
        yield from _private(os.path.join(folder, name))


def _private(path: str) -> Iterator[Finding]:
    if os.path.lexists(path) and (mode := stat.S_IMODE(os.stat(path).st_mode)) & 0o077:  # noqa: PTH116
        yield bad("state", f"{path} is open to others: mode {mode:o}", f"chmod 600 {path}")


def _space(folder: str) -> Iterator[Finding]:
    there = folder
    while not os.path.exists(there) and os.path.dirname(there) != there:
        there = os.path.dirname(there)
    yield from space_finding(folder, shutil.disk_usage(there).free)


def space_finding(folder: str, free: int) -> Iterator[Finding]:
    """
    Say whether so many bytes are enough.
    """
    if free < LEAST_FREE:
        yield bad(
            "disk", f"{free // 1_000_000} MB are free for {folder}: what cannot be stored is not held", "make room"
        )
    else:
        yield ok("disk", f"{free // 1_000_000_000} GB are free")


def _pauses(scene: Scene, folder: str) -> Iterator[Finding]:
    try:
        pauses = [pause for pause in read_pauses(folder) if pause.holds_at(scene.now)]
    except BadPauses as error:
        yield warn("pauses", str(error), "run `turngate resume`")
        return
    for pause in pauses:
        by = ", from an agent's shell" if pause.by_agent else ""
        yield warn("pauses", f"paused{by}: {pause.in_words}", "run `turngate resume`")


def _ledger(scene: Scene, folder: str) -> Iterator[Finding]:
    try:
        with open_ledger_store(folder, scene.settings.ledger_url) as store:
            yield from _decisions(scene, store)
    except StoreError as error:
        yield bad("ledger", f"{error}: nothing can be held", "move the file away, or put ledger.url right")


def _decisions(scene: Scene, store: Store) -> Iterator[Finding]:
    ledger = Ledger(store)
    lately = judged_lately(ledger)
    if ledger.damaged:
        yield warn("ledger", f"{store.path}: {len(ledger.damaged)} damaged rows", "nothing: what can be read is shown")
    if not lately:
        yield ok("ledger", f"{store.path}: no stop was decided yet")
        return
    last = lately[-1]
    yield ok("ledger", f"{store.path}: the last stop was decided at {last.at:%Y-%m-%d %H:%M} UTC: {last.outcome}")
    if last.at > scene.now + SPARE:
        text = f"the last decision is of {last.at:%Y-%m-%d %H:%M} UTC, which is yet to come: a clock is or was wrong"
        yield bad("clock", text, "set the clock right: budgets and the breaker count by it")
    troubled = [
        line
        for line in lately
        if line.outcome.startswith(("pass_judge", "pass_state", "pass_service", "pass_internal"))
    ]
    if len(lately) == MOST_LOOKED_AT and len(troubled) == len(lately):
        text = f"none of the last {MOST_LOOKED_AT} stops was judged; the latest: {last.outcome}: {last.detail}"
        yield bad("decisions", text, "see docs/outcomes.md for that code, and `turngate show` for the calls")
