"""
What a run's judge took: tokens, time and money, for each question and for each fault that it caught.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from ...costing.usage import read_usage, total
from .. import statistics
from ..asking import spending
from ..asking.spending import Paid
from ..errors import LabError
from ..runs import Answered, Run
from .marks import Marks


class Tokens(NamedTuple):
    """
    The tokens of the answers whose usage is known.
    """

    known: int
    """Answers."""
    unknown: int
    input: int
    """All that the model read, cached or not."""
    output: int
    cache_read: int
    """Part of `input`."""


class Latency(NamedTuple):
    """
    How long a judgement took, all its tries together, in milliseconds.
    """

    n: int
    p50: float | None
    p95: float | None


class Costs(NamedTuple):
    """
    US dollars. A mean is over the answers whose cost is known, and None where none is.
    """

    known: int
    """Answers."""
    unknown: int
    """Answers, or calls where these are more."""
    usd: Decimal | None
    """All that is known to be paid, for questions that failed and were asked again too."""
    usd_per_case: Decimal | None
    """To judge a case once, what failed included."""
    usd_per_true_catch: Decimal | None
    """On these cases, of which more or fewer have a fault than turns in real use."""
    usd_per_true_catch_in_use: Decimal | None
    """Where faults are as frequent as the base rate says."""


def tokens_of(answers: Sequence[Answered]) -> Tokens:
    """
    Add up what is known of the usage.
    """
    usages = [usage for answer in answers if answer.raw_usage and (usage := read_usage(answer.raw_usage))]
    if not usages:
        return Tokens(0, len(answers), 0, 0, 0)
    whole = total(usages)
    return Tokens(
        len(usages), len(answers) - len(usages), whole.prompt_tokens, whole.output_tokens, whole.cache_read_tokens
    )


def latency_of(answers: Sequence[Answered]) -> Latency:
    """
    Give the median and the time that one in twenty exceeds.
    """
    times = [float(answer.latency_ms) for answer in answers if answer.latency_ms is not None]
    if not times:
        return Latency(0, None, None)
    p50, p95 = statistics.quantiles(times, [0.5, 0.95])
    return Latency(len(times), p50, p95)


def spent_on(run: Run) -> Paid:
    """
    Give what was paid for a run: by its ledger, or by its answers where it has none. Raises `LabError`.
    """
    from ...costing.database import FILE_NAME
    from ...costing.ledger import Ledger
    from ...costing.opening import open_ledger_store
    from ...costing.store import StoreError

    if not (run.folder / FILE_NAME).exists():
        return spending.spent_on(run, ())
    try:
        with open_ledger_store(run.folder) as store:
            return spending.spent_on(run, Ledger(store).calls())
    except StoreError as error:
        raise LabError(f"{run.folder / FILE_NAME}: {error}") from None


def costs_of(spent: Paid, answers: Sequence[Answered], held: Marks) -> Costs:
    """
    Give what was paid, and for what.
    """
    known = sum(answer.cost_usd is not None for answer in answers)
    if not known:
        return Costs(0, spent.unknown, spent.usd or None, None, None, None)
    each = spent.usd / known
    catches = held.tp / max(1, held.support + held.others)
    in_use = held.base_rate.value * (held.recall.value or 0.0) if held.base_rate else 0.0
    return Costs(known, spent.unknown, spent.usd, _cents(each), _per(each, catches), _per(each, in_use))


def _per(each: Decimal, share: float) -> Decimal | None:
    return _cents(each / Decimal(share)) if share > 0 else None


def _cents(amount: Decimal) -> Decimal:
    # Six digits that count: more would be the division's, not the measure's.
    return amount.normalize() if not amount else Decimal(f"{amount:.6g}")
