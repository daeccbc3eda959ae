from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from turngate.costing.export import Form, Wanted, What, exported
from turngate.costing.json_lines import call_json, decision_json
from turngate.costing.ledger import Ledger
from turngate.costing.pages import SIZE
from turngate.costing.records import CallEnd, DecisionLine, FindingLine
from turngate.costing.store import Store
from turngate.costing.usage import Usage

from .ledger_lines import MINUTE, NOW, a_call, a_start

ODD = 'say "hi", =1+1;\nnext\tline é \u202e'


def as_json(store: Store | None, what: What = "decisions", **fields: Any) -> list[dict[str, Any]]:
    text = "".join(exported(store, Wanted(what, "jsonl", **fields)))
    return [json.loads(line) for line in text.splitlines()]


def as_csv(store: Store | None, what: What = "decisions", **fields: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(exported(store, Wanted(what, "csv", **fields))))))


@pytest.fixture(name="filled")
def filled_fixture(store: Store, ledger: Ledger) -> Store:
    """
    Two decisions, one of them labelled; a priced call, one whose price is unknown, one that never ended.
    """
    start = a_start(decision_id="d1", session_id="s1", project="/p", event="Stop", agent_id="a")
    usage = Usage(106, 44, 12, 925, 1, 2)
    end = CallEnd("answered", 900, "m-1", usage, {"input_tokens": 106, "é": [1]}, Decimal("0.00249"), "user", "r", ODD)
    ledger.settle_call(ledger.open_call(start), start, end)
    a_call(ledger, None, NOW + MINUTE, decision_id="d1")
    ledger.open_call(a_start(NOW + 2 * MINUTE, try_number=3, decision_id="d1"))
    findings = (FindingLine("claim", ODD, "No test ran.", held=True), FindingLine("opener", "Sorry", "An apology."))
    line = DecisionLine(
        NOW, "Stop", "block_verdict", "d1", "s1", "a", "/p", "pr", "h", ODD, findings, 2, 1, 80, "/t", 9, "2.1"
    )
    ledger.record_decision(line)
    ledger.record_decision(DecisionLine(NOW + MINUTE, "Stop", "pass_empty_reply", "d2"))
    ledger.label("d1", "none", NOW, "it did")
    return store


@pytest.mark.parametrize("what", ["decisions", "calls"])
def test_every_column_is_exported(filled: Store, what: What) -> None:
    """
    What a table holds stands in each line, but for the number of the row; a column that is added must be added here.
    """
    names = {"decisions": DecisionLine._fields, "calls": ()}[what]
    columns = _columns(filled, what) - {"number"}

    for lines in (as_json(filled, what), as_csv(filled, what)):
        found = set(lines[0]) - {"label", "label_at", "label_note"}
        assert {"try_number" if name == "try" else name for name in found} == columns
        assert set(names) <= columns


def _columns(store: Store, table: str) -> set[str]:
    try:
        return {row[1] for row in store.rows(f"SELECT * FROM pragma_table_info('{table}')") if row[1]}
    except Exception:
        rows = store.rows("SELECT column_name FROM information_schema.columns WHERE table_name = ?", (table,))
        return {row[0] for row in rows}


def test_values_are_those_of_the_log(filled: Store, ledger: Ledger) -> None:
    """
    A decision and a call stand there as `turngate log --json` has them; the label that a person gave follows.
    """
    told = [decision_json(decision) for decision in ledger.decisions()]
    calls = [call_json(call) for call in ledger.calls()]

    for lines, known in ((as_json(filled), told), (as_json(filled, "calls"), calls)):
        assert len(lines) == len(known)
        for line, one in zip(lines, known, strict=True):
            one.pop("calls", None)
            for finding in line.get("findings", []):
                finding.pop("held")
            assert {name: line[name] for name in one} == one
            assert list(line)[: len(one)] == list(one)
    first, second = as_json(filled)
    assert (first["label"], first["label_note"], second["label"]) == ("none", "it did", None)
    assert [finding["held"] for finding in first["findings"]] == [True, None]


@pytest.mark.parametrize("what", ["decisions", "calls"])
def test_csv_holds_the_same(filled: Store, what: What) -> None:
    """
    An empty field is what is not known, never 0; what is no text or number is JSON; line breaks and quotes survive.
    """
    for line, row in zip(as_json(filled, what), as_csv(filled, what), strict=True):
        assert list(line) == list(row)
        for name, value in line.items():
            is_nested = isinstance(value, list | dict)
            assert (json.loads(row[name]) if is_nested else row[name]) == (
                value if is_nested else "" if value is None else str(value)
            )


