"""
The evidence of a turn: its record as the `Turn` that a rubric may show, every text masked, with the facts that need
no model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from ...rubric.masking import clean, cut, mask
from ...rubric.turn import Check, Facts, ToolCall, Turn
from ..events import Cron
from ..transcript.record import Notice, Record, ToolUse
from .checks import passed
from .steps import Step, step_of
from .tool_lines import ASKED, COLLECTORS, NAME, has_failed, one_line, relative, told_call, tool_call

FIRST_LINES: Final = 10
FULL_LINES: Final = 200
LONGEST: Final = 300_000
"""
Characters of a prompt or reply that are masked: far more than any budget shows, so that no secret straddles the last cut, and few enough
to leave the judge its time.
"""
PREVIOUS_REPLY: Final = 2_000

_ENDING: Final = frozenset({"TaskStop", "KillShell", "KillBash"})


def build_turn(
    record: Record,
    *,
    reply: str,
    subagent: bool = False,
    checks: Sequence[str] = (),
    crons: Sequence[Cron] = (),
    holds: Sequence[str] = (),
    cwd: str = "",
    running_task_ids: Collection[str] = (),
    permission_mode: str = "",
) -> Turn:
    """
    The turn, free of secrets and of what hides text.

    *checks* are the project's own check commands, as patterns; *permission_mode* is the event's, and comes first.
    """
    cwd = cwd or record.cwd
    steps = [step_of(use, checks) for use in record.calls]
    return Turn(
        request=_bounded(record.request),
        reply=_bounded(reply),
        previous_reply=cut(mask(clean(record.previous_reply)), PREVIOUS_REPLY, keep="end"),
        later_prompts=tuple(_bounded(prompt) for prompt in record.later_prompts),
        tool_calls=_tool_calls(record, steps, cwd),
        facts=Facts(
            edited_files=_edited_files(steps, cwd),
            checks=_checks(record, steps),
            edited_after_last_check=_edited_after_last_check(steps),
            uncollected_background=_uncollected(record, running_task_ids),
            wakeups=tuple(one_line(f"{cron.schedule}: {cron.prompt}", ASKED) for cron in crons),
            plan_mode=permission_mode == "plan" if permission_mode else record.plan_mode,
            holds=tuple(mask(clean(hold)) for hold in holds),
            calls_out_of_reach=record.out_of_reach or record.skipped > 0,
        ),
        subagent=subagent,
    )


def _tool_calls(record: Record, steps: Sequence[Step], cwd: str) -> tuple[ToolCall, ...]:
    """
    A line for each call, and for each task of an earlier turn that ended in this one.

    In a turn of thousands of calls, those that are sure to be left out are named only: to mask costs time.
    """
    last_telling = [position for position, step in enumerate(steps) if _is_telling(step)][-FULL_LINES:]
    full = {*range(FIRST_LINES), *range(len(steps) - FULL_LINES, len(steps)), *last_telling}
    made = [
        tool_call(step.use, step.kind, cwd=cwd, notice=_notice(record, step.use))
        if position in full
        else _named_only(step)
        for position, step in enumerate(steps)
    ]
    told = [told_call(task, notice) for task, notice in record.notices.items() if task not in record.launches]
    return (*made, *told)


def _named_only(step: Step) -> ToolCall:
    name = one_line(step.use.name, NAME)
    return ToolCall(name, name, step.kind, has_failed(step.use))


def _is_telling(step: Step) -> bool:
    return step.kind == "check" or has_failed(step.use)


def _notice(record: Record, use: ToolUse) -> Notice | None:
    if use.outcome is None or use.outcome.state != "background":
        return None
    return record.notices.get(use.outcome.task_id) or record.notices.get(use.id)


def _bounded(text: str) -> str:
    return mask(clean(cut(text, LONGEST, keep="both")))


def _edited_files(steps: Iterable[Step], cwd: str) -> tuple[str, ...]:
    files = dict.fromkeys(file for step in steps for file in step.edited or ())
    return tuple(one_line(relative(file, cwd), ASKED) for file in [*files][-FULL_LINES:])


def _checks(record: Record, steps: Iterable[Step]) -> tuple[Check, ...]:
    return tuple(
        Check(one_line(ran.command, ASKED), passed(ran, _exit_code(record, step.use)))
        for step in [step for step in steps if step.checks][-FULL_LINES:]
        for ran in step.checks
    )


def _exit_code(record: Record, use: ToolUse) -> int | None:
    outcome = use.outcome
    if notice := _notice(record, use):
        return notice.exit_code
    if outcome is None or outcome.note or outcome.state not in ("ok", "error"):
        return None
    if outcome.exit_code is not None:
        return outcome.exit_code
    # Old clients give an error no number.
    return 0 if outcome.state == "ok" else 1


def _edited_after_last_check(steps: Sequence[Step]) -> bool | None:
    edits = [position for position, step in enumerate(steps) if step.edited is not None]
    checked = [position for position, step in enumerate(steps) if step.checks]
    return edits[-1] > checked[-1] if edits and checked else None


def _uncollected(record: Record, running: Collection[str]) -> tuple[str, ...]:
    """
    Work launched in this turn that neither runs, nor told its end, nor was read to its end, nor was stopped.
    """
    accounted = {*running, *record.ended_tasks, *record.wakeups_pending, *_collected(record.calls)}
    return tuple(
        one_line(f"{use.outcome.task_id}: {record.launches.get(use.outcome.task_id, '')}", ASKED)
        for use in record.calls
        if use.outcome
        and use.outcome.state == "background"
        and not {use.outcome.task_id, use.id}.intersection(accounted)
    )


def _collected(calls: Iterable[ToolUse]) -> Iterable[str]:
    for use in calls:
        if use.outcome is None or use.outcome.state != "ok":
            continue
        if use.name in _ENDING or (use.name in COLLECTORS and use.outcome.is_over):
            yield from (value for value in use.input.values() if isinstance(value, str))
            yield use.outcome.task_id
