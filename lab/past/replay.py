"""
The replay: past stops played through the gate itself, with a judge that calls every turn clean and a memory that is thrown away.

Each stop meets the transcript as it stood then. What a hold would have changed about the rest of a session cannot be played.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from ...costing.database import open_database
from ...costing.outcomes import Outcome
from ...judge.judgement import Ask, Judgement
from ...rubric.library import BadRubric, Rubric, UnknownRubric, load
from ...rubric.masking import clean, mask
from ...rubric.render import CeilingTooLow, render
from ...rubric.turn import Turn
from ...rubric.verdict import Verdict
from ...stopgate.events import Event, scrub
from ...stopgate.gate import Store, decide
from ...stopgate.places import config_dir
from ...stopgate.settings import Settings, read_settings
from ...stopgate.transcript.lines import Unopened
from ...stopgate.transcript.stops import PastStop
from ...stopgate.turn_count import TurnCounts
from ..errors import LabError
from .bash_commands import BashCommand, bash_commands
from .stops import id_of, read_stops
from .times import time_of
from .workers import workers

TAG: Final = "kvq7xa"
"""Fences the parts of each request: as long as the gate's own, and the same at every replay, so that sizes are too."""

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Plan(NamedTuple):
    """
    How stops are played: by the user's own settings.
    """

    settings: Settings
    rubric: Rubric
    since: date | None = None
    """The first day (UTC) that counts."""
    until: date | None = None
    """The last one."""

    def counts(self, at: datetime | None) -> bool:
        """
        Say whether a stop is one of those that are asked for; one without a time is so only where no days are named.
        """
        if self.since is None and self.until is None:
            return True
        if at is None or self.is_over(at):
            return False
        return self.since is None or self.since <= at.date()

    def is_over(self, at: datetime) -> bool:
        """
        Say whether a time lies behind the last day.
        """
        return self.until is not None and at.date() > self.until


class Size(NamedTuple):
    """
    How large the request about a turn is.
    """

    characters: int
    bytes: int
    tokens: int
    """An upper estimate, the answer's schema included."""


class Replayed(NamedTuple):
    """
    One past stop, and what the gate would have done.
    """

    at: datetime | None
    """In UTC; that of the stop before where the reply has no time, None where there is none either."""
    project: str
    outcome: Outcome
    request: Size | None
    """None where no judge would have been asked."""
    id: str = ""
    """What a copy of the session repeats."""


class Played(NamedTuple):
    """
    The stops of some transcripts.
    """

    stops: tuple[Replayed, ...] = ()
    unreadable: tuple[str, ...] = ()
    """One line for each transcript that could not be read."""
    repeated: int = 0
    """Stops that another transcript tells of too: a copy, or a session that was resumed in a new file. They are counted once."""
    overlong: frozenset[str] = frozenset()
    """The ids of stops that were not played: the line of the reply is longer than the reader holds."""
    commands: tuple[BashCommand, ...] = ()
    """The Bash commands, each call once, whatever transcripts tell of it."""


def plan(environ: Mapping[str, str], *, since: date | None = None, until: date | None = None) -> Plan:
    """
    Make the plan of a user's settings and rubric. Raises `BadSetting` and `LabError`.
    """
    settings = read_settings(environ).settings
    folder = config_dir(environ)
    try:
        rubric = load(settings.judge.rubric_name, Path(folder, "rubrics") if folder else None)
    except (BadRubric, UnknownRubric) as error:
        raise LabError(str(error)) from None
    return Plan(settings, rubric, since, until)


