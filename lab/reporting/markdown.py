"""
A report as Markdown: the same tables, for documents and reviews.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ...costing.screen import one_line
from ...rubric.masking import cut
from .disagreements import Disagreement
from .document import Block, Prose, Section, Table
from .report import Report
from .sections import heading, sections

SIGN: Final = "<!-- turngate lab report -->"
"""By which a document of ours is known."""

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|~&#])")
_LONGEST_CELL: Final = 400


def markdown(of: Report) -> str:
    """
    Write the document; the turns themselves stand in the page.
    """
    parts = [SIGN, f"# {_cell(heading(of))}"]
    parts += [part for section in sections(of) for part in _section(section)]
    parts += _disagreements(of)
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield f"## {_cell(section.title)}"
    for block in section.blocks:
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Prose):
        text = _cell(block.text)
        yield f"**{text}**" if block.is_warning else text
    elif isinstance(block, Table):
        if block.title:
            yield f"{_cell(block.title)}:"
        yield table_text(block)


def table_text(block: Table) -> str:
    """
    Write a table, without its title.
    """
    sides = ["---", *("---:" if block.numbers else "---" for _ in block.names[1:])]
    return "\n".join([_row(block.names), f"|{'|'.join(sides)}|", *map(_row, block.rows)])


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", one_line(text))


def _disagreements(of: Report) -> Iterator[str]:
    if not any(arm.score for arm in of.arms):
        return
    yield "## Disagreements"
    if not of.disagreements:
        yield "None: on each case with labels, what was named is what people say."
        return
    names = ("case", "session", "labels", "confidence", "disagreement", "quote and reason")
    rows = tuple(_disagreement(one, len(of.arms) > 1) for one in of.disagreements)
    yield table_text(Table("", names, rows, numbers=False))


def _disagreement(one: Disagreement, has_arms: bool) -> tuple[str, ...]:
    def arm(letter: str) -> str:
        return f"{letter}: " if has_arms else ""

    marks = "; ".join(f"{arm(mark.arm)}{mark.kind} {mark.fault}" for mark in one.marks)
    said = "; ".join(
        f"{arm(opinion.arm)}{said.fault}: \u201c{said.quote}\u201d {said.reason}"
        for opinion in one.opinions
        for said in opinion.said
    )
    confidence = f"{one.confidence}, disputed" if one.disputed else one.confidence
    cells = (one.case, one.session, ", ".join(one.labels) or "clean", confidence, marks, said)
    return tuple(cut(cell, _LONGEST_CELL, keep="start") for cell in cells)
