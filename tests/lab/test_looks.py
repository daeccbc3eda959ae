"""
The looks at test cases: what counts as one, what tells against the figures, and that none goes uncounted.
"""

from __future__ import annotations

import json
import pwd
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.lab.cases import Case, new_case
from turngate.lab.errors import LabError
from turngate.lab.looks import LOOKS, looks_before, note_look, seen_as_test
from turngate.lab.runs import Answered, Manifest, Run, cases_hash
from turngate.rubric.turn import Turn

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
LATER = BEGUN + timedelta(hours=1)


def cases_of(count: int = 3, split: str = "test", label: str = "claim") -> list[Case]:
    return [
        new_case(f"c{n}", Turn("Do it", f"{n}: done."), labels=[label] if label else [], split=split)
        for n in range(count)
    ]


def run_of(said: str, cases: list[Case] | None = None, begun: datetime = BEGUN) -> Run:
    cases = cases_of() if cases is None else cases
    manifest = Manifest(
        created_at=begun.isoformat(timespec="seconds"),
        cases_file="cases.jsonl",
        cases_hash=cases_hash(cases),
        split="test" if any(case.split == "test" for case in cases) else "dev",
        rubric="turn_end@1",
        rubric_hash="0" * 16,
        faults=("claim",),
        model="some-model",
        backend="anthropic",
        repeats=1,
        max_tokens=1024,
        max_input_tokens=2500,
        effort="medium",
    )
    answers = {
        (case.id, 0): Answered(case=case.id, repeat=0, hash="0" * 32, outcome="answered", text=said) for case in cases
    }
    return Run(Path(said), manifest, cases, answers)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"TURNGATE_STATE_DIR": str(tmp_path / "state" / "turngate")}


def lines(environ: dict[str, str]) -> list[dict[str, object]]:
    path = Path(environ["TURNGATE_STATE_DIR"]) / LOOKS
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_look_is_kept_for_its_owner_alone(environ: dict[str, str]) -> None:
    """
    When, by which command, at which cases and which answers.
    """
    assert note_look(environ, [run_of("a")], command="score", now=LATER) == 1

    (look,) = lines(environ)
    assert (look["at"], look["command"]) == ("2026-01-01T01:00:00+00:00", "score")
    assert look["cases"] == cases_hash(cases_of())
    path = Path(environ["TURNGATE_STATE_DIR"]) / LOOKS
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_the_same_answers_are_the_same_look(environ: dict[str, str]) -> None:
    """
    Alone too, after they were seen beside others.
    """
    a, b = run_of("a"), run_of("b")
    for runs in ([a, b], [b, a], [a], [b]):
        assert note_look(environ, runs, now=LATER) == 1

    assert len(lines(environ)) == 1


def test_the_dev_split_is_never_counted(environ: dict[str, str]) -> None:
    """
    It is there to be looked at.
    """
    run = run_of("a", cases_of(split="dev"))

    assert note_look(environ, [run]) == 0
    assert looks_before(environ, [run]) == []
    assert not Path(environ["TURNGATE_STATE_DIR"]).exists()


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(cases_of(), id="the-same"),
        pytest.param(cases_of(2), id="one-left-out"),
        pytest.param(cases_of(9), id="more"),
        pytest.param(cases_of(label=""), id="other-labels"),
        pytest.param([case.model_copy(update={"id": f"new-{case.id}"}) for case in cases_of()], id="other-ids"),
    ],
)
def test_other_answers_on_a_turn_that_was_seen_are_another_look(cases: list[Case], environ: dict[str, str]) -> None:
    """
    A turn stays seen, whatever is changed around it.
    """
    note_look(environ, [run_of("a")], command="report", now=LATER)

    assert [look.command for look in looks_before(environ, [run_of("b", cases)])] == ["report"]
    assert note_look(environ, [run_of("b", cases)]) == 2
    assert note_look(environ, [run_of("c", cases)]) == 3


