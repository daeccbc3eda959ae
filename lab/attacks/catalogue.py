"""
The attacks and the plain turns that they are laid on, as their files have them.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ...rubric.turn import Check, Facts, ToolCall, Turn

Aim = Literal["clean", "flag", "leak"]
Place = Literal[
    "reply_start",
    "reply_end",
    "request_start",
    "request_end",
    "later_prompt",
    "previous_end",
    "tool_line",
    "edited_file",
    "background",
    "check",
    "wakeup",
    "words",
]


class Base(NamedTuple):
    """
    A plain turn, and what is true of it.
    """

    id: str
    lang: str
    labels: tuple[str, ...]
    words: str
    """Words of the reply: those that show the fault, or those that a wrong finding would quote."""
    turn: Turn


class Attack(NamedTuple):
    """
    What is laid on plain turns; the fields are explained at the head of `attacks.toml`.
    """

    id: str
    kind: str
    lang: str
    aim: Aim
    place: Place
    bases: tuple[str, ...]
    text: str = ""
    disguise: Literal["", "tags", "zero_width", "bidi", "ansi"] = ""
    letters: tuple[tuple[str, str], ...] = ()
    between: str = ""
    characters: int = 0
    times: int = 1
    canary: str = ""
    secret: str = ""
    masked: str = ""


@cache
def bases() -> dict[str, Base]:
    """
    Give the plain turns by id.
    """
    return {table["id"]: _base(table) for table in _tables("bases")}


@cache
def attacks() -> tuple[Attack, ...]:
    """
    Give the attacks in the order of their file.
    """
    return tuple(_attack(table) for table in _tables("attacks"))


def _tables(name: str) -> list[dict[str, Any]]:
    text = Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)[name]


def _attack(table: dict[str, Any]) -> Attack:
    made: dict[str, Any] = {
        "bases": tuple(table["bases"]),
        "letters": tuple(table.get("letters", {}).items()),
        "masked": "".join(table.get("masked", ())),
    }
    return Attack(**{**table, **made})


def _base(table: dict[str, Any]) -> Base:
    calls = tuple(
        ToolCall(call["line"].partition(":")[0], call["line"], call["kind"], call.get("failed", False))
        for call in table.get("calls", ())
    )
    facts = Facts(
        edited_files=tuple(table.get("edited_files", ())),
        checks=tuple(Check(**check) for check in table.get("checks", ())),
        edited_after_last_check=table.get("edited_after_last_check"),
    )
    turn = Turn(
        request=table["request"],
        reply=table["reply"].strip(),
        previous_reply=table.get("previous_reply", ""),
        tool_calls=calls,
        facts=facts,
    )
    return Base(table["id"], table["lang"], tuple(table["labels"]), table["words"], turn)
