"""
What a labeller sees on the terminal. Beside `costing/tables.py` the only file that imports rich.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from functools import lru_cache
from io import StringIO
from typing import Final, Literal, NamedTuple

from ...costing.screen import one_line
from ...rubric.masking import clean, cut
from ...rubric.render import fact_lines
from ...rubric.turn import Turn
from ...stopgate.console import print_text
from ..errors import LabError
from .session import CLEAN_KEY, CONFIDENCE_KEYS, Labelling, Opinion
from .terminal import REDRAW, keys_from, taken_over

PREVIOUS_REPLY: Final = 1_000
"""Characters of its end that are shown."""

Kind = Literal["head", "text", "mark"]


class Line(NamedTuple):
    """
    A line of text before it is laid out.
    """

    text: str
    kind: Kind = "text"


class Look(NamedTuple):
    """
    What the terminal can show.
    """

    width: int = 80
    height: int = 24
    styled: bool = False
    """With bold text and the like."""


def label_on_terminal(labelling: Labelling, definitions: Sequence[str], *, styled: bool, moves: bool) -> None:
    """
    Go through the cases with whoever sits at the terminal, until they quit.

    Where the cursor `moves`, a page replaces the one before. Raises `LabError` where there is no terminal, or a label cannot be kept;
    no signal that ends it loses anything that was saved.
    """
    if not (os.isatty(0) and os.isatty(1)):
        raise LabError("labelling needs a terminal: give the labels with --answers FILE, or --answers - for stdin")
    with taken_over(moves=moves) as read:
        _draw(labelling, definitions, styled=styled, moves=moves)
        for key in keys_from(read):
            if key != REDRAW:
                labelling.press(key)
            if labelling.has_quit:
                return
            _draw(labelling, definitions, styled=styled, moves=moves)


def page(labelling: Labelling, definitions: Sequence[str], look: Look) -> list[str]:
    """
    Lay out what is to be seen now, as many lines as the terminal has but for one.
    """
    foot = _laid_out(tuple(_foot(labelling)), look)[: look.height - 4]
    room = look.height - len(foot) - 2
    lines = map(Line, definitions) if labelling.mode == "help" else _body(labelling)
    body = _laid_out(tuple(lines), look)
    labelling.screens = max(1, -(-len(body) // room))
    labelling.screen = min(labelling.screen, labelling.screens - 1)
    shown = body[labelling.screen * room :][:room]
    head = _laid_out((Line(_title(labelling), "head"),), look)[:1]
    return [*head, *shown, *[""] * (room - len(shown)), *foot]


def help_lines(system: str, faults: Sequence[str]) -> list[str]:
    """
    Give the definitions of the faults out of a rubric's words, and what the keys are for.
    """
    found = {
        fault: re.search(rf"(?:\A|\n\n)({re.escape(fault)}: .*?)(?=\n\n|\Z)", system, re.DOTALL) for fault in faults
    }
    texts = [match[1].strip() if match else fault for fault, match in found.items()]
    return [line for text in texts for line in (*text.split("\n"), "")]


def _title(labelling: Labelling) -> str:
    done = f"{labelling.total - labelling.left} of {labelling.total} done"
    what = "deciding" if labelling.adjudicates else "labelling"
    if labelling.task is None:
        return f"{what} as {one_line(labelling.labeller)}, {done}"
    screen = f", screen {labelling.screen + 1} of {labelling.screens}" if labelling.screens > 1 else ""
    return f"{one_line(labelling.task.case.id)}{screen}, {done}, {what} as {one_line(labelling.labeller)}"


def _body(labelling: Labelling) -> list[Line]:
    if labelling.task is None:
        return [Line(""), Line("Nothing is left to label. u takes the last label back, q ends.", "mark")]
    case, opinions = labelling.task
    return [*_turn_lines(case.turn), *_opinion_lines(opinions)]


def _turn_lines(turn: Turn) -> list[Line]:
    parts = {
        "end of the previous reply": cut(turn.previous_reply, PREVIOUS_REPLY, keep="end"),
        "request": turn.request or "(out of reach)",
        "later prompts": "\n\n".join(turn.later_prompts),
        "tool calls": "\n".join(call.line for call in turn.tool_calls) or "(none)",
        "facts": "\n".join(fact_lines(turn)),
        "reply": turn.reply,
    }
    return [
        line
        for name, text in parts.items()
        if text
        for line in (Line(name, "head"), *map(Line, clean(text).expandtabs(4).split("\n")), Line(""))
    ]


def _opinion_lines(opinions: Sequence[Opinion]) -> list[Line]:
    lines: list[Line] = []
    for who, labels, confidence, note in opinions:
        said = f"{', '.join(labels) or 'none'} ({confidence} confidence)"
        lines.append(Line(f"{one_line(who)} says: {said}" + (f": {one_line(note)}" if note else ""), "mark"))
    return lines


def _foot(labelling: Labelling) -> list[Line]:
    if labelling.mode == "help":
        return [Line("space/b scroll, any other key goes back")]
    if labelling.mode == "note":
        return [Line(f"note: {one_line(labelling.note)}_"), Line("Enter keeps the note, Esc leaves it as it was")]
    keys = "Enter save | space/b scroll | s skip | u undo | r note | ? help | q quit"
    said = Line(labelling.message or " ", "mark")
    if labelling.task is None:
        return [said, Line("u undo | ? help | q quit")]
    draft = labelling.draft
    choices = [(key, fault, fault in draft.faults) for key, fault in labelling.keys.items()]
    choices.append((CLEAN_KEY, "none", draft.is_clean))
    faults = "  ".join(f"[{'x' if chosen else ' '}] {key} {name}" for key, name, chosen in choices)
    levels = " ".join(f"{key} {level}" for key, level in CONFIDENCE_KEYS.items())
    note = f" | note: {draft.note}" if draft.note else ""
    return [said, Line(faults), Line(f"confidence: {draft.confidence} ({levels}){note}"), Line(keys)]


@lru_cache(maxsize=8)
def _laid_out(lines: tuple[Line, ...], look: Look) -> list[str]:
    """
    Fold lines to the terminal's width, counted in its columns: some characters take two, some none.

    A long reply takes a tenth of a second, which nobody wants to wait at each key.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(
        file=StringIO(),
        width=look.width,
        force_terminal=look.styled,
        color_system="standard" if look.styled else None,
        legacy_windows=False,
    )
    styles: dict[Kind, str] = {"head": "bold", "mark": "italic", "text": ""}
    with console.capture() as captured:
        for text, kind in lines:
            console.print(Text(text, style=styles[kind], overflow="fold"), soft_wrap=False)
    return captured.get().rstrip("\n").split("\n") if lines else []


def _draw(labelling: Labelling, definitions: Sequence[str], *, styled: bool, moves: bool) -> None:
    size = shutil.get_terminal_size()
    lines = page(labelling, definitions, Look(max(20, size.columns), max(8, size.lines), styled))
    if moves:
        print_text("\x1b[H" + "\n".join(f"{line}\x1b[K" for line in lines) + "\x1b[J")
    else:
        print_text("\n".join(lines) + "\n")
