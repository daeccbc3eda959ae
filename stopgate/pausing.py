"""
Pauses: for a while, for a session or for a project nothing is held and nobody is asked.

They stand in one small file of the state directory, which every stop looks for: so the service and a hook's own process know of a
pause at once, whatever the ledger is. A file that cannot be read pauses nothing; `turngate doctor` names it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, NamedTuple, cast

from ..costing.stamps import moment, new_id, stamp
from .events import Event
from .replaced_file import alone, replace_file
from .small_files import read_small

FILE_NAME: Final = "turngate.pauses.json"
LOCK_NAME: Final = "turngate.pauses.lock"
LONGEST: Final = timedelta(days=366)

_LIMIT: Final = 100_000
_MOST: Final = 200
_UNITS: Final[Mapping[str, int]] = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


class BadPauses(Exception):
    """
    The file of pauses, or what somebody asks of it, cannot be used; one line.
    """


class Pause(NamedTuple):
    """
    One pause; without a session and a project it is for all stops.
    """

    id: str
    since: datetime
    until: datetime | None = None
    """None: until somebody resumes."""
    session: str = ""
    project: str = ""
    """A folder, absolute; what lies below it is meant too."""
    by_agent: bool = False
    """Whether it was made from an agent's shell."""

    def holds_at(self, now: datetime) -> bool:
        """
        Say whether it is not over yet.
        """
        return self.until is None or now < self.until

    def covers(self, event: Event) -> bool:
        """
        Say whether it is about the stop of this event.
        """
        if self.session and self.session != event.session_id:
            return False
        return not self.project or any(_is_below(folder, self.project) for folder in event.project_folders)

    @property
    def in_words(self) -> str:
        """
        Say what is paused, and until when.
        """
        what = f"session {self.session}" if self.session else self.project or "everything"
        end = f"until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else "until `turngate resume`"
        return f"{what}, {end}"


def pause_for(event: Event, folder: str | None, now: datetime) -> Pause | None:
    """
    Give the pause that this stop falls into; None where there is none, or none that can be read.
    """
    try:
        pauses = read_pauses(folder) if folder else []
    except BadPauses:
        return None
    return next((pause for pause in pauses if pause.holds_at(now) and pause.covers(event)), None)


def read_pauses(folder: str) -> list[Pause]:
    """
    Give all pauses of a state directory, those that are over too. Raises `BadPauses`.
    """
    path = os.path.join(folder, FILE_NAME)
    try:
        content = read_small(path, _LIMIT)
        if content is None:
            return []
        found = cast("dict[str, list[dict[str, object]]]", json.loads(content))["pauses"]
        return [_read(fields) for fields in found[:_MOST]]
    except OSError as error:
        raise BadPauses(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise BadPauses(f"{path}: is damaged, so nothing is paused: remove it") from error


def add_pause(folder: str, pause: Pause, now: datetime) -> None:
    """
    Write a pause down. One of the same session and project is replaced, and those that are over go. Raises `BadPauses`.
    """

    def kept(other: Pause) -> bool:
        return other.holds_at(now) and (other.session, other.project) != (pause.session, pause.project)

    with _changing(folder):
        try:
            before = read_pauses(folder)
        except BadPauses:
            before = []
        _write(folder, [*filter(kept, before), pause])


def end_pauses(folder: str, now: datetime, *, session: str = "", project: str = "") -> list[Pause]:
    """
    End the pause of this session or project, all of them where neither is named, and give those that were not over. Raises `BadPauses`.
    """

    def is_meant(pause: Pause) -> bool:
        return not (session or project) or (pause.session, pause.project) == (session, project)

    if not os.path.isdir(folder):  # noqa: PTH112
        return []
    with _changing(folder):
        try:
            before = read_pauses(folder)
        except BadPauses:
            if session or project:
                raise
            before = []
        _write(folder, [pause for pause in before if not is_meant(pause) and pause.holds_at(now)])
    return [pause for pause in before if is_meant(pause) and pause.holds_at(now)]


def new_pause(
    now: datetime, environ: Mapping[str, str], *, lasting: timedelta | None = None, session: str = "", project: str = ""
) -> Pause:
    """
    Give a pause that begins now; the environment tells whether an agent's shell asks for it.
    """
    by_agent = bool(environ.get("CLAUDECODE", "").strip())
    return Pause(new_id(now), now, now + lasting if lasting else None, session, project, by_agent)


def read_duration(text: str) -> timedelta:
    """
    Read a time such as `90s`, `20m`, `2h`, `1h30m` or `1d`. Raises `BadPauses`.
    """
    parts = re.findall(r"([0-9]{1,9})([dhms])", text) if re.fullmatch(r"(?:[0-9]{1,9}[dhms])+", text) else []
    lasting = timedelta(
        seconds=sum(int(number) * _UNITS[unit] for number, unit in cast("list[tuple[str, str]]", parts))
    )
    if not timedelta(0) < lasting <= LONGEST:
        raise BadPauses(f"{text!r} is no time up to a year: write 20m, 2h or 1d")
    return lasting


@contextmanager
def _changing(folder: str) -> Generator[None]:
    """
    Be alone with the file; what the system says against it is a `BadPauses`.
    """
    try:
        with alone(os.path.join(folder, LOCK_NAME)):
            yield
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadPauses(f"{folder}: cannot be written: {why}") from error


def _write(folder: str, pauses: Sequence[Pause]) -> None:
    path = os.path.join(folder, FILE_NAME)
    if not pauses:
        if os.path.lexists(path):
            os.unlink(path)  # noqa: PTH108
        return
    fields = [
        pause._asdict() | {"since": stamp(pause.since), "until": stamp(pause.until) if pause.until else ""}
        for pause in pauses
    ]
    replace_file(path, json.dumps({"pauses": fields}, indent=1).encode() + b"\n", mode=0o600)


def _read(fields: Mapping[str, object]) -> Pause:
    until = str(fields.get("until") or "")
    return Pause(
        str(fields["id"]),
        moment(str(fields["since"])),
        moment(until) if until else None,
        str(fields.get("session") or ""),
        str(fields.get("project") or ""),
        fields.get("by_agent") is True,
    )


def _is_below(folder: str, project: str) -> bool:
    below = project.rstrip("/") + "/"
    return any(place == project or place.startswith(below) for place in (folder, os.path.realpath(folder)))
