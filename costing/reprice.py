"""
Repricing: what recorded calls cost by the prices that are known now, from the usage that their endpoints told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from .amounts import plain, readable_cost, sum_costs
from .day_sums import forget_sums
from .prices import PriceEntry, price
from .records import BATCH, Spent
from .rows import readable_time
from .stamps import stamp
from .store import Store
from .usage import Usage, read_usage

_AT_ONCE: Final = 1_000
"""Calls of one transaction, so that hooks wait for none of them long."""


class Repriced(NamedTuple):
    """
    What repricing did.
    """

    calls: int
    """Those that were looked at."""
    changed: int
    """Those whose cost, price source or tokens are others now."""
    without_usage: int
    """Those whose endpoint told no usage that can be read: what they cost stays as it was, mostly unknown."""
    without_price: int
    """Those whose price nobody knows now: what was known of their cost stays."""
    before: Spent
    after: Spent


def reprice(
    store: Store, *, since: datetime | None = None, overrides: Sequence[PriceEntry] = (), is_trial: bool = False
) -> Repriced:
    """
    Work out anew what the calls cost, by the time and model of each; `is_trial` writes nothing.

    Tokens are read anew, too. Raises StoreError; what was written by then stays, and repricing again does the rest.
    """
    calls = changed = without_usage = without_price = 0
    before: list[tuple[str | None, int]] = []
    after: list[tuple[str | None, int]] = []
    for rows in _portions(store, since):
        found = [_repriced(row, overrides) for row in rows]
        calls += len(rows)
        without_usage += sum(new is None for new in found)
        without_price += sum(new is not None and not new.is_priced for new in found)
        before += [(_cost(row), 1) for row in rows]
        after += [(_cost(row) if new is None else new.cost_usd, 1) for row, new in zip(rows, found, strict=True)]
        due = [(row, new) for row, new in zip(rows, found, strict=True) if new is not None and not _is_same(row, new)]
        changed += len(due)
        if due and not is_trial:
            _write(store, due)
    return Repriced(calls, changed, without_usage, without_price, sum_costs(before), sum_costs(after))


class _New(NamedTuple):
    usage: Usage
    cost_usd: str | None
    source: str
    is_priced: bool


_COLUMNS: Final = ("number", "at", "backend", "model", "model_answered", "raw_usage", "cost_usd", "price_source")


def _portions(store: Store, since: datetime | None) -> Iterator[list[tuple[Any, ...]]]:
    names = ", ".join((*_COLUMNS, *Usage._fields))
    where = "number > ?" + ("" if since is None else " AND at >= ?")
    last = -1
    while True:
        rows = store.rows(
            f"SELECT {names} FROM calls WHERE {where} ORDER BY number LIMIT {_AT_ONCE}",  # noqa: S608
            (last,) if since is None else (last, stamp(since)),
        )
        if not rows:
            return
        yield rows
        last = rows[-1][0]


def _repriced(row: Sequence[Any], overrides: Sequence[PriceEntry]) -> _New | None:
    _, at, backend, model, model_answered, raw_usage, *_ = row
    raw = _object(raw_usage)
    usage = read_usage(raw) if raw else None
    time = readable_time(at)
    if raw is None or usage is None or time is None:
        return None
    place = raw.get("inference_geo")
    cost, source = price(
        str(model_answered or model),
        usage,
        time,
        batch=backend == BATCH,
        geography=place if isinstance(place, str) else "",
        overrides=overrides,
    )
    if cost is None:
        return _New(usage, row[6], row[7], is_priced=False)
    return _New(usage, plain(cost), source, is_priced=True)


def _object(text: object) -> Mapping[str, object] | None:
    try:
        found: object = json.loads(cast("str", text))
    except (ValueError, TypeError, RecursionError):
        return None
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else None


def _cost(row: Sequence[Any]) -> str | None:
    return row[6]


def _is_same(row: Sequence[Any], new: _New) -> bool:
    # What cannot be read is the same as itself, too.
    same_cost = row[6] == new.cost_usd or (new.is_priced and readable_cost(row[6]) == readable_cost(new.cost_usd))
    return same_cost and row[7] == new.source and tuple(row[8:]) == tuple(new.usage)


def _write(store: Store, due: Sequence[tuple[Sequence[Any], _New]]) -> None:
    tokens = ", ".join(f"{name} = ?" for name in Usage._fields)
    with store.write() as transaction:
        forget_sums(transaction)
        for row, new in due:
            # What came of a try may be written later than its opening was read: only what was read is replaced.
            transaction.execute(
                f"UPDATE calls SET {tokens}, cost_usd = ?, price_source = ? WHERE number = ? AND raw_usage = ?",  # noqa: S608
                (*new.usage, new.cost_usd, new.source, row[0], row[5]),
            )


def repriced_text(found: Repriced, *, is_trial: bool = False) -> str:
    """
    Say in words what repricing did, or would do.
    """
    would = "would change" if is_trial else "changed"
    lines = [
        f"calls looked at: {found.calls:,}, {would}: {found.changed:,}",
        f"sum before: {_sum(found.before)}",
        f"sum after:  {_sum(found.after)}",
    ]
    if found.without_usage:
        lines.append(f"without a usage that can be read: {found.without_usage:,}; what they cost stays as it was")
    if found.without_price:
        lines.append(f"without a price that is known now: {found.without_price:,}; what they cost stays as it was")
    return "\n".join(lines) + "\n"


def _sum(spent: Spent) -> str:
    return f"${plain(spent.usd)}" + (f", unknown costs: {spent.unknown:,}" if spent.unknown else "")
