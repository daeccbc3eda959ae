"""
The looks at test cases: how often their figures were seen, and for which answers.

Words that were changed after a look at the test split fit that split, and its interval no longer means what it says. So each look
is kept in the user's state directory before any figure is shown, by the turns that were looked at: other labels, other ids or one
turn more do not make them new. The dev split is there to be looked at, and is never counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from ..stopgate.places import state_dir
from .cases import json_object
from .errors import LabError, NotDecidable
from .files import append_line, is_json, read_whole
from .runs import Run, tag_of

LOOKS: Final = "lab-looks.jsonl"


class Look(NamedTuple):
    """
    One look at the figures of one run, or of several beside each other.
    """

    at: str
    """ISO 8601, UTC, to the second."""
    command: str
    cases: str
    """The hash of the set of cases, as the manifest has it."""
    turns: tuple[str, ...]
    """A hash of each test turn."""
    results: tuple[str, ...]
    """A hash of each run's answers."""


def is_test(run: Run) -> bool:
    """
    Say whether a run holds cases of the test split.
    """
    return run.manifest.split == "test" or any(case.split == "test" for case in run.cases)


def looks_before(environ: Mapping[str, str], runs: Sequence[Run]) -> list[Look]:
    """
    Give the looks at any of these test turns that tell against the figures of these runs, oldest first; none for the dev split.

    A second look at the same answers is the first one again. An earlier look at no more than these same runs does not count
    either, if all of them were begun before it: nothing can have been changed after it. Raises `LabError` where the record
    cannot be read.
    """
    now = _look(runs, "", datetime.now(UTC))
    if now is None:
        return []

    before: list[Look] = []
    for look in _looks(_place(environ)):
        if set(look.turns).isdisjoint(now.turns):
            continue
        if set(now.results) <= set(look.results):
            break
        if not (set(look.results) <= set(now.results) and _all_begun_before(look, runs)):
            before.append(look)
    return before


def note_look(
    environ: Mapping[str, str], runs: Sequence[Run], *, command: str = "", now: datetime | None = None
) -> int:
    """
    Keep that the figures of these runs are looked at, and give which look it is (from 1; 0 for the dev split).

    Raises `LabError` where that cannot be kept: then the figures must not be shown.
    """
    look = _look(runs, command, now or datetime.now(UTC))
    if look is None:
        return 0

    path = _place(environ)
    number = len(looks_before(environ, runs)) + 1
    if not any(_shows_all_of(known, look) for known in _looks(path)):
        _keep(path, look)
    return number


def refuse_looked_at(environ: Mapping[str, str], runs: Sequence[Run]) -> None:
    """
    Raise `NotDecidable` where the test cases were looked at before with other results.
    """
    if before := looks_before(environ, runs):
        times = "once" if len(before) == 1 else f"{len(before)} times"
        raise NotDecidable(
            f"these test cases were looked at {times} before with other results, last at {before[-1].at} by "
            f"{before[-1].command or 'turngate lab'}: `--look-again` shows the figures all the same, and is counted"
        )


def seen_as_test(environ: Mapping[str, str], runs: Sequence[Run]) -> int:
    """
    Count the turns of the dev split that were looked at as test turns before: moved over, they are looked at for nothing.

    Where there is no record, or none that can be read, it is 0.
    """
    with suppress(LabError):
        seen = {turn for look in _looks(_place(environ)) for turn in look.turns}
        return len(seen & {tag_of(case.turn) for run in runs for case in run.cases if case.split == "dev"})
    return 0


def _look(runs: Sequence[Run], command: str, now: datetime) -> Look | None:
    tests = [run for run in runs if is_test(run)]
    if not tests:
        return None
    return Look(
        at=now.astimezone(UTC).isoformat(timespec="seconds"),
        command=command,
        cases=tests[0].manifest.cases_hash,
        turns=tuple(sorted({turn for run in tests for turn in _turns(run)})),
        results=tuple(sorted({_results(run) for run in tests})),
    )


def _turns(run: Run) -> set[str]:
    tests = [case for case in run.cases if case.split == "test"]
    return {tag_of(case.turn) for case in tests or run.cases}


def _results(run: Run) -> str:
    said = [[*key, answer.outcome, answer.text] for key, answer in sorted(run.answers.items())]
    whole = json.dumps([run.manifest.rubric_hash, run.manifest.model, said])
    return sha256(whole.encode()).hexdigest()[:16]


def _shows_all_of(known: Look, look: Look) -> bool:
    return not set(known.turns).isdisjoint(look.turns) and set(look.results) <= set(known.results)


def _all_begun_before(look: Look, runs: Sequence[Run]) -> bool:
    # Within one second nobody knows which came first: that is no.
    try:
        return all(datetime.fromisoformat(run.manifest.created_at) < datetime.fromisoformat(look.at) for run in runs)
    except (TypeError, ValueError):
        return False


def _place(environ: Mapping[str, str]) -> Path:
    folder = state_dir(environ)
    if folder is None:
        raise LabError("no state directory to count looks at test cases in: set TURNGATE_STATE_DIR")
    return Path(folder) / LOOKS


def _keep(path: Path, look: Look) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        append_line(path, json.dumps(look._asdict()))
    except OSError as error:
        raise LabError(f"{path}: cannot be written: {error.strerror}: figures of test cases are not shown") from error
    except LabError as error:
        raise LabError(f"{error}: figures of test cases are not shown") from error


def _looks(path: Path) -> list[Look]:
    try:
        lines = (read_whole(path) or b"").splitlines()
    except LabError as error:
        raise LabError(f"{error}: figures of test cases are not shown") from None
    found: list[Look] = []
    for number, line in enumerate(lines, start=1):
        if not is_json(line):
            continue  # empty, or cut off by a crash before any figure was shown
        try:
            found.append(_read(json_object(line)))
        except LabError as error:
            raise LabError(f"{path}: line {number}: {error}") from None
    return found


def _read(fields: Mapping[str, Any]) -> Look:
    return Look(
        at=_text(fields, "at"),
        command=_text(fields, "command"),
        cases=_text(fields, "cases"),
        turns=_texts(fields, "turns"),
        results=_texts(fields, "results"),
    )


def _text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise LabError(f"{key}: expected a text")
    return value


def _texts(fields: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = fields.get(key)
    if not isinstance(value, list):
        raise LabError(f"{key}: expected a list")
    entries = cast("list[object]", value)
    if not all(isinstance(entry, str) for entry in entries):
        raise LabError(f"{key}: expected a list of texts")
    return tuple(cast("list[str]", entries))
