"""
A session of labelling: what each key does to it. It knows no terminal; what it saves is given away at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from ...rubric.masking import clean, mask
from ..cases import Case
from ..errors import LabError
from .labels import LONGEST_NOTE, Confidence, Label, Labels

CONFIDENCE_KEYS: Final[dict[str, Confidence]] = {"1": "low", "2": "medium", "3": "high"}
CLEAN_KEY: Final = "n"
OTHER_KEYS: Final = frozenset(" ?bnqrsu")
"""No fault has one of them."""

ENTER: Final = "enter"
BACKSPACE: Final = "backspace"
ESCAPE: Final = "escape"
PAGE_BACK: Final = "page back"
PAGE_ON: Final = "page on"
"""Keys that are no character; every other key is the character it writes."""
PASTED: Final = "\x1b[200~"
"""Begins a key that is a whole pasted text."""


class Opinion(NamedTuple):
    """
    What somebody said of a case, for the eyes of whoever labels it.
    """

    who: str
    labels: tuple[str, ...]
    confidence: Confidence
    note: str = ""


class Task(NamedTuple):
    """
    A case to be labelled.
    """

    case: Case
    opinions: tuple[Opinion, ...] = ()
    """Shown with it; none where it is labelled blindly."""


class Draft(NamedTuple):
    """
    What is about to be said of a case.
    """

    faults: tuple[str, ...] = ()
    is_clean: bool = False
    confidence: Confidence = "high"
    note: str = ""

    @property
    def is_decided(self) -> bool:
        """
        Whether there is anything to save.
        """
        return self.is_clean or bool(self.faults)


class _Past(NamedTuple):
    task: Task
    label: Label | None
    """None where it was skipped."""


def fault_keys(faults: Sequence[str]) -> dict[str, str]:
    """
    Give each fault a key: its first letter, else the first consonant, else any letter of it that is free; the fault by the key.

    Raises `LabError` where there are more faults than letters.
    """
    found: dict[str, str] = {}
    for fault in faults:
        letters = [letter for letter in fault if letter.isalpha()]
        consonants = [letter for letter in letters if letter not in "aeiou"]
        wanted = [letters[0], *consonants, *letters, *"abcdefghijklmnopqrstuvwxyz"]
        free = [letter for letter in wanted if letter not in found and letter not in OTHER_KEYS]
        if not free:
            raise LabError(f"fault {fault!r}: no letter is left that could be its key")
        found[free[0]] = fault
    return found


def tasks(cases: Sequence[Case], labels: Labels, labeller: str, *, blind: bool = False) -> list[Task]:
    """
    Give the cases in their order for one labeller, with what the file itself says of them.

    Nothing is told to whoever is not the first: two who know of each other do not agree, they follow.
    """
    is_blind = blind or any(other != labeller for other in labels.labellers)
    return [Task(case, () if is_blind else _own_opinion(case)) for case in cases]


def differences(cases: Sequence[Case], labels: Labels) -> list[Task]:
    """
    Give the cases of which labellers say different things, with what each of them says.
    """
    return [
        Task(case, tuple(map(_opinion, labels.given(case.id).values()))) for case in cases if labels.differ(case.id)
    ]


class Labelling:
    """
    Goes through tasks that are still to do, and back through those that were done.

    `mode` says where a key goes: to the turn, to the note that is being written, or away from the help.
    """

    def __init__(
        self,
        all_tasks: Sequence[Task],
        said: Sequence[Label],
        labeller: str,
        *,
        keys: Mapping[str, str],
        save: Callable[[Label], None],
        now: Callable[[], str],
        adjudicates: bool = False,
    ) -> None:
        """
        *said* is what this labeller said before, oldest first; *save* keeps a label for good.
        """
        self.labeller: Final = labeller
        self.keys: Final = dict(keys)
        self.adjudicates: Final = adjudicates
        self.mode: Literal["turn", "note", "help"] = "turn"
        self.message = ""
        self.note = ""
        """The note that is being written."""
        self.screen = 0
        """Which screenful of the turn, or of the help, is shown."""
        self.screens = 1
        """How many there are, as the terminal found."""
        self._screen_of_turn = 0
        self.has_quit = False
        self.total: Final = len(all_tasks)
        self.saved = 0
        """Labels that this session saved and did not undo."""
        self.taken_back = 0
        """Labels of sessions before that this one undid."""
        known = {task.case.id: task for task in all_tasks}
        self._past: Final = [_Past(known[label.case], label) for label in said if label.case in known]
        done = {past.task.case.id for past in self._past}
        self._todo: Final = [task for task in all_tasks if task.case.id not in done]
        self._drafts: Final[list[Draft]] = [Draft()]
        """What was drafted of the current case, step by step."""
        self._save_label: Final = save
        self._now: Final = now

    @property
    def task(self) -> Task | None:
        """
        What is to be labelled now; None where nothing is left.
        """
        return self._todo[0] if self._todo else None

    @property
    def draft(self) -> Draft:
        """
        What is about to be said of it.
        """
        return self._drafts[-1]

    @property
    def left(self) -> int:
        """
        How many cases are to do.
        """
        return len(self._todo)

    def press(self, key: str) -> None:
        """
        Do what a key stands for. Raises `LabError` where a label cannot be kept; nothing of it is then forgotten here.
        """
        self.message = ""
        if key.startswith(PASTED):
            self._paste(key.removeprefix(PASTED))
        elif self.mode == "note":
            self._write(key)
        elif self.mode == "help":
            self._read_help(key)
        else:
            self._command(key)

    def _command(self, key: str) -> None:
        anywhere = {"q": self._quit, "u": self._undo, "?": self._help}
        here = {ENTER: self._save, "s": self._skip, "r": self._begin_note, CLEAN_KEY: self._say_clean}
        here |= {" ": self._forward, "b": self._back, PAGE_ON: self._forward, PAGE_BACK: self._back}
        if key in anywhere:
            anywhere[key]()
        elif self.task is None:
            self.message = "nothing is left to label: u takes the last label back, q ends"
        elif key in here:
            here[key]()
        elif key in self.keys:
            self._toggle(self.keys[key])
        elif key in CONFIDENCE_KEYS:
            self._change(self.draft._replace(confidence=CONFIDENCE_KEYS[key]))
        else:
            self.message = "no such key: ? shows them all"

    def _toggle(self, fault: str) -> None:
        named = {*self.draft.faults} ^ {fault}
        faults = tuple(known for known in self.keys.values() if known in named)
        self._change(self.draft._replace(faults=faults, is_clean=False))

    def _say_clean(self) -> None:
        self._change(self.draft._replace(faults=(), is_clean=True))

    def _change(self, draft: Draft) -> None:
        if draft != self.draft:
            self._drafts.append(draft)

    def _save(self) -> None:
        task, draft = self._todo[0], self.draft
        if not draft.is_decided:
            self.message = "nothing is said yet: choose a fault, or n for none"
            return
        label = Label(
            case=task.case.id,
            turn=task.case.turn_hash,
            labeller=self.labeller,
            labels=list(draft.faults),
            confidence=draft.confidence,
            note=draft.note,
            at=self._now(),
            adjudicates=self.adjudicates,
        )
        self._save_label(label)
        self.saved += 1
        self._past.append(_Past(self._todo.pop(0), label))
        self._turn_to(Draft())

    def _skip(self) -> None:
        self._past.append(_Past(self._todo.pop(0), None))
        self._turn_to(Draft())

    def _undo(self) -> None:
        if len(self._drafts) > 1:
            self._drafts.pop()
            return
        if not self._past:
            self.message = "there is nothing to undo"
            return
        task, label = self._past[-1]
        draft = Draft()
        if label is not None:
            self._save_label(label.model_copy(update={"undone": True, "at": self._now()}))
            if self.saved:
                self.saved -= 1
            else:
                self.taken_back += 1
            draft = Draft(tuple(label.labels), not label.labels, label.confidence, label.note)
            self.message = "taken back: it counts again once it is saved"
        self._past.pop()
        self._todo.insert(0, task)
        self._turn_to(draft)

    def _turn_to(self, draft: Draft) -> None:
        self._drafts[:] = [draft]
        self.screen = 0

    def _forward(self) -> None:
        self.screen = min(self.screen + 1, self.screens - 1)

    def _back(self) -> None:
        self.screen = max(self.screen - 1, 0)

    def _help(self) -> None:
        self.mode, self._screen_of_turn, self.screen = "help", self.screen, 0

    def _read_help(self, key: str) -> None:
        if key in (" ", "b", PAGE_ON, PAGE_BACK):
            self._forward() if key in (" ", PAGE_ON) else self._back()
            return
        self.mode, self.screen = "turn", self._screen_of_turn

    def _quit(self) -> None:
        self.has_quit = True

    def _begin_note(self) -> None:
        self.mode, self.note = "note", self.draft.note

    def _write(self, key: str) -> None:
        if key == ENTER:
            self._change(self.draft._replace(note=safe_note(self.note)))
            self.mode = "turn"
        elif key == ESCAPE:
            self.mode = "turn"
        elif key == BACKSPACE:
            self.note = self.note[:-1]
        elif len(key) == 1 and key.isprintable():
            self.note = (self.note + key)[:LONGEST_NOTE]

    def _paste(self, text: str) -> None:
        if self.mode != "note":
            self.message = "pasted text is taken in a note alone: r begins one"
            return
        self.note = (self.note + " ".join(clean(text).split()))[:LONGEST_NOTE]


def safe_note(text: str) -> str:
    """
    Give a note as it may be stored: one line, free of secrets.
    """
    return mask(" ".join(clean(text).split()))[:LONGEST_NOTE]


def _own_opinion(case: Case) -> tuple[Opinion, ...]:
    if case.labels is None:
        return ()
    return (Opinion("the file", tuple(case.labels), case.confidence, case.rationale),)


def _opinion(label: Label) -> Opinion:
    return Opinion(label.labeller, tuple(label.labels), label.confidence, label.note)
