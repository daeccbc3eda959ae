"""
`turngate lab check`: what is said of a file whose lines are all cases.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from turngate.lab.cases import Case, new_case, write_cases
from turngate.lab.cli import main
from turngate.rubric.turn import Turn

TURN = Turn("Add a test", "All tests pass.")


def case(name: str, labels: list[str] | None, **fields: Any) -> Case:
    return new_case(name, TURN, labels=labels, **fields)


@pytest.mark.parametrize(
    ("cases", "code", "said"),
    [
        pytest.param([case("a", [])], 0, "", id="one"),
        pytest.param([case("a", []), new_case("b", TURN._replace(reply="Done."), labels=[])], 0, "", id="two turns"),
        pytest.param(
            [case("a", ["claim", "opener"]), case("b", None), case("c", ["opener", "claim"])],
            0,
            "turngate: {file}: turns that stand under several ids, and count as often: 1, such as a, b, c\n",
            id="the same labels",
        ),
        pytest.param(
            [case("a", ["claim"]), case("b", None), case("c", [])],
            2,
            "turngate: {file}: one turn under 3 ids, with labels that contradict: a (claim), b (not labelled), c (none)\n"
            "turngate: {file}: turns that stand under several ids, and count as often: 1, such as a, b, c\n",
            id="other labels",
        ),
        pytest.param(
            [case("a", []), case("b", [], split="test")],
            2,
            "turngate: {file}: line 2: turn: is that of 'a' on line 1, which is of the other split, dev\n",
            id="both splits",
        ),
    ],
)
def test_one_turn_under_several_ids_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cases: list[Case], code: int, said: str
) -> None:
    """
    It counts as often as it stands there; with labels that contradict, or in both splits, it makes the file a bad one.
    """
    file = tmp_path / "cases.jsonl"
    write_cases(file, cases)

    assert main(["check", str(file)], {}) == code
    assert capsys.readouterr().err == said.format(file=file)
