"""
A verdict that a person calls wrong or right, as a labelled case: the turn is found again, and the labels are what the person says.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal, get_args

from ..costing.ledger import Ledger
from ..costing.records import DecisionLine
from ..costing.screen import one_line
from ..judge.service.wire import WireTurn
from ..rubric.masking import clean, mask
from ..rubric.turn import Turn
from ..rubric.verdict import Finding, Verdict, ground
from ..stopgate.evidence import build_turn
from ..stopgate.transcript.lines import Unopened
from ..stopgate.transcript.reader import read
from ..stopgate.transcript.record import Record
from ..stopgate.transcript.stops import PastStop, stops_in
from ..stopgate.turn_count import TurnCounts, TurnKey
from .cases import Case, case_line, new_case, read_case
from .errors import LabError
from .files import read_whole, write_whole

FILE_NAME: Final = "lab-cases.jsonl"
"""In the state directory."""

Word = Literal["wrong", "right"]
WORDS: Final[tuple[Word, ...]] = get_args(Word)
"""What a person says of a verdict."""

_JUDGED: Final = ("block_verdict", "shadow_verdict", "pass_clean", "pass_noted", "pass_ungrounded")
_LATE: Final = timedelta(seconds=1)
"""So much later than the stop a reply may be stamped: two clocks may take part."""


class TurnNotFound(Exception):
    """
    What was judged cannot be known any more; the text says why.
    """


def right_labels(line: DecisionLine, named: Sequence[str], known: Collection[str]) -> list[str]:
    """
    Give the faults of the reply as a person sees them who calls this verdict wrong.

    Of the `named` faults the verdict is wrong: a fault that it found is not there, and one that it did not find is. None named: all
    that it found is not there. Raises `LabError` where there is no verdict, or none that could be wrong so.
    """
    found = found_labels(line, "wrong")
    if unknown := [fault for fault in named if fault not in known and fault not in found]:
        raise LabError(f"--fault {unknown[0]!r}: no such fault: expected one of {', '.join(known)}")
    if not named and not found:
        raise LabError(f"decision {line.id} found no fault: say with --fault which one it missed")
    if not named:
        return []
    return [fault for fault in dict.fromkeys((*known, *found)) if (fault in found) != (fault in named)]


def found_labels(line: DecisionLine, word: Word = "right") -> list[str]:
    """
    Give the faults that the verdict found, each once. Raises `LabError` where there is no verdict, which could be called so.
    """
    if not was_judged(line):
        raise LabError(f"decision {line.id} ({line.outcome}) was made without a judge: no verdict can be {word}")
    return list(dict.fromkeys(finding.fault for finding in line.findings))


def was_judged(line: DecisionLine) -> bool:
    """
    Say whether there is a verdict.
    """
    return line.outcome in _JUDGED or bool(line.findings)


def judged_turn(ledger: Ledger, line: DecisionLine, checks: Sequence[str] = ()) -> Turn:
    """
    Give the turn that a decision was about: as it was recorded, else as its transcript tells it.

    *checks* are the project's own check commands. Raises `TurnNotFound`.
    """
    if recorded := ledger.recorded_turn(line.id):
        try:
            return WireTurn.model_validate(json.loads(recorded)).turn()
        except (ValueError, RecursionError):
            raise TurnNotFound("the recorded turn is damaged") from None
    stop = _stop_of(line)
    record = read(stop.path, subagent=stop.is_subagent, end=stop.end)
    if record.problem:
        raise TurnNotFound(f"the transcript cannot be read: {one_line(record.problem)}")
    return build_turn(
        record,
        reply=stop.reply,
        subagent=stop.is_subagent,
        checks=checks,
        holds=_holds_before(ledger, line, record),
        cwd=stop.cwd,
        running_task_ids=frozenset(task.id for task in stop.tasks),
    )


def labelled_case(line: DecisionLine, turn: Turn, labels: Sequence[str], note: str, word: Word) -> Case:
    """
    Make the case of a verdict that was called so. Raises `LabError` where the turn is more than a case can hold.
    """
    return new_case(
        f"{word}-{line.id}",
        turn,
        labels=list(labels),
        confidence="medium",
        rationale=note,
        source=f"turngate {word}",
        client_version=line.client_version,
        session=line.session_id,
        tags=[word],
    )


def keep_case(path: Path, decision_id: str, case: Case | None) -> None:
    """
    Put a case into a file in place of the decision's earlier one, or none; every other line stays as it is, byte for byte.

    Raises `LabError`. Others must not write meanwhile.
    """
    lines = _lines(path)
    kept = b"".join(line for line in lines if _decision_of(line) != decision_id)
    if case and kept and not kept.endswith(b"\n"):
        kept += b"\n"
    if case or len(kept) < sum(map(len, lines)):
        write_whole(path, kept + (case_line(case).encode("utf-8", "replace") if case else b""))


def kept_cases(path: Path) -> dict[str, Case | None]:
    """
    Give the cases of a file that were made so, by their decisions' ids; None for one that cannot be read. Raises `LabError`.
    """
    return {decision: _case(line) for line in _lines(path) if (decision := _decision_of(line))}


def _lines(path: Path) -> list[bytes]:
    return (read_whole(path) or b"").splitlines(keepends=True)


def _case(line: bytes) -> Case | None:
    try:
        return read_case(line)
    except LabError:
        return None


def _stop_of(line: DecisionLine) -> PastStop:
    if not line.transcript_path:
        raise TurnNotFound("the client named no transcript")
    if not line.prompt_id and line.reply_chars is None:
        raise TurnNotFound("neither the prompt nor the length of the reply is known")
    try:
        fitting = [stop for stop in stops_in(line.transcript_path, subagent=bool(line.agent_id)) if _fits(stop, line)]
    except (Unopened, OSError) as error:
        raise TurnNotFound(f"the transcript is gone: {one_line(str(error))}") from None
    if not fitting:
        raise TurnNotFound("the transcript has no such reply any more")
    return fitting[-1]


def _holds_before(ledger: Ledger, line: DecisionLine, record: Record) -> tuple[str, ...]:
    key = TurnKey(line.session_id, line.agent_id, record.human_id, frozenset(record.prompt_ids))
    holds = TurnCounts(ledger.database).find(key).holds
    own = line.outcome.startswith("block_")
    return tuple(hold.reason for hold in holds[: max(0, (line.spent or 0) - own)])


def _fits(stop: PastStop, line: DecisionLine) -> bool:
    if stop.is_cut or (line.prompt_id and stop.prompt_id != line.prompt_id):
        return False
    if line.reply_chars is not None and line.reply_chars not in (len(stop.reply), len(stop.reply.strip())):
        return False
    written = _time(stop.at)
    if written is not None and written > line.at + _LATE:
        return False
    found = tuple(Finding(finding.fault, finding.quote, finding.reason) for finding in line.findings)
    return ground(Verdict(found), (stop.reply, mask(clean(stop.reply)))).dropped == 0


def _time(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None


def _decision_of(line: bytes) -> str:
    try:
        word, _, decision = str(json.loads(line).get("id")).partition("-")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return decision if word in WORDS else ""
