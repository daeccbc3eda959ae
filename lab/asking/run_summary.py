"""
What a run came to, in some lines, before anything is scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from ...costing.screen import money, one_line
from ...costing.usage import Usage, read_usage, total
from ..runs import Asked, Run
from .spending import Paid


def summary(run: Run, asked: Sequence[Asked], spent: Paid) -> str:
    """
    Give the lines, with their ends: outcomes, tokens and latency of the questions that were asked, and what all goes of the run took.
    """
    keys = {(question.case.id, question.repeat) for question in asked}
    readings = [reading for reading in run.readings() if (reading.case.id, reading.repeat) in keys]
    answers = [reading.answer for reading in readings if reading.answer is not None]
    outcomes = Counter(answer.outcome for answer in answers)
    unreadable = sum(
        reading.verdict is None
        for reading in readings
        if reading.answer is not None and reading.answer.outcome == "answered"
    )
    usages = [usage for answer in answers if (usage := read_usage(answer.raw_usage or {})) is not None]
    latencies = [answer.latency_ms for answer in answers if answer.latency_ms is not None]

    lines = [
        f"answered: {outcomes['answered']} of {len(asked)}, of these unreadable: {unreadable}",
        f"refused: {outcomes['refused']}, timeouts: {outcomes['timeout']}, errors: {outcomes['error']}",
        *_failure(run, keys),
        _tokens(usages),
        f"cost: {cost(spent)}",
    ]
    if latencies:
        lines.append(f"median latency: {median(latencies) / 1000:.2f} s")
    return "\n".join(lines) + "\n"


def cost(paid: Paid) -> str:
    """
    Write what was paid, and how many calls it leaves out because nobody knows what they cost.
    """
    if not paid.unknown:
        return money(paid.usd)
    return f"{money(paid.usd or None)}, calls of unknown cost: {paid.unknown}"


def _failure(run: Run, keys: set[tuple[str, int]]) -> list[str]:
    details = Counter(
        answer.detail for key, answer in run.answers.items() if key in keys and answer.outcome in ("error", "timeout")
    )
    return [f"  most often: {one_line(detail)}" for detail, _ in details.most_common(1)]


def _tokens(usages: Sequence[Usage]) -> str:
    if not usages:
        return "tokens: unknown"
    used = total(usages)
    return f"tokens: {used.prompt_tokens:,} in ({used.cache_read_tokens:,} read from the cache), {used.output_tokens:,} out"
