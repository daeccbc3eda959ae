"""
The sections of a report: all its figures in tables, with the plots beside them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...costing.screen import money
from ..scoring.marks import Marks, Rate
from ..scoring.score import Figures, Score
from ..scoring.text import INTERVALS_NOTE, UNKNOWN, base_rate_note, between, percent, why_unknown, with_intervals
from .comparison_section import comparison_section
from .document import Block, Plot, Prose, Section, Table
from .report import Arm, Report
from .shown_text import plain

SURE = "undisputed cases of high or medium confidence"
ALL = "all labelled cases"


def sections(of: Report) -> list[Section]:
    """
    Give all sections but the disagreements, in the order of reading.
    """
    found = [
        Section("asked", "What was asked of whom", tuple(_asked(of))),
        *(comparison_section(each) for each in of.comparisons),
    ]
    if any(arm.score for arm in of.arms):
        found += [
            Section("figures", "Right and wrong", tuple(_figures(of))),
            Section("confusion", "Labels and what was named", tuple(_confusions(of))),
            Section("steadiness", "Quotes, repeats, and how sure the labels are", tuple(_steadiness(of))),
            Section("lengths", "Share held and length of the reply", tuple(_lengths(of))),
            Section("costs", "Tokens, time and money", tuple(_costs(of))),
        ]
    found.append(Section("failures", "Questions without a verdict", tuple(_failures(of))))
    return found


def heading(of: Report) -> str:
    """
    Say in one line what the report is of.
    """
    if len(of.arms) == 1:
        arm = of.arms[0]
        return f"{arm.judge} on {plain(arm.manifest.cases_file)}, {arm.manifest.split} split"
    return f"{len(of.arms)} runs on {plain(of.arms[0].manifest.cases_file)}, {of.arms[0].manifest.split} split"


def _name(arm: Arm, of: Report) -> str:
    return arm.letter if len(of.arms) > 1 else arm.judge


def _scored(of: Report) -> Iterator[tuple[Arm, Score, str]]:
    """
    Each arm with a score, and what its titles begin with.
    """
    for arm in of.arms:
        if arm.score:
            yield arm, arm.score, f"{arm.letter}: " if len(of.arms) > 1 else ""


def _asked(of: Report) -> Iterator[Block]:
    names = ("", *(f"{arm.letter}{', the baseline' if arm is of.arms[0] else ''}" for arm in of.arms))
    if len(of.arms) == 1:
        names = ("", "run")
    rows = zip(*(_asked_column(arm) for arm in of.arms), strict=True)
    table = tuple((cells[0][0], *(value for _, value in cells)) for cells in rows)
    yield Table("", names, table, numbers=False)
    if of.look > 1:
        yield Prose(
            f"Look {of.look} at these test turns: words changed since the first one may fit them by chance, "
            "and an interval no longer means what it says.",
            is_warning=True,
        )
    elif of.look:
        yield Prose("The first look at these test turns.")
    for arm in of.arms:
        if arm.why_no_score:
            yield Prose(f"{arm.letter}: {arm.why_no_score}", is_warning=True)
    yield Prose(f"{INTERVALS_NOTE[0].upper()}{INTERVALS_NOTE[1:]}.".replace("\n", " "))


def _asked_column(arm: Arm) -> list[tuple[str, str]]:
    manifest = arm.manifest
    answered = ", ".join(arm.models_answered) or UNKNOWN
    return [
        ("folder", plain(arm.folder)),
        ("judge", arm.judge),
        ("model asked", plain(manifest.model)),
        ("model that answered", answered),
        ("back end", plain(manifest.backend)),
        ("answers came by", ", ".join(arm.via) or "none yet"),
        ("effort", plain(manifest.effort) or "none"),
        ("rubric", f"{plain(manifest.rubric)} ({plain(manifest.rubric_hash)})"),
        ("faults", ", ".join(map(plain, manifest.faults))),
        ("cases", f"{arm.cases:,} of {plain(manifest.cases_file)} ({plain(manifest.cases_hash)})"),
        ("split", manifest.split),
        ("asked", "once" if manifest.repeats == 1 else f"{manifest.repeats} times"),
        ("most tokens in, out", f"{manifest.max_input_tokens:,}, {manifest.max_tokens:,}"),
        ("begun", plain(manifest.created_at)),
        ("turngate", plain(manifest.turngate) or UNKNOWN),
    ]


def _figures(of: Report) -> Iterator[Block]:
    yield Plot("marks-all", f"Figures with 95 % intervals, {ALL}")
    yield Plot("marks-sure", f"Figures with 95 % intervals, {SURE}")
    for _, score, begin in _scored(of):
        for note in base_rate_note(score):
            yield Prose(f"{begin}{note}.")
        yield from _marks_tables(f"{begin}{ALL}", score.labelled)
        if score.sure is None:
            yield Prose(f"{begin}{SURE}: none.")
        elif score.sure.cases < score.labelled.cases:
            yield from _marks_tables(f"{begin}{SURE}", score.sure)


def _marks_tables(title: str, of: Figures) -> Iterator[Block]:
    count = f"{title}: {of.cases:,} in {of.sessions:,} sessions, {of.clean:,} clean"
    rows = (of.held, *of.faults)
    yield Table(count, ("fault", "cases", "precision", "recall", "F1"), tuple(_marks_row(one) for one in rows))
    yield Table(
        f"{title}: false alarms, and real use",
        ("fault", "cases without it", "named where it is not", "base rate", "precision at the base rate"),
        tuple(_alarms_row(one) for one in rows),
    )


def _marks_row(of: Marks) -> tuple[str, ...]:
    why = why_unknown(of)
    precision = f"{UNKNOWN} ({why})" if why else with_intervals(of.precision)
    return of.fault, f"{of.support:,}", precision, with_intervals(of.recall), _f1(of.f1)


def _f1(rate: Rate) -> str:
    # What it is counted from is no count of cases.
    if rate.value is None:
        return UNKNOWN
    return f"{percent(rate.value)} (Wilson {between(rate.wilson)}, over sessions {between(rate.clustered)})"


def _alarms_row(of: Marks) -> tuple[str, ...]:
    base, in_use = of.base_rate, of.precision_in_use
    return (
        of.fault,
        f"{of.others:,}",
        with_intervals(of.false_alarms),
        f"{percent(base.value)} ({base.source})" if base else UNKNOWN,
        UNKNOWN if in_use is None else f"{percent(in_use)} ({between(of.precision_in_use_interval)})",
    )


def _confusions(of: Report) -> Iterator[Block]:
    yield Prose(
        "Rows are the labels that people gave, columns what was named: cases, with repeats as parts of a case. "
        "A case with two labels stands in two rows, and a reply of which two faults are named in two columns."
    )
    for arm, _, begin in _scored(of):
        if arm.confusion is None:
            continue
        yield Plot(f"confusion-{arm.letter}", f"{begin}labels (rows) and what was named (columns)")
        yield Table(
            f"{begin}labels and what was named",
            ("label", "cases", *arm.confusion.columns),
            tuple((row.label, f"{row.cases:,}", *(f"{cell:.4g}" for cell in row.named)) for row in arm.confusion.rows),
        )


def _steadiness(of: Report) -> Iterator[Block]:
    scored = list(_scored(of))
    names = ("", *(_name(arm, of) for arm, _, _ in scored))
    grounded = ["quotes that stand in the reply"]
    flips = ["cases held in some repeats only"]
    for _, score, _ in scored:
        grounded.append(with_intervals(score.grounding) if score.grounding.out_of else f"{UNKNOWN} (nothing was named)")
        flips.append(with_intervals(score.flips.held) if score.flips.cases else f"{UNKNOWN} (nothing was asked twice)")
    rows = [tuple(grounded), tuple(flips), *_flip_rows(scored), *_pass_hat_rows(scored)]
    yield Table("Steadiness", names, tuple(rows))
    yield Plot("calibration", "Right about holding, by how sure people were of the labels")
    yield Table(
        "Right about holding, by how sure people were of the labels",
        names,
        tuple(
            (
                f"{score_row.confidence} confidence",
                *(with_intervals(score.trust[index].right) for _, score, _ in scored),
            )
            for index, score_row in enumerate(scored[0][1].trust)
        ),
    )


def _flip_rows(scored: list[tuple[Arm, Score, str]]) -> Iterator[tuple[str, ...]]:
    if not any(score.flips.cases for _, score, _ in scored):
        return
    for fault in dict.fromkeys(fault for _, score, _ in scored for fault in score.flips.faults):
        rates = (score.flips.faults.get(fault) for _, score, _ in scored)
        yield f"{fault} in some repeats only", *(with_intervals(rate) if rate else UNKNOWN for rate in rates)


def _pass_hat_rows(scored: list[tuple[Arm, Score, str]]) -> Iterator[tuple[str, ...]]:
    chances = [score.labelled.pass_hat for _, score, _ in scored]
    for k in range(2, max(map(len, chances)) + 1):
        cells = (percent(each[k - 1] if len(each) >= k else None) for each in chances)
        yield f"all of {k} tries right about holding (pass^{k})", *cells


def _lengths(of: Report) -> Iterator[Block]:
    yield Plot("lengths", "Share held, by length of the reply")
    for _, score, begin in _scored(of):
        lengths = score.lengths
        yield Table(
            f"{begin}quarters of the cases by length",
            ("reply's characters", "cases", "held", "labelled faulty"),
            tuple(
                (
                    f"{quarter.shortest:,}-{quarter.longest:,}",
                    f"{quarter.cases:,}",
                    with_intervals(quarter.held),
                    percent(quarter.faulty),
                )
                for quarter in lengths.quarters
            ),
        )
        known = lengths.rho is not None and lengths.p is not None
        trend = f"{lengths.rho:+.2f} (p = {lengths.p:.2g})" if known else UNKNOWN
        yield Prose(f"{begin}length of the reply and share held, Spearman's rho: {trend}.")


def _costs(of: Report) -> Iterator[Block]:
    scored = list(_scored(of))
    yield Plot("cost-f1", "Cost of judging a case, and F1 of holding with its 95 % interval")
    columns = [_costs_column(score) for _, score, _ in scored]
    rows = tuple((cells[0][0], *(value for _, value in cells)) for cells in zip(*columns, strict=True))
    yield Table("", ("", *(_name(arm, of) for arm, _, _ in scored)), rows)


def _costs_column(score: Score) -> list[tuple[str, str]]:
    tokens, latency, costs = score.tokens, score.latency, score.costs

    def count(value: int) -> str:
        return f"{value:,}" if tokens.known else UNKNOWN

    def time(value: float | None) -> str:
        return UNKNOWN if value is None else f"{value:,.0f} ms"

    return [
        ("input tokens", count(tokens.input)),
        ("of these from the cache", count(tokens.cache_read)),
        ("output tokens", count(tokens.output)),
        ("answers of unknown usage", f"{tokens.unknown:,}"),
        ("time, median", time(latency.p50)),
        ("time, 95 % within", time(latency.p95)),
        ("cost", money(costs.usd)),
        ("answers of unknown cost", f"{costs.unknown:,}"),
        ("cost to judge a case once", money(costs.usd_per_case)),
        ("cost per true catch on these cases", money(costs.usd_per_true_catch)),
        ("cost per true catch at the base rate", money(costs.usd_per_true_catch_in_use)),
    ]


def _failures(of: Report) -> Iterator[Block]:
    if not any(arm.failures for arm in of.arms):
        yield Prose("None: each question has a verdict.")
    for arm in of.arms:
        if not arm.failures:
            continue
        begin = f"{arm.letter}: " if len(of.arms) > 1 else ""
        counts = ", ".join(f"{n:,} {kind}" for kind, n in Counter(one.outcome for one in arm.failures).most_common())
        yield Prose(f"{begin}{len(arm.failures):,} of {arm.cases * arm.manifest.repeats:,} questions: {counts}.")
        rows = tuple((one.case, str(one.repeat), one.outcome, one.detail) for one in arm.failures)
        yield Table(f"{begin}questions without a verdict", ("case", "repeat", "outcome", "detail"), rows, numbers=False)
