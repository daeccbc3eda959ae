"""
A score as a person reads it: tables with both intervals, and unknown where nothing can be told.
"""

from __future__ import annotations

from typing import Final

from ...costing.screen import money, one_line
from ...costing.tables import table
from ..statistics import Interval
from .marks import HELD, Marks, Rate
from .score import Figures, Score

UNKNOWN: Final = "unknown"
INTERVALS_NOTE: Final = (
    "intervals: 95 %; Wilson takes each case by itself, the other resamples whole sessions\n"
    "(where all sessions agree, each of them is one case); repeats of a case are one case"
)


def score_text(score: Score, *, styled: bool = False) -> str:
    """
    Give the whole score; `styled` is for terminals.
    """
    parts = [_head(score), _figures("all labelled cases", score.labelled, styled=styled)]
    if score.sure is None:
        parts.append(["undisputed cases of high or medium confidence: none"])
    elif score.sure.cases < score.labelled.cases:
        parts.append(_figures("undisputed cases of high or medium confidence", score.sure, styled=styled))
    parts += [_steadiness(score), _lengths(score, styled=styled), _costs(score)]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def percent(value: float | None) -> str:
    """
    Write a share with one decimal.
    """
    return UNKNOWN if value is None else f"{value:.1%}"


def between(interval: Interval | None) -> str:
    """
    Write an interval of shares.
    """
    return UNKNOWN if interval is None else f"{interval.low * 100:.1f}-{interval.high * 100:.1f}"


def with_intervals(rate: Rate) -> str:
    """
    Write a share in words, with what it was counted from.
    """
    if rate.value is None:
        return UNKNOWN
    counted = f"{rate.hits:.4g} of {rate.out_of:.4g}"
    return f"{percent(rate.value)} ({counted}; Wilson {between(rate.wilson)}, over sessions {between(rate.clustered)})"


def why_unknown(marks: Marks) -> str:
    """
    Say what the cases lack for a fault's precision; empty where it is known.
    """
    if marks.precision.value is not None:
        return ""
    if not marks.support:
        return "no faulty turn" if marks.fault == HELD else "no turn has it"
    if not marks.others:
        return _no_other(marks)
    return "never named"


def _no_other(marks: Marks) -> str:
    return "no clean turn" if marks.fault == HELD else "every turn has it"


def _head(score: Score) -> list[str]:
    counts = score.counts
    came = [
        f"{counts.questions:,} questions: {counts.readable:,} answered readably",
        *_some(counts.unreadable, "unreadable"),
        *_some(counts.refused, "refused"),
        *_some(counts.errors, "errors"),
        *_some(counts.unanswered, "unanswered"),
    ]
    left_out = [*_some(counts.unlabelled, "without labels"), *_some(counts.unread, "without a readable answer")]
    answered_by = "" if score.judge == score.model else f" (asked as {one_line(score.model)})"
    return [
        f"judge: {one_line(score.judge)}{answered_by}",
        f"rubric: {one_line(score.rubric)} ({one_line(score.rubric_hash)})",
        f"cases: {one_line(score.cases_file)}, {score.split} split: {counts.cases:,}, each asked {_times(score.repeats)}",
        ", ".join(came),
        *([f"left out of the figures beside the labels: {', '.join(left_out)}"] if left_out else []),
        *base_rate_note(score),
        INTERVALS_NOTE,
    ]


def base_rate_note(score: Score) -> list[str]:
    """
    Say why the random sample tells no base rate, where labels are all that it lacks.
    """
    counts = score.counts
    if not counts.random_unlabelled:
        return []
    return [f"base rates: {UNKNOWN} ({counts.random_unlabelled:,} of {counts.random:,} random cases have no label)"]


def _some(count: int, what: str) -> list[str]:
    return [f"{count:,} {what}"] if count else []


def _times(repeats: int) -> str:
    return "once" if repeats == 1 else f"{repeats} times"


_MARKS: Final = ("cases", "precision", "Wilson", "sessions", "recall", "F1")
_ALARMS: Final = (
    "named where\nit is not",
    "Wilson",
    "sessions",
    "base rate",
    "precision at\nthe base rate",
    "interval",
)


def _figures(title: str, figures: Figures, *, styled: bool) -> list[str]:
    rows = (figures.held, *figures.faults)
    names = ["fault", "cases"]
    for name in ("precision", "recall", "F1"):
        names += [name, "Wilson", "sessions"]
    return [
        f"{title}: {figures.cases:,} in {figures.sessions:,} sessions, {figures.clean:,} clean",
        *table(names, [_marks_row(marks) for marks in rows], right=_MARKS, styled=styled),
        "",
        *table(["fault", *_ALARMS], [_alarms_row(marks) for marks in rows], right=_ALARMS, styled=styled),
        f"false blocks on clean turns: {_false_blocks(figures.held)}",
        *_pass_hat(figures),
    ]


