"""
A kept text as it may be shown: clean and free of secrets, also of those that were cut through where it was clipped.
"""

from __future__ import annotations

from ...rubric.masking import clean, mask
from ..transcript.clipped import END_MARGIN, START_MARGIN, Clipped


def masked(text: str) -> str:
    """
    The whole text, or both ends of a clipped one around its mark.
    """
    if not isinstance(text, Clipped):
        return mask(clean(text))
    return f"{masked_start(text)}{text.mark}{masked_end(text)}"


def masked_start(text: str) -> str:
    """
    The text up to where it was clipped.
    """
    return mask(clean(text.start))[:-START_MARGIN] if isinstance(text, Clipped) else masked(text)


def masked_end(text: str) -> str:
    """
    The text from where it was clipped.
    """
    return mask(clean(text.end))[END_MARGIN:] if isinstance(text, Clipped) else masked(text)
