"""
The ledger in words: decisions, one decision in full, and totals, as a person reads them.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from .records import Call, Decision
from .report import Report, Total
from .screen import money, one_line
from .sums import is_stop
from .tables import table
from .windows import zone_name

NOTHING_YET: Final = "Nothing recorded yet: the first stop that the hook sees will be the first line here.\n"


NOTHING_HELD: Final = "No stop was held, and none would have been.\n"


def log_text(
    decisions: Sequence[Decision], *, width: int | None = None, styled: bool = False, nothing: str = NOTHING_YET
) -> str:
    """
    Give one line per decision, for a terminal of that width or, without one, for a file or pipe.

    On a terminal the reason stands below, folded; elsewhere at the end of the line. `nothing` is the text where there is none.
    """
    if not decisions:
        return nothing

    names = ["id", "time (UTC)", "outcome", "tokens", "cost", "project"]
    rows = [_log_row(decision) for decision in decisions]
    whys = [one_line(_why(decision)) for decision in decisions]
    if width is None:
        return _text(table([*names, "why"], [[*row, why] for row, why in zip(rows, whys, strict=True)]))

    head, *lines = table(names, rows, styled=styled)
    folded = [textwrap.wrap(why, max(width - 4, 20)) for why in whys]
    return _text([head, *itertools.chain(*([line, *_indented(why)] for line, why in zip(lines, folded, strict=True)))])


def decision_text(decision: Decision) -> str:
    """
    Give a decision with everything that is known of it: findings, calls, tokens, costs.
    """
    line = decision.line
    fields = {
        "decision": line.id,
        "time": f"{line.at:%Y-%m-%d %H:%M:%S} UTC",
        "event": line.event,
        "outcome": line.outcome,
        "detail": line.detail,
        "project": line.project,
        "session": line.session_id,
        "agent": line.agent_id,
        "prompt": line.prompt_id,
        "transcript": line.transcript_path,
        "reply": _counted(line.reply_chars, "characters"),
        "spent": _counted(line.spent, "of the turn's continuations"),
        "took": _counted(line.hook_ms, "ms"),
        "cost": _cost_of(decision.calls),
        "dropped": _dropped(line.dropped),
        "client": line.client_version,
    }
    lines = _fields(fields)
    for finding in line.findings:
        held = {True: " (held the turn)", False: " (noted only)", None: ""}[finding.held]
        lines += ["", f"finding: {one_line(finding.fault)}{held}"]
        lines += _fields({"quote": finding.quote, "reason": finding.reason}, indent="  ")
    for call in decision.calls:
        lines += ["", *_call_lines(call)]
    return _text(lines)


def call_text(call: Call) -> str:
    """
    Give all of a call that belongs to no decision here: one that was made for another machine.
    """
    return _text(_call_lines(call))


def _call_lines(call: Call) -> list[str]:
    return [f"call: {one_line(call.id)}", *_fields(_call_fields(call), indent="  ")]


def report_text(report: Report, *, most: int | None = None, styled: bool = False) -> str:
    """
    Give totals as a table; with `most`, of so many rows: the latest days, the dearest of all else.
    """
    if not report.rows:
        return NOTHING_YET if report.window[:2] == (None, None) else "Nothing in that time.\n"

    shown = report.rows
    if most is not None and len(shown) > most:
        shown = shown[-most:] if report.by == "day" else shown[:most]
    key = f"{report.by} ({zone_name(report.window.zone)})" if report.by == "day" else report.by
    names = ("decisions" if report.by == "outcome" else "stops", *_COUNTS)
    rows = [_report_row(row, row.key or f"(no {report.by})") for row in shown]
    total = _report_row(report.total, "total")
    lines = table([key, *names], rows, right=names, total=total, styled=styled)
    if len(shown) < len(report.rows):
        which = "latest" if report.by == "day" else "dearest"
        lines += [
            "",
            f"The {which} {len(shown):,} of {len(report.rows):,}; --json and --csv give all, and the total is of all.",
        ]
    if any(not is_stop(row.key) for row in shown if report.by == "outcome"):
        lines += ["", "The total is of stops: the lines with jobs_ are about commands."]
    return _text(lines)


_COUNTS: Final = (
    "held",
    "calls",
    "input\ntokens",
    "output\ntokens",
    "cache\nwrite",
    "cache\nread",
    "cost",
    "unknown\ncosts",
    "cost per\nblock",
)


def _log_row(decision: Decision) -> list[str]:
    line = decision.line
    return [
        line.id,
        f"{line.at:%Y-%m-%d %H:%M}",
        line.outcome,
        _tokens(decision.calls),
        _cost_of(decision.calls),
        line.project.rstrip("/\\").replace("\\", "/").rpartition("/")[2],
    ]


def _tokens(calls: Sequence[Call]) -> str:
    usages = [call.end.usage for call in calls if call.end and call.end.usage]
    if not usages:
        return "unknown" if calls else ""
    return f"{sum(usage.prompt_tokens for usage in usages):,} + {sum(usage.output_tokens for usage in usages):,}"


def _why(decision: Decision) -> str:
    findings = decision.line.findings
    return "; ".join(f"{finding.fault}: {finding.reason}" for finding in findings) or decision.line.detail


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _call_fields(call: Call) -> dict[str, str]:
    start, end = call.start, call.end
    known = {
        "time": f"{start.at:%Y-%m-%d %H:%M:%S} UTC",
        "try": str(start.try_number),
        "back end": f"{start.backend} {start.endpoint}",
        "model": start.model,
        "rubric": f"{start.rubric} {start.rubric_hash}",
    }
    if end is None:
        return {**known, "outcome": "never ended", "tokens": "unknown", "cost": "unknown"}

    tokens = {name.replace("_", " "): f"{count:,}" for name, count in end.usage._asdict().items()} if end.usage else {}
    return {
        **known,
        "answered by": end.model_answered,
        "outcome": end.outcome,
        "detail": end.detail,
        **(tokens or {"tokens": "unknown"}),
        "cost": money(end.cost_usd),
        "price from": end.price_source,
        "took": _counted(end.latency_ms, "ms"),
        "request": end.request_id,
    }


def _report_row(row: Total, key: str) -> list[str]:
    return [
        key,
        f"{row.decisions:,}",
        f"{row.blocks:,}",
        f"{row.calls:,}",
        f"{row.input_tokens:,}",
        f"{row.output_tokens:,}",
        f"{row.cache_write_5m_tokens + row.cache_write_1h_tokens:,}",
        f"{row.cache_read_tokens:,}",
        money(row.cost_usd),
        f"{row.unknown_costs:,}",
        "" if not row.blocks else money(row.cost_per_block),
    ]


def _cost_of(calls: Sequence[Call]) -> str:
    if not calls:
        return ""

    costs = [call.end.cost_usd if call.end else None for call in calls]
    known = [cost for cost in costs if cost is not None]
    return _cost(sum(known, Decimal(0)) if known else None, len(costs) - len(known))


def _cost(known: Decimal | None, unknown: int) -> str:
    if known is None:
        return f"{unknown} unknown" if unknown > 1 else "unknown"
    return f"{money(known)} + {unknown} unknown" if unknown else money(known)


def _dropped(count: int) -> str:
    if not count:
        return ""
    if count == 1:
        return "1 finding: its quote does not stand in the reply, or its fault is none of the rubric's"
    return f"{count:,} findings: their quotes do not stand in the reply, or their faults are none of the rubric's"


def _counted(count: int | None, of: str) -> str:
    return "" if count is None else f"{count:,} {of}"


def _fields(fields: Mapping[str, str], indent: str = "") -> list[str]:
    width = max(len(name) for name in fields) + 2
    return [f"{indent}{name + ':':<{width}}{one_line(value)}" for name, value in fields.items() if value.strip()]
