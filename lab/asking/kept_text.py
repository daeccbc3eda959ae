"""
What is kept of an answer: its text without secrets, which reads as the answer did.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from ...rubric.masking import clean, mask
from ...rubric.verdict import UnreadableVerdict, Verdict, masked, parse_verdict

LONGEST: Final = 50_001
"""In characters: one more than what `parse_verdict` reads, so that an answer that is too long stays so."""

_LOOKED_AT: Final = 60_000
"""A secret that the cut would halve is whole at first."""


def kept_text(text: str, faults: Collection[str]) -> str:
    """
    Give the text as it may be stored.
    """
    hidden = mask(clean(text[:_LOOKED_AT]))[:LONGEST]
    if hidden == text:
        return text

    before, after = _read(text, faults), _read(hidden, faults)
    if before is None or before == after:
        return hidden
    # A mask that took a quotation mark with it has made an answer unreadable which was not.
    return json.dumps({"findings": [finding._asdict() for finding in before.findings]}, ensure_ascii=False)


def _read(text: str, faults: Collection[str]) -> Verdict | None:
    try:
        return masked(parse_verdict(text, faults))
    except UnreadableVerdict:
        return None
