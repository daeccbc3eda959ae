"""
A ledger that an older turngate has made, with lines in it.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from turngate.costing.database import FILE_NAME, open_database
from turngate.costing.ledger import Ledger
from turngate.costing.postgres_dialect import spelt
from turngate.costing.report import report
from turngate.costing.reprice import reprice
from turngate.costing.retention import older_than, remove
from turngate.costing.schema import SCHEMA, statements
from turngate.costing.store import Store

from .ledger_lines import NOW, a_call
from .places import SERVER, Place, a_schema, administer, needs_postgres

CALL = (
    "INSERT INTO calls (id, decision_id, at, event, session_id, agent_id, project, human_turn, backend, endpoint, model, rubric,"
    " rubric_hash, try_number, outcome, cost_usd) VALUES ('c1', 'd1', '2026-10-01T12:00:00.000Z', 'Stop', 's', '', '/p', '',"
    " 'anthropic', '', 'm', '', '', 1, 'answered', '0.25')"
)
DECISION = (
    "INSERT INTO decisions (id, at, event, session_id, agent_id, project, prompt_id, human_turn, outcome, detail, findings, dropped,"
    " transcript_path, client_version) VALUES ('d1', '2026-10-01T12:00:00.000Z', 'Stop', 's', '', '/p', '', '', 'block_verdict',"
    " '', '[]', 0, '', '')"
)
LABEL = "INSERT INTO labels (decision_id, label, at) VALUES ('d1', 'none', '2026-10-01T12:00:00.000Z')"


def check(store: Store, folder: Path) -> None:
    """
    The lines are there, and all that is new works with them.
    """
    ledger = Ledger(store)
    assert [call.end.cost_usd for call in ledger.calls() if call.end] == [Decimal("0.25")]
    for _ in range(2):
        total = report(store, "day", now=NOW).total
        assert (total.decisions, total.calls, total.cost_usd, total.wrong_blocks) == (1, 1, Decimal("0.25"), 1)
    assert store.rows("SELECT COUNT(*) FROM day_sums WHERE sums IS NOT NULL") == [(1,)]

    a_call(ledger, "0.5", datetime(2026, 10, 1, 13, tzinfo=UTC))
    assert report(store, "day", now=NOW).total.cost_usd == Decimal("0.75")
    assert reprice(store).calls == 2
    assert remove(store, older_than(NOW), str(folder), now=NOW)[:2] == (1, 2)
    assert report(store, "day", now=NOW).total.calls == 0


def test_a_file_of_the_first_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    """
    By whoever opens it first; it is as one that was made anew.
    """
    (tmp_path / "old").mkdir()
    with sqlite3.connect(tmp_path / "old" / FILE_NAME) as old:
        for statement in (*statements(1, "sqlite"), CALL, DECISION, LABEL, "PRAGMA user_version = 1"):
            old.execute(statement)
    old.close()

    with open_database(tmp_path / "old") as store, open_database(tmp_path / "new") as new:
        tables = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
        assert store.rows(tables) == new.rows(tables)
        assert store.rows("PRAGMA user_version") == [(SCHEMA,)]
        check(store, tmp_path)


def test_the_first_schema_is_the_one_that_was_released() -> None:
    """
    What is kept of days came later.
    """
    first = "".join(statements(1, "sqlite"))

    assert "day_sums" not in first
    assert "TRIGGER" not in first


@needs_postgres
def test_a_server_of_the_first_schema_is_brought_up_to_date(tmp_path: Path) -> None:
    """
    The same on PostgreSQL.
    """
    with a_schema(SERVER) as url:
        schema = url.rpartition("%3D")[2]
        version = "CREATE TABLE turngate_schema (version BIGINT NOT NULL); INSERT INTO turngate_schema VALUES (1)"
        made = "; ".join((*map(spelt, statements(1, "postgres")), CALL, DECISION, LABEL, version))
        administer(SERVER, f"SET search_path = {schema}; {made}")

        with Place("", url).open(10) as store:
            assert store.rows("SELECT COUNT(*) FROM calls") == [(1,)]
            assert store.rows("SELECT version FROM turngate_schema") == [(SCHEMA,)]
            check(store, tmp_path)
