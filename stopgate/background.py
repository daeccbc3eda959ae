"""
The free check: which background tasks still run and count, and the sentence that names them.

The rule is the riskiest of all: endless tasks must never hold an agent for long. So tasks that never end or belong to others
are exempt, and each task is named once per session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from .events import BackgroundTask

NEVER_ENDING_TYPES = ("monitor", "teammate", "in_process_teammate")
"""Monitors never end; teammates stay `running` for the whole session, idle or not."""

MOST_NAMED = 5
LONGEST_TEXT = 600

_DESCRIPTION_WIDTHS = (80, 60, 40, 20, 8)
_WAYS_ON = (
    "Collect the result before you end the turn; or stop the task with TaskStop if it is no longer needed; "
    "or, if it is meant to keep running, say so plainly and end."
)


def counting(
    tasks: Iterable[BackgroundTask],
    *,
    exempt_types: Collection[str] = (),
    exempt_commands: Sequence[str] = (),
) -> tuple[BackgroundTask, ...]:
    """
    Give the tasks that run and are expected to end. Unknown types count.
    """
    exempt = {*NEVER_ENDING_TYPES, *exempt_types}
    return tuple(
        task
        for task in tasks
        if task.status == "running"
        and task.type not in exempt
        and not any(fnmatchcase(task.command, pattern) for pattern in exempt_commands)
    )


def hold_text(tasks: Sequence[BackgroundTask]) -> str:
    """
    Name at most five running tasks and the three ways on, in at most 600 characters.
    """
    texts = (_text(tasks, width) for width in _DESCRIPTION_WIDTHS)
    return next((text for text in texts if len(text) <= LONGEST_TEXT), _WAYS_ON)


def _text(tasks: Sequence[BackgroundTask], width: int) -> str:
    lines = ["Background work of this turn is still running:"]
    lines += [f"- {_line(task, width)}" for task in tasks[:MOST_NAMED]]
    if len(tasks) > MOST_NAMED:
        lines.append(f"and {len(tasks) - MOST_NAMED} more")
    return "\n".join([*lines, _WAYS_ON])


def _line(task: BackgroundTask, width: int) -> str:
    # Imported here: the table of secret shapes is needed only where a task is named.
    from ..rubric.masking import clean, mask

    def one_line(text: str, limit: int) -> str:
        text = " ".join(mask(clean(text)).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"

    kind = one_line(task.type, 24) or "unknown type"
    described = one_line(task.description or task.command, width)
    return f"{one_line(task.id, 24) or 'without id'} ({kind}){': ' + described if described else ''}"