def test_what_is_unknown_is_null(filled: Store) -> None:
    """
    A price that is not known and a call that never ended have no cost, not one of 0.
    """
    priced, unpriced, unended = as_json(filled, "calls")

    assert (priced["cost_usd"], priced["raw_usage"]) == ("0.00249", {"input_tokens": 106, "é": [1]})
    assert (unpriced["outcome"], unpriced["cost_usd"], unpriced["input_tokens"]) == ("answered", None, None)
    assert (unended["outcome"], unended["cost_usd"], unended["try"]) == (None, None, 3)


@pytest.mark.parametrize(
    ("since", "until", "ids"),
    [
        pytest.param(None, None, ["d1", "d2"], id="all"),
        pytest.param(NOW + MINUTE, None, ["d2"], id="since-itself-is-in"),
        pytest.param(None, NOW + MINUTE, ["d1"], id="until-itself-is-out"),
        pytest.param(NOW + 2 * MINUTE, None, [], id="later"),
    ],
)
def test_a_time_can_be_picked(filled: Store, since: object, until: object, ids: Sequence[str]) -> None:
    """
    From one time until before another.
    """
    assert [line["id"] for line in as_json(filled, since=since, until=until)] == ids


@pytest.mark.parametrize("what", ["decisions", "calls"])
@pytest.mark.parametrize("nothing", ["no-store", "empty"])
def test_where_nothing_is_stored_only_names_are_given(store: Store, what: What, nothing: str) -> None:
    """
    No line of JSON, and the one line of CSV that names the columns.
    """
    source = None if nothing == "no-store" else store

    assert "".join(exported(source, Wanted(what, "jsonl"))) == ""
    [names] = "".join(exported(source, Wanted(what, "csv"))).splitlines()
    assert names.startswith("id,at,")


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_memory_does_not_grow_with_the_ledger(store: Store, form: Form) -> None:
    """
    Nine portions take no more memory than three.
    """

    def most(portions: int) -> int:
        with store.write() as transaction:
            transaction.execute("DELETE FROM decisions")
            transaction.execute(
                "WITH RECURSIVE line (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM line WHERE n < ?)"
                " INSERT INTO decisions (id, at, event, session_id, agent_id, project, prompt_id, human_turn, outcome, detail,"
                " findings, dropped, transcript_path, client_version) SELECT 'd' || CAST(n AS TEXT),"
                " '2026-01-01T00:00:00.000Z', 'Stop', '', '', '', '', '', 'pass_clean', '', '[]', 0, '', '' FROM line",
                (portions * SIZE,),
            )
        tracemalloc.start()
        lines = sum(text.count("\n") for text in exported(store, Wanted("decisions", form)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert lines == portions * SIZE + (form == "csv")
        return peak

    most(2)
    assert most(9) < 1.5 * most(3)


def test_lines_that_come_meanwhile_do_not_make_it_endless(filled: Store, ledger: Ledger) -> None:
    """
    What is written while one reads comes with the next export.
    """
    portions = exported(filled, Wanted())
    lines = next(portions).splitlines()
    for number in range(3 * SIZE):
        if number % SIZE == 0:
            ledger.record_decision(DecisionLine(NOW + timedelta(hours=1), "Stop", "pass_off"))

    assert len(lines) + sum(text.count("\n") for text in portions) == 2


def test_a_damaged_row_is_given_and_told(filled: Store) -> None:
    """
    What of it cannot be read is not known.
    """
    with filled.write() as transaction:
        transaction.execute("UPDATE decisions SET findings = 'no json', at = 'no time' WHERE id = 'd1'")
        transaction.execute("UPDATE calls SET cost_usd = 'much' WHERE cost_usd IS NOT NULL")
    damaged: list[str] = []

    lines = [json.loads(line) for line in "".join(exported(filled, Wanted(), damaged.append)).splitlines()]
    calls = [json.loads(line) for line in "".join(exported(filled, Wanted("calls"), damaged.append)).splitlines()]

    assert [line["findings"] for line in lines] == [[], []]
    assert [call["cost_usd"] for call in calls] == [None, None, None]
    assert damaged[0] == "decisions d1"
    assert len(damaged) == 2
