"""
The Bash commands of recorded sessions, and what the jobs check says of each. Of a command, the parts that are refused are kept, masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from ...rubric.masking import clean, mask
from ...stopgate.jobs.check import checked
from ...stopgate.settings import Settings
from ...stopgate.transcript.entries import Entry, as_dict, as_text, blocks_of, content_of, read_line
from ...stopgate.transcript.lines import LONGEST_LINE, open_file
from .times import time_of

LONGEST_PART: Final = 200
"""Characters of a refused part that are kept."""


class RefusedPart(NamedTuple):
    """
    What is refused of a command.
    """

    kind: str
    part: str
    """Masked, on one line."""


class BashCommand(NamedTuple):
    """
    One Bash command of the past, and what the jobs check says of it.
    """

    id: str
    """Of its call, which a copy of the session repeats."""
    at: datetime | None
    """In UTC; that of the command before where its entry has no time, None where there is none either."""
    project: str
    session: str
    outcome: str
    """`jobs_pass`, `jobs_deny`, `jobs_unparsed`; `pass_off` where the settings switch the check off."""
    refused: tuple[RefusedPart, ...] = ()


def bash_commands(file: Path, settings: Settings) -> Iterator[BashCommand]:
    """
    Check every Bash command of a transcript, as often as it is told. Raises `Unopened` and `OSError`.

    A call in a line that is longer than the gate's reader holds is not found.
    """
    at: datetime | None = None
    for place, (entry, use) in enumerate(_calls_in(file)):
        at = time_of(as_text(entry.get("timestamp"))) or at
        call = as_text(use.get("id")) or f"{file} {place}"
        yield _checked(call, at, entry, use, settings)


def _calls_in(file: Path) -> Iterator[tuple[Entry, Entry]]:
    """
    Give each call of Bash with its entry.
    """
    for line in _lines(file):
        # A result with the word costs a parse, and has no such block.
        for entry in read_line(line).entries if b'"Bash"' in line and b'"tool_use"' in line else ():
            for use in blocks_of(content_of(_agents(entry)), "tool_use"):
                if use.get("name") == "Bash":
                    yield entry, use


def _agents(entry: Entry) -> Entry:
    """
    Give the agent's message that an entry holds; older clients put those of subagents into entries about progress.
    """
    if entry.get("type") == "progress":
        entry = as_dict(as_dict(entry.get("data")).get("message"))
    return entry if entry.get("type") == "assistant" else {}


def _lines(path: Path) -> Iterator[bytes]:
    with open(open_file(str(path)), "rb") as file:
        is_rest = False
        while line := file.readline(LONGEST_LINE):
            is_end = line.endswith(b"\n") or len(line) < LONGEST_LINE
            if is_end and not is_rest:
                yield line
            is_rest = not is_end


def _checked(call: str, at: datetime | None, entry: Entry, use: Entry, settings: Settings) -> BashCommand:
    found = BashCommand(call, at, _masked(entry.get("cwd")), _masked(entry.get("sessionId")), "pass_off")
    if "off" in (settings.jobs_mode, settings.gate_mode):
        return found
    command = as_dict(use.get("input")).get("command")
    if not isinstance(command, str):
        return found._replace(outcome="jobs_unparsed")
    answer = checked(command, allowed=settings.jobs_allow)
    refused = tuple(RefusedPart(finding.kind, _short(finding.part)) for finding in answer.found)
    return found._replace(outcome=answer.outcome, refused=refused)


def _short(part: str) -> str:
    text = " ".join(_masked(part).split())
    return text if len(text) <= LONGEST_PART else f"{text[: LONGEST_PART - 1]}…"


def _masked(text: object) -> str:
    return mask(clean(as_text(text)))
