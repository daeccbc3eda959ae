"""
What each key does to a session of labelling, and what a labeller gets to see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.lab.cases import Case, new_case
from turngate.lab.errors import LabError
from turngate.lab.labelling.labels import Label, Labels
from turngate.lab.labelling.screen import Look, help_lines, page
from turngate.lab.labelling.session import (
    BACKSPACE,
    ENTER,
    ESCAPE,
    OTHER_KEYS,
    PAGE_BACK,
    PAGE_ON,
    PASTED,
    Labelling,
    Task,
    differences,
    fault_keys,
    tasks,
)
from turngate.lab.labelling.terminal import REDRAW, keys_from
from turngate.rubric.library import load
from turngate.rubric.turn import Facts, ToolCall, Turn

FAULTS = load().faults
CASES = [new_case(name, Turn(f"Do {name}", f"Did {name}."), labels=["cave"], rationale="why") for name in "abc"]


def said_of(case: str, labeller: str, *labels: str, **fields: Any) -> Label:
    return Label(case=case, turn="0" * 16, labeller=labeller, labels=list(labels), at="then", **fields)


class Session:
    """
    A session whose labels go into a list.
    """

    def __init__(
        self, todo: Sequence[Task] | None = None, said: Sequence[Label] = (), *, labeller: str = "anna"
    ) -> None:
        self.kept: list[Label] = list(said)
        self.labelling = Labelling(
            tasks(CASES, Labels(said), labeller) if todo is None else todo,
            Labels(said).by(labeller),
            labeller,
            keys=fault_keys(FAULTS),
            save=self.kept.append,
            now=lambda: "now",
        )

    def press(self, *keys: str) -> None:
        for key in keys:
            self.labelling.press(key)

    @property
    def standing(self) -> list[tuple[str, list[str]]]:
        return [(label.case, label.labels) for label in Labels(self.kept).by("anna")]

    @property
    def current(self) -> str:
        return self.labelling.task.case.id if self.labelling.task else ""

    def screen(self, width: int = 80, height: int = 24) -> str:
        return "\n".join(page(self.labelling, help_lines(load().system, FAULTS), Look(width, height)))


def test_each_fault_has_a_key_of_its_own() -> None:
    """
    Its first letter, or the first consonant that is free; never a key that does something else.
    """
    assert fault_keys(FAULTS) == {"c": "claim", "p": "promise", "o": "opener", "d": "defer", "v": "cave"}
    assert fault_keys(["none", "quit", "aaa", "a"]) == {"o": "none", "t": "quit", "a": "aaa", "c": "a"}
    with pytest.raises(LabError, match="no letter is left"):
        fault_keys([f"x{number}" for number in range(27)])


def test_faults_confidence_and_note_are_saved_with_enter() -> None:
    """
    One line for the case, and the next case comes with nothing said of it.
    """
    session = Session()

    session.press("d", "c", "v", "v", "2", "r", *"no run", BACKSPACE, "n", ENTER, ENTER)

    (label,) = session.kept
    assert (label.case, label.labeller, label.at) == ("a", "anna", "now")
    assert (label.labels, label.confidence, label.note) == (["claim", "defer"], "medium", "no run")
    assert session.current == "b"
    assert not session.labelling.draft.is_decided


def test_nothing_is_saved_before_anything_is_said() -> None:
    """
    That a reply is clean is said with a key of its own, and takes the faults away.
    """
    session = Session()

    session.press(ENTER)
    assert session.kept == []
    assert "nothing is said yet" in session.screen()

    session.press("c", "n", ENTER)
    assert session.standing == [("a", [])]


def test_undo_goes_back_step_by_step_and_then_label_by_label() -> None:
    """
    What was drafted goes first; then the saved label is taken back, and its case is shown with what was said of it.
    """
    session = Session()
    session.press("c", "1", ENTER, "n", ENTER, "p")

    session.press("u")
    assert (session.current, session.labelling.draft.is_decided) == ("c", False)
    session.press("u", "u")
    assert (session.current, session.labelling.draft.faults, session.labelling.draft.confidence) == (
        "a",
        ("claim",),
        "low",
    )
    assert session.standing == []

    session.press("d", ENTER)
    assert session.standing == [("a", ["claim", "defer"])]
    assert session.labelling.saved == 1


def test_labels_of_a_session_before_are_not_asked_again_and_can_be_undone() -> None:
    """
    It goes on with the first case without a label of this labeller; undo goes back in the order in which they were said.
    """
    said = [said_of(case, "anna", "claim") for case in ("c", "a", "gone")]
    session = Session(said=said)

    assert (session.current, session.labelling.left) == ("b", 1)
    session.press("u")
    assert session.current == "a"
    session.press("u", "u")
    assert session.current == "c"
    assert "nothing to undo" in session.labelling.message
    assert session.standing == [("gone", ["claim"])]
    assert (session.labelling.saved, session.labelling.taken_back) == (0, 2)


def test_a_skipped_case_has_no_label_and_is_asked_the_next_time() -> None:
    """
    Undo goes back to it.
    """
    session = Session()
    session.press("s", "n", ENTER)

    assert session.standing == [("b", [])]
    assert Session(said=session.kept).current == "a"
    session.press("u", "u")
    assert session.current == "a"


def test_after_the_last_case_one_can_still_undo_and_quit() -> None:
    """
    No other key does anything.
    """
    session = Session()
    session.press(*["n", ENTER] * 3)

    session.press(ENTER, "c", "s", " ", "r")
    assert session.current == ""
    assert "Nothing is left to label" in session.screen()
    session.press("u")
    assert session.current == "c"
    session.press("q")
    assert session.labelling.has_quit


def test_a_label_that_cannot_be_kept_is_not_taken_for_kept() -> None:
    """
    The error goes on, and the case is still the one to label.
    """

    def fail(_: Label) -> None:
        raise LabError("disk full")

    labelling = Labelling(tasks(CASES, Labels(), "anna"), [], "anna", keys={}, save=fail, now=str)
    labelling.press("n")

    with pytest.raises(LabError, match="disk full"):
        labelling.press(ENTER)

    assert labelling.task is not None
    assert (labelling.task.case.id, labelling.saved) == ("a", 0)


def test_a_note_is_stored_without_secrets() -> None:
    """
    Esc leaves the note as it was.
    """
    session = Session()
    session.press("n", "r", *("key sk-ant-" + "a1b2" * 8), ENTER)
    session.press("r", *" more", ESCAPE, ENTER)

    assert session.kept[0].note == "key [secret]"


def test_no_key_but_a_character_goes_into_a_note() -> None:
    """
    Whoever scrolls or moves the cursor while writing writes no letter; pasted text goes in as one line.
    """
    session = Session()
    written = b"nrok\x1b[A\x1b[6~\x1b[D\x1bb\x1b[200~\x1b[31m, two\r\nlines\x1b[201~.\r\r"
    pieces = iter([written, b""])

    session.press(*keys_from(lambda: next(pieces)))

    (label,) = session.kept
    assert (label.case, label.labels) == ("a", [])
    assert label.note == "ok, two lines."


def test_pasted_text_is_no_row_of_keys() -> None:
    """
    Outside of a note it says and saves nothing.
    """
    session = Session()

    session.press(PASTED + "c\rn\rq")

    assert session.kept == []
    assert not session.labelling.draft.is_decided
    assert not session.labelling.has_quit
    assert "pasted text is taken in a note alone" in session.screen()


def test_keys_that_page_scroll_the_turn_and_the_help() -> None:
    """
    As space and b do.
    """
    session = Session([Task(a_long_case())])
    first = session.screen()

    session.press(PAGE_ON)
    second = session.screen()
    session.press("?", PAGE_ON, PAGE_BACK, "c")

    assert session.screen() == second != first
    session.press(PAGE_BACK)
    assert session.screen() == first


def test_only_the_first_labeller_sees_what_the_file_says() -> None:
    """
    Nobody who comes later sees the file's labels nor another labeller's, and nobody who asks to be blind.
    """
    others = [said_of("a", "ben", "promise", note="of ben")]
    first, second = Session(), Session(said=others)
    blind = Session(tasks(CASES, Labels(), "anna", blind=True))

    assert "the file says: cave (high confidence): why" in first.screen()
    for session in (second, blind):
        assert "says:" not in session.screen()
        assert "of ben" not in session.screen()
        assert "why" not in session.screen()


def test_only_differences_are_decided_with_both_labels_in_sight() -> None:
    """
    A case that both see alike is not shown; the decision is kept as one.
    """
    said = [
        said_of("a", "anna", "claim"),
        said_of("a", "ben", "claim"),
        said_of("b", "anna", "claim", note="no run"),
        said_of("b", "ben", confidence="low"),
        said_of("c", "ben"),
    ]
    kept: list[Label] = []
    todo = differences(CASES, Labels(said))
    labelling = Labelling(
        todo, [], "cleo", keys=fault_keys(FAULTS), save=kept.append, now=lambda: "now", adjudicates=True
    )  # fmt: skip

    shown = "\n".join(page(labelling, [], Look()))
    labelling.press("c")
    labelling.press(ENTER)

    assert [task.case.id for task in todo] == ["b"]
    assert "anna says: claim (high confidence): no run" in shown
    assert "ben says: none (low confidence)" in shown
    assert [(label.case, label.labels, label.adjudicates) for label in kept] == [("b", ["claim"], True)]
    settled = Labels([*said, *kept]).settled("b")
    assert settled is not None
    assert (settled.labels, settled.confidence, settled.disputed) == (["claim"], "low", True)


def a_long_case() -> Case:
    turn = Turn(
        request="Fix it",
        reply="".join(f"line {number}\n" for number in range(60)) + "THE END",
        previous_reply="x" * 5_000 + "ITS END",
        later_prompts=("and quickly",),
        tool_calls=(ToolCall("Edit", "Edit: a.py -> ok", "edit"),),
        facts=Facts(edited_files=("a.py",), plan_mode=True),
    )
    return new_case("long", turn)


def test_a_turn_is_shown_whole_screen_by_screen() -> None:
    """
    Space goes on and b goes back; together the screens hold every part in its order, and none is longer than the terminal.
    """
    session = Session([Task(a_long_case())])
    screens = [session.screen()]
    for _ in range(session.labelling.screens - 1):
        session.press(" ")
        screens.append(session.screen())
    session.press(" ")

    whole = "\n".join(screens)
    parts = ["ITS END", "request", "Fix it", "and quickly", "Edit: a.py -> ok", "edited: a.py", "line 0", "THE END"]
    assert [whole.index(part) for part in parts] == sorted(whole.index(part) for part in parts)
    assert all(f"line {number}" in whole for number in range(60))
    assert session.screen() == screens[-1]
    assert all(len(screen.split("\n")) < 24 for screen in screens)
    session.press("b")
    assert session.screen() == screens[-2]
    assert "screen 1 of" in screens[0]


def test_the_help_has_the_rubrics_definitions_and_gives_the_turn_back() -> None:
    """
    Each fault with what counts and what does not, scrollable; any other key goes back to the same place.
    """
    session = Session([Task(a_long_case())])
    session.screen()
    session.press(" ")
    before = session.screen()

    session.press("?")
    texts = session.screen(height=100)
    session.press(" ", "c")

    for fault in FAULTS:
        assert f"\n{fault}: " in texts
    assert "Counts:" in texts
    assert session.labelling.draft.faults == ()
    assert session.screen() == before


@given(st.text(max_size=300), st.text(max_size=300), st.integers(20, 200), st.integers(8, 60))
def test_no_text_of_a_case_can_steer_the_terminal(request: str, reply: str, width: int, height: int) -> None:
    """
    Whatever stands in a turn, a page is printable lines within the terminal's width and height.
    """
    turn = Turn(request + "\x1b[2J\x1b]0;title\x07", reply + "\r\x9b2J\x00")
    case = CASES[0].model_copy(update={"wire_turn": new_case("x", turn).wire_turn})
    session = Session([Task(case)])

    lines = session.screen(width, height).split("\n")

    assert len(lines) < height
    assert not any(character in line for line in lines for character in "\x1b\r\x9b\x00\x07")


@given(
    st.lists(st.sampled_from(["c", "p", "v", "n", "1", "r", "x", "u", "s", "?", " ", "b", ENTER, ESCAPE]), max_size=60)
)
def test_no_row_of_keys_loses_a_case(keys: list[str]) -> None:
    """
    Each case is either still to do, skipped, or has the one label that the file tells.
    """
    session = Session()

    session.press(*keys)

    labelled = {case for case, _ in session.standing}
    left = {task.case.id for task in session.labelling._todo}  # pyright: ignore[reportPrivateUsage]
    assert labelled.isdisjoint(left)
    assert session.labelling.saved == len(labelled)
    assert {case for case, _ in Session(said=session.kept).standing} == labelled


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        pytest.param([b"c\r"], ["c", ENTER], id="two at once"),
        pytest.param([b"\x7f\x1b"], [BACKSPACE, ESCAPE], id="names"),
        pytest.param([b"\x1b[A\x1b[6~\x1b[1;5C"], [PAGE_BACK, PAGE_ON], id="arrows scroll, others do nothing"),
        pytest.param([b"\x1b[", b"1;5", b"Cc"], ["c"], id="a sequence in pieces"),
        pytest.param([b"\x1bOP\x1b[[A\x1bx\x1b\x1b[Dc"], ["c"], id="function keys, Alt with a key"),
        pytest.param([b"c\x1b[200~so\x04 s", b"o\rq\x1b[201~d"], ["c", f"{PASTED}so\x04 so\rq", "d"], id="pasted"),
        pytest.param(["\u00fc".encode()[:1], "\u00fc".encode()[1:]], ["\u00fc"], id="a letter in two pieces"),
        pytest.param([b"\x0c\x01"], [REDRAW], id="control characters"),
        pytest.param([b"a\x04b"], ["a"], id="Ctrl-D ends"),
    ],
)
def test_bytes_of_a_terminal_are_keys(sent: list[bytes], keys: list[str]) -> None:
    """
    Sequences of bytes are one key; what has no meaning here is none.
    """
    pieces = iter([*sent, b""])

    assert list(keys_from(lambda: next(pieces))) == keys


def test_no_fault_has_a_key_of_the_screen() -> None:
    """
    The keys that do something else are the ones that are kept free.
    """
    session = Session()

    for key in OTHER_KEYS - {"q"}:
        session.press(key, ESCAPE)

    assert session.labelling.draft.faults == ()
