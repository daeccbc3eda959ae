"""
The stops of one recorded session, each under an id that every copy of the session shares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from ...stopgate.transcript.lines import LONGEST_LINE, Unopened
from ...stopgate.transcript.stops import PastStop, stops_in


def read_stops(path: Path) -> Iterator[PastStop]:
    """
    Give every stop in a transcript, the oldest first. Raises `Unopened`, also where the file holds something else.
    """
    found = False
    for stop in stops_in(str(path)):
        found = True
        yield stop
    if not found and not _may_be_transcript(path):
        raise Unopened("not JSON Lines")


def id_of(stop: PastStop) -> str:
    """
    Give the id of a stop: the same in each copy of the session, wherever it lies and whatever times it has.
    """
    place = stop.message_id or stop.parent_uuid or stop.prompt_id or f"{stop.session_id} {stop.end}"
    return f"t-{sha256(repr((stop.agent_id, place, stop.reply)).encode('utf-8', 'replace')).hexdigest()[:16]}"


def _may_be_transcript(path: Path) -> bool:
    """
    Whether a file is empty or has a line that is an object, or is too long to tell.
    """
    is_empty = True
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            if line.startswith(b"{") and (len(line) == LONGEST_LINE or _is_object(line)):
                return True
            is_empty = is_empty and not line.strip()
    return is_empty


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
