"""
The evidence of a turn: its record as the `Turn` that a rubric may show, every text masked, with the facts that need
no model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Final

from ...rubric.masking import clean, cut, mask
from ...rubric.turn import Check, Facts, ToolCall, Turn
from ..events import Cron
from ..transcript.clipped import clip
from ..transcript.record import Notice, Record, ToolUse
from ..transcript.tool_outcomes import COLLECTORS, TASK_ENDERS
from .checks import passed
from .masked import masked
from .steps import Step, never_ended, step_of
from .tool_lines import ASKED, NAME, has_failed, one_line, relative, shown_command, told_call, tool_call

FIRST_LINES: Final = 10
FULL_LINES: Final = 200
LONGEST: Final = (100_000, 200_000)
"""
Characters kept of the start and the end of a prompt or reply: far more than any budget shows, and few enough to leave the judge its time.
"""
PREVIOUS_REPLY: Final = 2_000


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
    steps = [step_of(use, checks, cwd) for use in record.calls]
    return Turn(
        request=_bounded(record.request),
        reply=_bounded(reply),
        previous_reply=cut(masked(record.previous_reply), PREVIOUS_REPLY, keep="end"),
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
    collected = _exit_codes(record)
    made = [
        tool_call(
            step.use,
            step.kind,
            cwd=cwd,
            notice=_notice(record, step.use),
            needs_more=_needs_more(step, _exit_code(record, step.use, collected)),
        )
        if position in full
        else _named_only(step)
        for position, step in enumerate(steps)
    ]
    first, rest = made[:FIRST_LINES], made[FIRST_LINES:]
    told = [told_call(task, notice) for task, notice in record.notices.items() if task not in record.launches]
    return (*first, *_left_out(record), *rest, *told)


def _needs_more(step: Step, exit_code: int | None) -> bool:
    """
    Whether the output of a check has to tell what became of it, or is followed by that of other commands.
    """
    return any(not ran.is_last or passed(ran, exit_code) is None for ran in step.checks)


def _left_out(record: Record) -> Iterable[ToolCall]:
    """
    The calls that the record only counts, by name.
    """
    for tool, times in record.calls_left_out.items():
        name = one_line(tool, NAME)
        yield from repeat(ToolCall(name, name), times)


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
    return masked(clip(text, start=LONGEST[0], end=LONGEST[1]))


def _edited_files(steps: Iterable[Step], cwd: str) -> tuple[str, ...]:
    files = dict.fromkeys(file for step in steps for file in step.edited or ())
    return tuple(one_line(relative(file, cwd), ASKED) for file in [*files][-FULL_LINES:])


def _exit_codes(record: Record) -> dict[str, int | None]:
    """
    By task, what was collected of it.
    """
    return {
        use.outcome.task_id: use.outcome.exit_code
        for use in record.calls
        if use.name in COLLECTORS and use.outcome and use.outcome.is_over and use.outcome.exit_code is not None
    }


def _checks(record: Record, steps: Sequence[Step]) -> tuple[Check, ...]:
    collected = _exit_codes(record)
    last_edit = max(
        ((position, step.last_edit) for position, step in enumerate(steps) if step.edited is not None),
        default=(-1, -1),
    )
    return tuple(
        Check(
            one_line(shown_command(ran.command), ASKED),
            passed(ran, _exit_code(record, step.use, collected)),
            last_edit > (position, ran.position),
        )
        for position, step in [(position, step) for position, step in enumerate(steps) if step.checks][-FULL_LINES:]
        for ran in step.checks
    )


def _exit_code(record: Record, use: ToolUse, collected: Mapping[str, int | None]) -> int | None:
    outcome = use.outcome
    if outcome is None:
        return None
    if outcome.state == "background":
        notice = _notice(record, use)
        if notice is not None and notice.exit_code is not None:
            return notice.exit_code
        told = collected.get(outcome.task_id)
        return 1 if told is None and notice is not None and notice.status == "failed" else told
    if outcome.note or outcome.state not in ("ok", "error") or never_ended(use):
        return None
    if outcome.exit_code is not None:
        return outcome.exit_code
    # An error without a number may be the client's own.
    return 0 if outcome.state == "ok" else None


def _edited_after_last_check(steps: Sequence[Step]) -> bool | None:
    edits = [position for position, step in enumerate(steps) if step.edited is not None]
    checked = [position for position, step in enumerate(steps) if step.has_checked]
    if not edits or not checked:
        return None
    last = steps[checked[-1]]
    return last.last_edit > last.checks[-1].position if edits[-1] == checked[-1] else edits[-1] > checked[-1]


def _uncollected(record: Record, running: Collection[str]) -> tuple[str, ...]:
    """
    Work launched in this turn that neither runs, nor told its end, nor was read to its end, nor was stopped.
    """
    accounted = {*running, *record.ended_tasks, *record.wakeups_pending, *_collected(record.calls)}
    return tuple(
        one_line(f"{use.outcome.task_id}: {shown_command(record.launches.get(use.outcome.task_id, ''))}", ASKED)
        for use in record.calls
        if use.outcome
        and use.outcome.state == "background"
        and not {use.outcome.task_id, use.id}.intersection(accounted)
    )


def _collected(calls: Iterable[ToolUse]) -> Iterable[str]:
    for use in calls:
        if use.outcome is None or use.outcome.state != "ok":
            continue
        if use.name in TASK_ENDERS or (use.name in COLLECTORS and use.outcome.is_over):
            yield from (value for value in use.input.values() if isinstance(value, str))
            yield use.outcome.task_id
