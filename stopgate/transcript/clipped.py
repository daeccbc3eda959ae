"""
What is kept of a text that is too long to be kept whole: its two ends, raw.

A secret may be cut through at an inner edge, and then no mask knows it. So each end has a margin towards the cut: whoever shows the text
masks an end first and then drops its margin (`evidence.masked` does).
"""

from __future__ import annotations

import re
from typing import Final

START_MARGIN: Final = 400
"""Characters. Of a secret that is cut through, the beginning is known by its shape, or short."""
END_MARGIN: Final = 2_000
"""Characters in which a secret ends that is known by the words before it. No word and no private key is cut through."""

_LONGEST_WORD: Final = 6_000
_LONGEST_KEY: Final = 16_000
_BLANK: Final = re.compile(r"\s")


class Clipped(str):
    """
    The two ends of a text around a visible mark.
    """

    __slots__ = ("end", "mark", "start")

    start: str
    """Its last `START_MARGIN` characters are not to be shown."""
    mark: str
    end: str
    """Its first `END_MARGIN` characters are not to be shown."""


def clip(text: str, *, start: int, end: int) -> str:
    """
    The text with at least so many characters of each end fit to be shown, or the whole of it where it is hardly longer.
    """
    goes_on_at = _fit_to_go_on(text, len(text) - end - END_MARGIN) if end else len(text)
    left_out = goes_on_at - start - START_MARGIN
    if left_out <= 0:
        return text

    shown_less = START_MARGIN + (END_MARGIN if goes_on_at < len(text) else 0)
    kept = text[: start + START_MARGIN], f"[… {left_out + shown_less:,} characters left out …]", text[goes_on_at:]
    clipped = Clipped("".join(kept))
    clipped.start, clipped.mark, clipped.end = kept
    return clipped


def _fit_to_go_on(text: str, position: int) -> int:
    """
    The nearest place before a position that is within no word and no private key; behind it where the word is endless.
    """
    if position <= 0:
        return 0
    key = text.rfind("-----BEGIN ", 0, position)
    if key >= 0 and "PRIVATE KEY" in text[key : key + 80] and text.find("-----END ", key, position) < 0:
        return key if position - key <= _LONGEST_KEY else len(text)
    earliest = max(0, position - _LONGEST_WORD)
    word = max(text.rfind(" ", earliest, position), text.rfind("\n", earliest, position)) + 1
    if word or not earliest:
        return word
    behind = _BLANK.search(text, position)
    return behind.end() if behind else len(text)