def replay(
    files: Iterable[Path],
    plan: Plan,
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Played:
    """
    Play all stops of some transcripts, oldest first; `progress` is told of sessions.

    A transcript that cannot be read is one line of `unreadable`.
    """
    sessions = sessions_of(files)
    played: dict[int, Played] = {}
    for index, one in _played(sessions, plan, min(jobs or os.cpu_count() or 1, len(sessions))):
        played[index] = one
        if progress:
            progress(len(played), len(sessions))
    # By session first, so that nothing hangs on which worker was first.
    in_order = [played[index] for index in sorted(played)]
    stops = sorted((stop for one in in_order for stop in one.stops), key=lambda stop: stop.at or _LONG_AGO)
    once: dict[str, Replayed] = {}
    for stop in stops:
        # The first is the original: a copy may have later times, or other days.
        once.setdefault(stop.id, stop)
    counted = tuple(stop for stop in once.values() if plan.counts(stop.at))
    return Played(
        counted,
        tuple(line for one in in_order for line in one.unreadable),
        repeated=sum(plan.counts(stop.at) for stop in stops) - len(counted),
        overlong=frozenset[str]().union(*(one.overlong for one in in_order)),
        commands=_counted(plan, (command for one in in_order for command in one.commands)),
    )


def _counted(plan: Plan, commands: Iterable[BashCommand]) -> tuple[BashCommand, ...]:
    once: dict[str, BashCommand] = {}
    for command in sorted(commands, key=lambda command: command.at or _LONG_AGO):
        once.setdefault(command.id, command)
    return tuple(command for command in once.values() if plan.counts(command.at))


def sessions_of(files: Iterable[Path]) -> list[tuple[Path, ...]]:
    """
    Put the transcripts of subagents to that of their session: they share its memory.
    """
    keyed = sorted((*_session_of(file), file) for file in files)
    return [tuple(file for *_, file in group) for _, group in groupby(keyed, key=lambda key: key[0])]


def _session_of(file: Path) -> tuple[Path, bool]:
    """
    Give the folder of a session, which only its subagents need, and whether the file is one of theirs.
    """
    # `<project>/<session>.jsonl`, and `<project>/<session>/subagents/agent-<id>.jsonl`.
    return (file.parent.parent, True) if file.parent.name == "subagents" else (file.with_suffix(""), False)


def _played(sessions: Sequence[tuple[Path, ...]], plan: Plan, jobs: int) -> Iterator[tuple[int, Played]]:
    if jobs <= 1:
        for index, session in enumerate(sessions):
            yield index, _unharmed(partial(play, session, plan), session)
        return
    with workers(jobs) as pool:
        futures = {pool.submit(play, session, plan): index for index, session in enumerate(sessions)}
        for future in as_completed(futures):
            index = futures[future]
            yield index, _unharmed(future.result, sessions[index])


def _unharmed(run: Callable[[], Played], session: tuple[Path, ...]) -> Played:
    try:
        return run()
    except Exception as error:  # one transcript must not take the figures of all others away
        return Played(unreadable=tuple(f"{file.name}: {type(error).__name__}: {error}" for file in session))


def play(files: Sequence[Path], plan: Plan) -> Played:
    """
    Play the stops of one session, its subagents' among them, in the order in which they happened, and check its commands; those of other
    days too.
    """
    unreadable: list[str] = []
    told: list[list[tuple[datetime | None, PastStop]]] = []
    commands: list[BashCommand] = []
    for file in files:
        try:
            told.append(list(_timed(read_stops(file))))
            commands.extend(bash_commands(file, plan.settings))
        except (Unopened, OSError) as error:
            unreadable.append(f"{file.name}: {error}")
    # Within a file, stops lie in their order, whatever their times say.
    timed = list(heapq.merge(*told, key=lambda pair: pair[0] or _LONG_AGO))
    overlong = frozenset(id_of(stop) for at, stop in timed if stop.is_cut and plan.counts(at))
    timed = [(at, stop) for at, stop in timed if not stop.is_cut]
    project = mask(clean(next((stop.cwd for _, stop in timed if stop.cwd), "")))
    in_project = tuple(command._replace(project=project or command.project) for command in commands)
    played = Played((), tuple(unreadable), overlong=overlong, commands=in_project)
    if not timed:
        return played
    with _memory() as store:
        replayed = [
            _replayed(at, stop, project, plan, store) for at, stop in timed if at is None or not plan.is_over(at)
        ]
    return played._replace(stops=tuple(replayed))


def _timed(stops: Iterable[PastStop]) -> Iterator[tuple[datetime | None, PastStop]]:
    """
    Give each stop its own time; one without has that of the stop before.
    """
    at: datetime | None = None
    for stop in stops:
        at = time_of(stop.at) or at
        yield at, stop


@contextmanager
def _memory() -> Generator[Store]:
    """
    A memory like the gate's, for counts and without a ledger, which nobody would read.
    """
    with TemporaryDirectory(prefix="turngate-replay-") as folder, open_database(folder) as database:
        yield Store(None, TurnCounts(database))


def _replayed(at: datetime | None, stop: PastStop, project: str, plan: Plan, store: Store) -> Replayed:
    sizes: list[Size] = []
    is_off = plan.settings.judge.backend == "off"
    reply = decide(
        _event(stop),
        now=at or _LONG_AGO,
        store=store,
        ask=_clean(plan, sizes) if plan.counts(at) else lambda _: _CLEAN,
        settings=plan.settings,
        held_back=lambda: Judgement("no_judge", detail="judge.backend is off") if is_off else None,
    )
    return Replayed(at, project, reply.outcome, sizes[0] if sizes else None, id_of(stop))


def _event(stop: PastStop) -> Event:
    return Event(
        "SubagentStop" if stop.is_subagent else "Stop",
        session_id=stop.session_id,
        transcript_path="" if stop.is_subagent else stop.path,
        agent_transcript_path=stop.path if stop.is_subagent else "",
        cwd=stop.cwd,
        prompt_id=stop.prompt_id,
        agent_id=stop.agent_id,
        reply=scrub(stop.reply),
        tasks=stop.tasks,
        project=stop.cwd,
        transcript_end=stop.end,
    )


_CLEAN: Final = Judgement("answered", Verdict())


def _clean(plan: Plan, sizes: list[Size]) -> Ask:
    """
    Give a judge that puts the request together, and calls the turn clean.
    """

    def ask(turn: Turn) -> Judgement:
        judge = plan.settings.judge
        try:
            request = render(plan.rubric, turn, max_input_tokens=judge.max_input_tokens, tag=TAG)
        except CeilingTooLow as error:
            return Judgement("no_judge", detail=f"judge.{error}")
        sent = request.system + request.user
        sizes.append(Size(len(sent), len(sent.encode("utf-8", "replace")), request.estimated_tokens))
        return _CLEAN

    return ask
