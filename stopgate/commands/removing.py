"""
What `turngate prune` and `turngate forget` have in common: take a scope out of the store, clear the files, and say how much it was.
"""

from __future__ import annotations

import os
from datetime import datetime

from ...costing.retention import Removed, Scope, count, remove
from ...costing.store import Store, StoreError
from ..console import CommandError, print_text, warn

LARGE = 200_000_000
"""Bytes of a ledger from which a person should know what is to come."""

NOTHING_YET = "nothing is stored yet\n"

_NAMES = {"shared_judgements": "shared judgements (of all sessions: a second hook asks anew)"}


def removed_text(store: Store, scope: Scope, folder: str, now: datetime, *, dry_run: bool) -> str:
    """
    Remove it, or with `dry_run` only look, and give what was or would be removed. Raises `CommandError` where traces stay.
    """
    if dry_run:
        return _text(count(store, scope, folder, now=now), "would be removed")

    _tell_of_size(store)
    text = _text(remove(store, scope, folder, now=now), "removed")
    try:
        is_clear, why = store.scrub(), "another program still reads it"
    except StoreError as error:
        is_clear, why = False, str(error)
    if not is_clear:
        print_text(text)
        raise CommandError(
            f"{store.path}: traces of what was removed may be left in the file ({why}): run it again later"
        )
    return text


def _tell_of_size(store: Store) -> None:
    try:
        size = os.path.getsize(store.path)  # noqa: PTH202
    except OSError:  # a server's
        return
    if size > LARGE:
        warn(
            f"{size // 1_000_000:,} MB are searched and written anew, about 20 s for each million calls: stops may pass unjudged"
        )


def _text(removed: Removed, done: str) -> str:
    counts = removed._asdict()
    live = counts.pop("live_turns")
    found = [(_NAMES.get(name, name.replace("_", " ")), number) for name, number in counts.items() if number]
    lines = [f"{done}:", *(f"  {number:>9,}  {name}" for name, number in found)] if found else [f"nothing {done}"]
    if live:
        turns = "1 turn" if live == 1 else f"{live:,} turns"
        lines.append(f"{turns} of the last hour may still be running: the count of holds stays, without its texts")
    return "\n".join(lines) + "\n"
