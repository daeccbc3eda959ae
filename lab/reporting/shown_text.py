"""
How text of unknown origin stands in a report: free of secrets and of what hides text; and where a quote stands in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ...costing.screen import one_line
from ...rubric.masking import clean, mask
from ...rubric.render import fact_lines
from ...rubric.turn import Turn

_ALIKE: Final = {"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'"}
_LEFT_OUT: Final = "`*"
"""A judge quotes without the emphasis; the gate takes that too."""


class ShownTurn(NamedTuple):
    """
    A turn as a person reads it.
    """

    request: str
    later_prompts: tuple[str, ...]
    previous_reply: str
    tool_lines: tuple[str, ...]
    facts: tuple[str, ...]
    """In the judge's words."""
    reply: str


def shown(text: str) -> str:
    """
    Give a text as a report may show it.
    """
    return mask(clean(text))


def plain(text: str) -> str:
    """
    Give a text as a report may show it, in one line.
    """
    return one_line(shown(text))


def shown_turn(turn: Turn) -> ShownTurn:
    """
    Give a turn as a report may show it, whole: the judge may have seen less of a long one.
    """
    return ShownTurn(
        shown(turn.request),
        tuple(map(shown, turn.later_prompts)),
        shown(turn.previous_reply),
        tuple(shown(call.line) for call in turn.tool_calls),
        tuple(map(shown, fact_lines(turn))),
        shown(turn.reply),
    )


def quoted(text: str, quotes: Sequence[str]) -> list[tuple[str, bool]]:
    """
    Cut a text into pieces, each with whether it is part of a quote.

    Quotes are looked for as the gate does: white space folded, curly quotation marks as straight ones, emphasis left out.
    """
    folded, places = _folded(text)
    marked = bytearray(len(text))
    for quote in quotes:
        wanted = _folded(quote)[0].strip()
        start = folded.find(wanted) if wanted else -1
        if start >= 0:
            first, last = places[start], places[start + len(wanted) - 1]
            marked[first : last + 1] = b"\1" * (last + 1 - first)
    return _pieces(text, marked)


def _folded(text: str) -> tuple[str, list[int]]:
    """
    Fold a text, and tell for each character that is left where it stood.
    """
    kept: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if character in _LEFT_OUT:
            continue
        if character.isspace() and kept and kept[-1] == " ":
            continue
        kept.append(" " if character.isspace() else _ALIKE.get(character, character))
        places.append(place)
    return "".join(kept), places


def _pieces(text: str, marked: bytearray) -> list[tuple[str, bool]]:
    pieces: list[tuple[str, bool]] = []
    start = 0
    while start < len(text):
        is_marked = marked[start]
        end = marked.find(1 - is_marked, start)
        end = end if end >= 0 else len(text)
        pieces.append((text[start:end], bool(is_marked)))
        start = end
    return pieces
