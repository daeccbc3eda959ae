"""
What a file's change looks like to a person, before it is made.
"""

from __future__ import annotations

import difflib

from ...rubric.masking import clean, mask


def diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """
    Give the lines that change, in the form of `diff -u`, without secrets; empty where none do.
    """
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    names = path if before is not None else "/dev/null", path if after is not None else "/dev/null"
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, *names, lineterm=""))


def _lines(content: bytes | None) -> list[str]:
    # Masked as a whole: a secret may reach over lines.
    text = mask(clean((content or b"").decode("utf-8-sig", "replace").replace("\r\n", "\n")))
    return text.split("\n")[: -1 if text.endswith("\n") else None] if text else []
