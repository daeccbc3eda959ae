"""
`turngate right`: a verdict that a person confirms, or no longer calls wrong, becomes a labelled case.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from turngate.costing.records import DecisionLine
from turngate.judge.judgement import Judgement
from turngate.lab.cases import Case, read_cases
from turngate.lab.commands.right import main as right
from turngate.lab.commands.wrong import main as wrong
from turngate.lab.wrong import FILE_NAME
from turngate.stopgate.gate import Store

from ..stopgate.gate_stage import CLAIM, NOW, OPENER, TASK, Gate, judged


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    found = Gate(tmp_path)
    yield found
    found.database.close()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "TURNGATE_STATE_DIR": str(tmp_path / "state"),
        "HOME": str(tmp_path),
        "CLAUDE_PROJECT_DIR": "/home/dev/demo",
    }


def cases(gate: Gate) -> list[Case]:
    return read_cases(gate.folder / "state" / FILE_NAME)


def labels(store: Store) -> list[tuple[str, str]]:
    assert store.ledger is not None
    return [(line.decision_id, line.label) for line in store.ledger.labels()]


@pytest.mark.parametrize(
    ("answer", "faults", "label"),
    [
        pytest.param(judged(CLAIM, OPENER), ["claim", "opener"], "claim,opener", id="a hold"),
        pytest.param(judged(), [], "none", id="a pass"),
    ],
)
def test_a_right_verdict_is_a_case_with_what_it_found(
    gate: Gate,
    environ: dict[str, str],
    answer: Judgement,
    faults: list[str],
    label: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """
    The labels are the faults of the verdict, and the turn is that which was judged.
    """
    gate.answer = answer
    gate.stop()
    decision = gate.decisions[-1].line.id

    assert right([decision, "--note", "seen it"], environ) == 0

    (case,) = cases(gate)
    file = gate.folder / "state" / FILE_NAME
    assert capsys.readouterr().out == f"{decision} is noted as right, and is a case now (labels: {label}): {file}\n"
    assert (case.id, case.labels, case.tags, case.source) == (f"right-{decision}", faults, ["right"], "turngate right")
    assert (case.turn, case.rationale) == (gate.asked[0], "seen it")
    assert labels(gate.store) == [(decision, label)]


def test_right_takes_back_wrong_and_wrong_takes_back_right(gate: Gate, environ: dict[str, str]) -> None:
    """
    Without an id both mean the last hold of the project; there is one case, even where the turn is gone meanwhile.
    """
    gate.answer = judged(CLAIM)
    gate.stop()
    decision = gate.decisions[-1].line.id

    wrong([], environ)
    assert [(case.id, case.labels) for case in cases(gate)] == [(f"wrong-{decision}", [])]

    (gate.folder / "session.jsonl").unlink()
    right([], environ)
    assert [(case.id, case.labels) for case in cases(gate)] == [(f"right-{decision}", ["claim"])]
    assert labels(gate.store) == [(decision, "claim")]

    wrong([], environ)
    assert [(case.id, case.labels) for case in cases(gate)] == [(f"wrong-{decision}", [])]
    assert cases(gate)[0].turn == gate.asked[0]


def test_a_hold_for_running_work_is_taken_back(
    gate: Gate, environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    There is no verdict to confirm: it is as if nothing had been said.
    """
    gate.stop(tasks=(TASK,))
    decision = gate.decisions[-1].line.id
    wrong([], environ)
    assert labels(gate.store) == [(decision, "none")]
    capsys.readouterr()

    assert right([], environ) == 0

    assert capsys.readouterr().out.endswith(f"\n{decision} counts as right: it was held for work that still ran\n")
    assert labels(gate.store) == []


def test_what_no_judge_decided_cannot_be_right(
    gate: Gate, environ: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """
    One line and exit code 2; nothing is noted.
    """
    assert gate.store.ledger is not None
    gate.store.ledger.record_decision(DecisionLine(NOW, "Stop", "pass_judge_timeout", id="d1"))

    assert right(["d1"], environ) == 2
    assert "(pass_judge_timeout) was made without a judge: no verdict can be right" in capsys.readouterr().err
    assert labels(gate.store) == []
