"""
What a stretch of time adds up to, where costs are damaged: as each cost by itself is read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from turngate.costing.amounts import sum_costs
from turngate.costing.ledger import Ledger
from turngate.costing.store import Store
from turngate.costing.sums import folded, read_cube

from .ledger_lines import a_call
from .places import Place

PLAIN = ["0.00249", "0", "12", "999999999999.5"]


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        "",
        "|",
        "0.5|0.25",
        "|1",
        "1|",
        "x",
        "-1",
        "1e3",
        " 2",
        "1.",
        ".5",
        "NaN",
        "\u0663",
        "1000000000000.5",
        "0." + "1" * 41,
        "1_0",
    ],
    ids=repr,
)
@pytest.mark.parametrize("before", range(len(PLAIN) + 1), ids=str)
def test_one_damaged_cost_spoils_no_other(store: Store, damaged: str | None, before: int) -> None:
    """
    Whatever stands beside them and wherever, the plain ones are added up exactly, and what is no money is unknown.
    """
    costs = [*PLAIN[:before], damaged, *PLAIN[before:]]
    ids = [a_call(Ledger(store), "1") for _ in costs]
    with store.write() as transaction:
        for call_id, cost in zip(ids, costs, strict=True):
            transaction.execute("UPDATE calls SET cost_usd = ? WHERE id = ?", (cost, call_id))
    expected = sum_costs((cost, 1) for cost in costs)

    found = folded(read_cube(store, "", None))["total"][""]

    assert found.cost_usd == expected.usd
    assert found.unknown_costs == expected.unknown


def test_a_cost_that_is_no_text_is_unknown(tmp_path: Path) -> None:
    """
    SQLite keeps bytes in a column of texts, also such as spell an amount.
    """
    with Place(str(tmp_path)).open() as store:
        ids = [a_call(Ledger(store), "1") for _ in range(3)]
        with store.write() as transaction:
            transaction.execute("UPDATE calls SET cost_usd = ? WHERE id = ?", (b"0.5", ids[1]))

        found = folded(read_cube(store, "", None))["total"][""]

        assert (found.cost_usd, found.unknown_costs) == (2, 1)