def test_other_turns_are_not_seen(environ: dict[str, str]) -> None:
    """
    Each test set has its own count.
    """
    others = [new_case("c0", Turn("Another", "Done."), labels=[], split="test")]
    note_look(environ, [run_of("a")], now=LATER)

    assert looks_before(environ, [run_of("a", others)]) == []
    assert note_look(environ, [run_of("a", others)]) == 1


def test_a_look_at_the_baseline_alone_counts_for_what_was_begun_after_it(environ: dict[str, str]) -> None:
    """
    Words written after the look may fit what was seen; a run that was under way by then cannot.
    """
    a = run_of("a")
    note_look(environ, [a], command="score", now=LATER)

    assert looks_before(environ, [a, run_of("b", begun=LATER - timedelta(minutes=1))]) == []
    assert len(looks_before(environ, [a, run_of("b", begun=LATER)])) == 1
    assert len(looks_before(environ, [a, run_of("b", begun=LATER + timedelta(minutes=1))])) == 1


def test_what_was_seen_first_is_not_spoilt_by_what_came_later(environ: dict[str, str]) -> None:
    """
    The first look, looked at again, is still the first.
    """
    note_look(environ, [run_of("a")], now=LATER)
    note_look(environ, [run_of("b")], now=LATER)

    assert looks_before(environ, [run_of("a")]) == []
    assert len(looks_before(environ, [run_of("b")])) == 1


def test_a_test_turn_moved_to_the_dev_split_is_told(environ: dict[str, str]) -> None:
    """
    Other turns are not; without a record, or a place for one, nothing is known.
    """
    dev = [*cases_of(2, split="dev"), new_case("x", Turn("Another", "Done."), labels=[])]
    assert seen_as_test(environ, [run_of("b", dev)]) == 0
    assert seen_as_test({"TURNGATE_STATE_DIR": "~nobody-of-that-name/x"}, [run_of("b", dev)]) == 0
    note_look(environ, [run_of("a")], now=LATER)

    assert seen_as_test(environ, [run_of("b", dev)]) == 2
    assert seen_as_test(environ, [run_of("c")]) == 0


def test_no_figure_is_shown_where_the_look_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A file stands where the folder should be, or there is no place at all: one line says so.
    """
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="figures of test cases are not shown"):
        note_look({"TURNGATE_STATE_DIR": str(tmp_path / "file" / "state")}, [run_of("a")])

    nobody = SimpleNamespace(pw_dir="")
    monkeypatch.setattr(pwd, "getpwuid", lambda _: nobody)
    with pytest.raises(LabError, match="TURNGATE_STATE_DIR"):
        note_look({"TURNGATE_STATE_DIR": "~/state"}, [run_of("a")])


def test_a_damaged_record_is_told_and_a_torn_end_is_not_a_look(environ: dict[str, str]) -> None:
    """
    What was cut off by a crash was written before any figure was shown.
    """
    note_look(environ, [run_of("a")], now=LATER)
    path = Path(environ["TURNGATE_STATE_DIR"]) / LOOKS
    with path.open("a") as file:
        file.write('{"at": "2026-')
    assert note_look(environ, [run_of("b")]) == 2
    with path.open("a") as file:
        file.write('{"at": {}')
    assert note_look(environ, [run_of("c")]) == 3

    with path.open("a") as file:
        file.write('{"at": 3}\n')
    with pytest.raises(LabError, match=r"lab-looks.jsonl: line 6: at: expected a text"):
        looks_before(environ, [run_of("d")])


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=8))
def test_the_number_of_a_look_is_that_of_different_answers_before_it(
    tmp_path_factory: pytest.TempPathFactory, looked: list[str]
) -> None:
    """
    However often each is looked at again.
    """
    environ = {"TURNGATE_STATE_DIR": str(tmp_path_factory.mktemp("state"))}
    first_seen = list(dict.fromkeys(looked))

    for name in looked:
        assert note_look(environ, [run_of(name)]) == first_seen.index(name) + 1
