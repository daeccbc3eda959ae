from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from turngate.costing.records import Call, CallEnd, CallStart, Decision, DecisionLine, FindingLine
from turngate.costing.report import Report, Total
from turngate.costing.text import NOTHING_YET, decision_text, log_text, report_text
from turngate.costing.usage import Usage

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
START = CallStart(AT, "anthropic", "claude-sonnet-5-5", "api.anthropic.com", "turn_end@1", "abc")
END = CallEnd(
    "answered",
    1312,
    "claude-sonnet-5-5",
    Usage(550, 130, 0, 0, 0, 900),
    {},
    Decimal("0.00249"),
    "genai-prices 0.2.3",
    "req_1",
)
REASON = "The turn shows no test run after the last edit: run them now, or say plainly that they were not run."
HELD = Decision(
    DecisionLine(
        AT,
        "Stop",
        "block_verdict",
        id="1m8ptjaza9qmrr6",
        session_id="s-1",
        project="/home/u/shop",
        findings=(FindingLine("claim", "All tests pass.", REASON, held=True),),
        spent=1,
        hook_ms=1400,
        reply_chars=21,
    ),
    (Call("1m8ptjazajehztq", START, END), Call("1m8ptjazb000000", START._replace(try_number=2), None)),
)
FREE = Decision(DecisionLine(AT, "Stop", "pass_empty_reply", id="1m8ptjazacrds09", detail="no text"))


def test_the_log_has_one_line_per_decision_in_a_pipe() -> None:
    """
    Without a terminal each decision is one line, however long, with its reason at the end.
    """
    assert log_text([HELD, FREE]).splitlines() == [
        "id               time (UTC)        outcome           tokens       cost                 project  why",
        "1m8ptjaza9qmrr6  2026-11-30 12:00  block_verdict     1,450 + 130  $0.0025 + 1 unknown  shop     claim: "
        + REASON,
        "1m8ptjazacrds09  2026-11-30 12:00  pass_empty_reply                                             no text",
    ]


def test_the_log_folds_reasons_on_a_terminal() -> None:
    """
    On a terminal the reason stands below its decision, within the terminal's width.
    """
    lines = log_text([HELD, FREE], width=70).splitlines()

    assert lines[2:4] == [
        "    claim: The turn shows no test run after the last edit: run them",
        "    now, or say plainly that they were not run.",
    ]
    assert lines[5] == "    no text"


def test_a_decision_in_full() -> None:
    """
    Findings with quote and reason, and each call with every class of tokens, cost and price source.
    """
    assert (
        decision_text(HELD)
        == f"""\
decision:   1m8ptjaza9qmrr6
time:       2026-11-30 12:00:00 UTC
event:      Stop
outcome:    block_verdict
project:    /home/u/shop
session:    s-1
reply:      21 characters
spent:      1 of the turn's continuations
took:       1,400 ms
cost:       $0.0025 + 1 unknown

finding: claim (held the turn)
  quote:  All tests pass.
  reason: {REASON}

call: 1m8ptjazajehztq
  time:                  2026-11-30 12:00:00 UTC
  try:                   1
  back end:              anthropic api.anthropic.com
  model:                 claude-sonnet-5-5
  rubric:                turn_end@1 abc
  answered by:           claude-sonnet-5-5
  outcome:               answered
  input tokens:          550
  output tokens:         130
  thinking tokens:       0
  cache write 5m tokens: 0
  cache write 1h tokens: 0
  cache read tokens:     900
  cost:                  $0.0025
  price from:            genai-prices 0.2.3
  took:                  1,312 ms
  request:               req_1

call: 1m8ptjazb000000
  time:     2026-11-30 12:00:00 UTC
  try:      2
  back end: anthropic api.anthropic.com
  model:    claude-sonnet-5-5
  rubric:   turn_end@1 abc
  outcome:  never ended
  tokens:   unknown
  cost:     unknown
"""
    )


def test_totals_as_a_table() -> None:
    """
    Unknown costs have their own column; a row with no known cost says so, and a row without a key is named.
    """
    rows = (
        Total("claude-sonnet-5-5", 2, 3, 1100, 260, 0, 700, 300, 1800, Decimal("0.00498"), 1, 1),
        Total("local", 1, 1, 0, 0, 0, 0, 0, 0, None, 1, 1),
        Total("", 4, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0),
    )
    total = Total("total", 7, 4, 1100, 260, 0, 700, 300, 1800, Decimal("0.00498"), 2, 2)

    assert report_text(Report("model", rows, total)).splitlines() == [
        "                                        input  output  cache  cache           unknown  cost per",
        "model              stops  held  calls  tokens  tokens  write   read     cost    costs     block",
        "claude-sonnet-5-5      2     1      3   1,100     260  1,000  1,800  $0.0050        1   $0.0050",
        "local                  1     1      1       0       0      0      0  unknown        1   unknown",
        "(no model)             4     0      0       0       0      0      0  $0.0000        0",
        "total                  7     2      4   1,100     260  1,000  1,800  $0.0050        2   $0.0025",
    ]


def test_outcomes_of_commands_are_no_stops() -> None:
    """
    By outcome the column counts decisions, and a line says what the total leaves out.
    """
    rows = (
        Total("pass_clean", 2, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0),
        Total("jobs_pass", 9, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0),
    )
    text = report_text(Report("outcome", rows, rows[0]._replace(key="total")))

    assert text.splitlines()[1].split()[:2] == ["outcome", "decisions"]
    assert text.endswith("\n\nThe total is of stops: the lines with jobs_ are about commands.\n")
    assert "jobs_" not in report_text(Report("outcome", rows[:1], rows[0]))


def test_an_empty_ledger_says_what_will_come() -> None:
    """
    Where nothing was recorded a person reads a sentence, not an empty table.
    """
    empty = Report("day", (), Total("total", 0, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0))

    assert log_text([]) == report_text(empty) == NOTHING_YET


def test_a_long_table_shows_the_latest_days_and_the_dearest_of_all_else() -> None:
    """
    What is left out is told of, and the total is of all.
    """
    rows = tuple(Total(f"2026-11-{day}", 1, 0, 0, 0, 0, 0, 0, 0, Decimal(0), 0) for day in (28, 29, 30))
    days = report_text(Report("day", rows, rows[0]._replace(key="total", decisions=3)), most=2).splitlines()
    sessions = report_text(Report("session", rows, rows[0]), most=1).splitlines()

    assert [line.split()[0] for line in days[2:4]] == ["2026-11-29", "2026-11-30"]
    assert days[1].startswith("day (UTC) ")
    assert days[4].split()[:2] == ["total", "3"]
    assert days[6] == "The latest 2 of 3; --json and --csv give all, and the total is of all."
    assert sessions[2].startswith("2026-11-28")
    assert sessions[5].startswith("The dearest 1 of 3")
