"""
What a `<task-notification>` says: which tasks ended, how, and with what report.
"""

from __future__ import annotations

import re
from typing import Final

from .clipped import clip
from .entries import texts_of
from .record import Notice

REPORT: Final = 1_000
"""Characters kept of each end of a report, and of a summary's start."""

_NOTIFICATION: Final = re.compile(r"<task-notification>(.*?)(?:</task-notification>|\Z)", re.DOTALL)
_EXIT_CODE: Final = re.compile(r"\bexit code (-?\d+)\b")


def notices_in(content: object) -> dict[str, Notice]:
    """
    The notices in an entry's content, by task id; by the id of the call that started it where the task is not named.
    """
    text = "\n".join(texts_of(content))
    told = {
        _tagged(part, "task-id") or _tagged(part, "tool-use-id"): _notice(part) for part in _NOTIFICATION.findall(text)
    }
    told.pop("", None)
    return told


def _notice(text: str) -> Notice:
    summary, report = _tagged(text, "summary"), _tagged(text, "result")
    # The agent's own description stands in quotes in front, and may speak of exit codes too.
    codes: list[str] = _EXIT_CODE.findall(summary.rpartition('"')[2])
    return Notice(
        _tagged(text, "status"),
        clip(summary, start=REPORT, end=0),
        clip(report, start=REPORT, end=REPORT),
        int(codes[-1]) if codes else None,
    )


def _tagged(text: str, tag: str) -> str:
    # The report may hold such tags itself: the first opening and, for it, the last closing one count.
    _, _, rest = text.partition(f"<{tag}>")
    inner, _, _ = rest.rpartition(f"</{tag}>") if tag == "result" else rest.partition(f"</{tag}>")
    return inner.strip()
