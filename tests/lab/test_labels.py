"""
The file of labels: what stands of all that was said, and what becomes of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.lab.cases import new_case
from turngate.lab.errors import LabError
from turngate.lab.labelling.labels import Label, Labels, add_labels, labels_file, read_answers, read_labels, settle
from turngate.rubric.library import load
from turngate.rubric.turn import Turn

FAULTS = load().faults


TURN = "0123456789abcdef"


def label(labeller: str, *faults: str, case: str = "a", turn: str = TURN, **fields: Any) -> Label:
    return Label(case=case, turn=turn, labeller=labeller, labels=list(faults), at="2026-11-30T12:00:00.000Z", **fields)


def test_labels_come_back_as_they_were_said(tmp_path: Path) -> None:
    """
    Each is one line in a file beside the cases, for its owner alone; the newest of a labeller counts.
    """
    file = labels_file(tmp_path / "cases.jsonl")
    first, second = label("anna", "claim", note="no test ran"), label("anna", confidence="low")
    add_labels(file, [first])
    add_labels(file, [second, label("ben", "cave", case="b")])

    found, warnings = read_labels(file, faults=FAULTS, turns={"a": TURN, "b": TURN})

    assert warnings == ()
    assert file.name == "cases.jsonl.labels.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [*json.loads(file.read_text().splitlines()[0])] == [
        *("case", "turn", "labeller", "labels", "confidence", "note", "at")
    ]
    assert found.given("a") == {"anna": second}
    assert found.labellers == ["anna", "ben"]
    assert found.by("ben") == [label("ben", "cave", case="b")]
    assert found.cases == ["a", "b"]


def test_what_was_undone_was_never_said() -> None:
    """
    An undone label gives way to the one before it; undone once more than said, nothing is left, and nobody differed.
    """
    first, second = label("anna", "claim"), label("anna", "promise")
    undone = label("anna", undone=True)

    assert Labels([first, second, undone]).given("a") == {"anna": first}
    assert Labels([first, undone, undone]).given("a") == {}
    assert Labels([first, undone, undone]).settled("a") is None
    settled = Labels([first, label("ben", "cave"), label("ben", undone=True), label("ben", "claim")]).settled("a")
    assert settled is not None
    assert not settled.disputed


@pytest.mark.parametrize(
    ("said", "labels", "disputed"),
    [
        pytest.param([label("anna", "claim")], ["claim"], False, id="one alone"),
        pytest.param([label("anna", "claim", "defer"), label("ben", "defer", "claim")], ["claim", "defer"], False, id="agree"),
        pytest.param([label("anna"), label("ben")], [], False, id="agree that it is clean"),
        pytest.param([label("anna", "claim"), label("ben")], None, True, id="differ"),
        pytest.param([label("anna", "claim"), label("ben"), label("ben", "claim")], ["claim"], True, id="came round"),
        pytest.param(
            [label("anna", "claim"), label("ben"), label("cleo", "cave", adjudicates=True)], ["cave"], True, id="decided"
        ),
        pytest.param(
            [label("anna", "claim"), label("ben"), label("cleo", "claim", adjudicates=True), label("dan", "cave")],
            None,
            True,
            id="labelled after the decision",
        ),
    ],
)  # fmt: skip
def test_the_labels_of_a_case_are_settled(said: list[Label], labels: list[str] | None, disputed: bool) -> None:
    """
    Agreed or decided labels are final; where people differ and nobody decided there are none.
    """
    settled = Labels(said).settled("a")

    assert settled is not None
    assert (settled.labels, settled.disputed) == (labels, disputed)


def test_a_settled_case_has_the_lowest_confidence_and_the_notes() -> None:
    """
    The decision's note stands for all of them, else each labeller's; a case that nobody labelled stays as it was.
    """
    case = new_case("a", Turn("r", "Done."), labels=["cave"], rationale="of old")
    said = [label("anna", "claim", confidence="low", note="A"), label("ben", "claim", note="B")]

    settled = settle(case, Labels(said).settled("a"))

    assert (settled.labels, settled.confidence, settled.disputed) == (["claim"], "low", False)
    assert settled.rationale == "A; B"
    assert settled.turn == case.turn
    assert settle(case, None) == case
    decided = Labels([*said, label("ben"), label("cleo", adjudicates=True, note="C")]).settled("a")
    assert decided is not None
    assert decided.note == "C"


@pytest.mark.parametrize(
    "half", ['{"case": "b", "labeller": "an', "garbage", '{"case": }'], ids=["half", "no JSON", "with an end"]
)
def test_a_line_that_a_crash_cut_off_was_never_said(tmp_path: Path, half: str) -> None:
    """
    It is passed over with a warning, and the next label begins a line of its own.
    """
    file = tmp_path / "l.jsonl"
    add_labels(file, [label("anna", "claim")])
    with file.open("a") as out:
        out.write(half)
    add_labels(file, [label("anna", case="c")])

    found, warnings = read_labels(file, faults=FAULTS, turns={})

    assert found.cases == ["a", "c"]
    assert warnings == (f"{file}: line 2: no JSON, as a crash leaves it: passed over",)


def test_labels_of_other_words_under_the_same_id_do_not_count(tmp_path: Path) -> None:
    """
    They are counted, but for those that were taken back; a label of a case that the file lacks is no other's.
    """
    file = tmp_path / "l.jsonl"
    other = "f" * 16
    taken_back = [label("cleo", "cave", turn=other), label("cleo", "cave", turn=other, undone=True)]
    add_labels(file, [label("anna", "claim"), label("ben", "cave", turn=other), *taken_back, label("ben", case="gone")])

    found, warnings = read_labels(file, faults=FAULTS, turns={"a": TURN})

    assert found.given("a") == {"anna": label("anna", "claim")}
    assert found.cases == ["a", "gone"]
    assert warnings == (f"{file}: labels of other words under the same id, which do not count: 1",)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param('{"case": "a"}', "turn: missing", id="half a label"),
        pytest.param("[1]", "expected a JSON object", id="no object"),
        pytest.param('{"case": "a", "case": "b"}', "case: stands twice in one object", id="a key twice"),
        pytest.param(label("anna", "lie").model_dump_json(), "labels: unknown fault 'lie': expected claim, ", id="fault"),
        pytest.param(label("anna", "cave", "cave").model_dump_json(), "labels: a fault stands there twice", id="twice"),
    ],
)  # fmt: skip
def test_a_damaged_file_of_labels_is_told_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    """
    File, line and key; labels that cannot be read must not look like labels that were never given.
    """
    file = tmp_path / "l.jsonl"
    file.write_text(label("anna").model_dump_json() + "\n" + line + "\n")

    with pytest.raises(LabError) as told:
        read_labels(file, faults=FAULTS, turns={})

    assert str(told.value).startswith(f"{file}: line 2: {said}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("no", "not JSON: Expecting value", id="no JSON"),
        pytest.param("[1]", "expected a JSON object", id="no object"),
        pytest.param('{"case": "a"}', "labels: missing", id="no labels"),
        pytest.param('{"case": "z", "labels": []}', "case: 'z' is none of the cases asked for", id="unknown case"),
        pytest.param('{"case": "b", "labels": []}', "case: 'b' stands on line 1 already", id="twice"),
        pytest.param('{"case": "a", "labels": ["lie"]}', "labels: unknown fault 'lie'", id="unknown fault"),
        pytest.param('{"case": "a", "labels": [], "at": "x"}', "at: unknown key", id="unknown key"),
        pytest.param('{"case": "a", "labels": [], "confidence": "sure"}', "confidence: Input should be", id="confidence"),
    ],
)  # fmt: skip
def test_a_bad_answer_keeps_all_of_them_out(line: str, said: str) -> None:
    """
    The first is told with source, line and key.
    """
    with pytest.raises(LabError) as told:
        read_answers([b'{"case": "b", "labels": []}', b"", line.encode()], "x.jsonl", known=("a", "b"), faults=FAULTS)

    assert str(told.value).startswith(f"x.jsonl: line 3: {said}")
    assert str(told.value).endswith("; no label of it was kept")


_SAID = st.builds(
    label,
    st.sampled_from(["anna", "ben"]),
    st.sampled_from(FAULTS),
    case=st.sampled_from("ab"),
    undone=st.booleans(),
    adjudicates=st.booleans(),
)


@given(st.lists(_SAID, max_size=20))
def test_whatever_was_said_something_definite_stands(said: list[Label]) -> None:
    """
    A case has final labels only where its labellers agree or somebody decided; and one that was ever undecided is disputed.
    """
    labels = Labels(said)

    for case in "ab":
        settled, given_now = labels.settled(case), labels.given(case)
        assert (settled is None) == (not given_now)
        if settled is None:
            continue
        assert (settled.labels is None) == (labels.differ(case) and labels.decision(case) is None)
        assert settled.disputed or not labels.differ(case)