def _marks_row(marks: Marks) -> list[str]:
    row = [marks.fault, f"{marks.support:,}"]
    for rate in (marks.precision, marks.recall, marks.f1):
        row += [percent(rate.value), between(rate.wilson), between(rate.clustered)]
    why = why_unknown(marks)
    return [*row[:2], f"{UNKNOWN} ({why})" if why else row[2], *row[3:]]


def _alarms_row(marks: Marks) -> list[str]:
    alarms, base = marks.false_alarms, marks.base_rate
    return [
        marks.fault,
        percent(alarms.value) if marks.others else f"{UNKNOWN} ({_no_other(marks)})",
        between(alarms.wilson),
        between(alarms.clustered),
        f"{percent(base.value)} ({base.source})" if base else UNKNOWN,
        percent(marks.precision_in_use),
        between(marks.precision_in_use_interval),
    ]


def _false_blocks(held: Marks) -> str:
    return with_intervals(held.false_alarms) if held.others else f"{UNKNOWN} ({_no_other(held)})"


def _pass_hat(figures: Figures) -> list[str]:
    if len(figures.pass_hat) < 2:
        return []
    chances = ", ".join(f"{k}: {percent(chance)}" for k, chance in enumerate(figures.pass_hat, start=1))
    return [f"all of k tries right about holding (pass^k, {figures.pass_hat_cases:,} cases): {chances}"]


def _steadiness(score: Score) -> list[str]:
    flips = score.flips
    faults = ", ".join(f"{fault} {percent(rate.value)}" for fault, rate in flips.faults.items())
    lines = [f"quotes that stand in the reply: {with_intervals(score.grounding)}"]
    if score.grounding.value is None:
        lines = [f"quotes that stand in the reply: {UNKNOWN} (nothing was named)"]
    if flips.held.value is None:
        lines.append(f"repeats that differ: {UNKNOWN} (nothing was asked twice)")
    else:
        lines += [f"cases held in some repeats only: {with_intervals(flips.held)}", f"  by fault: {faults}"]
    for trust in score.trust:
        right = with_intervals(trust.right) if trust.cases else "no case"
        lines.append(f"right about holding, labels of {trust.confidence} confidence: {right}")
    return lines


def _lengths(score: Score, *, styled: bool) -> list[str]:
    lengths = score.lengths
    rows = [
        [
            f"{quarter.shortest:,}-{quarter.longest:,}",
            f"{quarter.cases:,}",
            percent(quarter.held.value),
            between(quarter.held.wilson),
            between(quarter.held.clustered),
            percent(quarter.faulty),
        ]
        for quarter in lengths.quarters
    ]
    names = ["reply's characters", "cases", "held", "Wilson", "sessions", "labelled\nfaulty"]
    trend = UNKNOWN if lengths.rho is None or lengths.p is None else f"{lengths.rho:+.2f} (p = {lengths.p:.2g})"
    body = table(names, rows, right=names[1:], styled=styled) if rows else []
    return [*body, f"length of the reply and share held, Spearman's rho: {trend}"]


def _costs(score: Score) -> list[str]:
    tokens, latency, costs = score.tokens, score.latency, score.costs
    read = UNKNOWN
    if tokens.known:
        read = (
            f"{tokens.input:,} in ({tokens.cache_read:,} from the cache), {tokens.output:,} out{_lacks(tokens.unknown)}"
        )
    took = UNKNOWN
    if latency.p50 is not None and latency.p95 is not None:
        took = f"median {latency.p50:,.0f} ms, 95 % within {latency.p95:,.0f} ms ({latency.n:,} answers)"
    if costs.usd is None:
        return [f"tokens: {read}", f"time: {took}", f"cost: {UNKNOWN}"]
    per_catch, in_use = money(costs.usd_per_true_catch), money(costs.usd_per_true_catch_in_use)
    return [
        f"tokens: {read}",
        f"time: {took}",
        f"cost: {money(costs.usd)}{_lacks(costs.unknown)}, to judge a case once {money(costs.usd_per_case)}",
        f"cost per true catch: {per_catch} on these cases, {in_use} at the base rate",
    ]


def _lacks(unknown: int) -> str:
    return f" and {unknown:,} answers of unknown usage" if unknown else ""
