"""
A ledger of a million calls over 91 days, made by the database alone within half a minute.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

CALLS = 1_000_000
DAYS = 91


def fill(file: Path, now: datetime) -> None:
    """
    Fill a new ledger: one stop and one call each seven seconds or so, up to now; 25 calls a session, 23 projects.
    """
    start = now - timedelta(days=DAYS)
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        # Made once all lines are there: in half the time.
        made_later = connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('trigger', 'index') AND sql IS NOT NULL"
        ).fetchall()
        for kind, name, _ in made_later:
            connection.execute(f"DROP {kind} {name}")
        numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n"
        connection.execute(f"CREATE TEMP TABLE n AS {numbers}", (CALLS - 1,))
        at = f"strftime('%Y-%m-%dT%H:%M:%fZ', {start.timestamp()} + i * {DAYS * 86_400 / CALLS}, 'unixepoch')"
        place = "CASE WHEN i % 5 THEN 'Stop' ELSE 'SubagentStop' END, 's' || (i / 25), '', '/home/me/project' || (i / 25 % 23)"
        outcome = "CASE i % 6 WHEN 0 THEN 'block_verdict' WHEN 1 THEN 'pass_noted' WHEN 2 THEN 'pass_cap_spent' ELSE 'pass_clean' END"
        connection.execute(
            "INSERT INTO decisions (id, at, event, session_id, agent_id, project, prompt_id, human_turn, outcome, detail,"
            " findings, dropped, spent, hook_ms, transcript_path, reply_chars, client_version)"
            f" SELECT 'd' || i, {at}, {place}, '', 'h' || (i / 3), {outcome}, '', '[]', 0, 0, 30, '/t', 500, '2.1' FROM n"
        )
        connection.execute(
            "INSERT INTO calls (id, decision_id, at, event, session_id, agent_id, project, human_turn, backend, endpoint, model,"
            " rubric, rubric_hash, try_number, outcome, input_tokens, output_tokens, thinking_tokens, cache_write_5m_tokens,"
            " cache_write_1h_tokens, cache_read_tokens, cost_usd, price_source, latency_ms, request_id)"
            f" SELECT 'c' || i, 'd' || i, {at}, {place}, 'h' || (i / 3), 'anthropic', 'api.anthropic.com',"
            " CASE WHEN i % 3 THEN 'claude-sonnet-5-5' ELSE 'claude-haiku-5-5' END, 'turn_end@1', 'abc', 1, 'answered',"
            " 80 + i % 1400, 60, 20, 0, 0, 900, CASE WHEN i % 50 THEN printf('0.00%05d', i % 99991) END, 'genai-prices',"
            " 600 + i * 7919 % 3400, 'req' FROM n"
        )
        for _, _, sql in made_later:
            connection.execute(sql)


def plain_sum(file: Path) -> None:
    """
    Add them all up in one statement, by day and model.
    """
    with sqlite3.connect(file) as connection:
        connection.execute(
            "SELECT substr(at, 1, 10), model, COUNT(*), SUM(input_tokens), SUM(output_tokens) FROM calls GROUP BY 1, 2"
        ).fetchall()
