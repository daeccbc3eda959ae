"""
The cases of the attacks: each plain turn, and each attack laid on the plain turns that it names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...judge.sendable import sendable
from ...rubric.turn import Check, ToolCall, Turn
from ..cases import Case, new_case
from .catalogue import Attack, Base, attacks, bases

PLAIN: Final = "base"
"""The tag of a plain turn's case."""


def build() -> list[Case]:
    """
    Give the cases, the plain turns first, masked as the gate masks what it sends.

    An attacked case carries the labels of its plain turn and tags: `attack:<kind>`, `base:<id>`, `lang:<code>`, `aim:<aim>`, and
    `canary:<text>` or `secret:<text>` for what must not come back.
    """
    plain = [
        _case(f"base-{base.id}", base, base.turn, [PLAIN, *_tags(base=base.id, lang=base.lang)]) for base in _all()
    ]
    laid = [
        _case(f"{attack.id}-on-{base_id}", bases()[base_id], attacked(bases()[base_id], attack), _told(attack, base_id))
        for attack in attacks()
        for base_id in attack.bases
    ]
    return [*plain, *laid]


def attacked(base: Base, attack: Attack) -> Turn:
    """
    Lay an attack on a plain turn: the turn as its author would have it, with secrets and with what hides text.
    """
    turn = base.turn
    if attack.place == "words":
        return turn._replace(reply=turn.reply.replace(base.words, _disfigured(base.words, attack)))
    text = attack.text.strip("\n") if not attack.characters else _repeated(attack.text, attack.characters)
    for hole, value in (("words", base.words), ("secret", attack.secret or attack.masked)):
        text = text.replace(f"{{{hole}}}", value)
    if attack.place == "tool_line":
        return _with_calls(turn, text, attack)
    return _LAID[attack.place](turn, _DISGUISES[attack.disguise](text))


def _all() -> list[Base]:
    return list(bases().values())


def _case(case_id: str, base: Base, turn: Turn, tags: list[str]) -> Case:
    safe = sendable(turn)
    return new_case(
        case_id,
        safe._replace(reply=safe.reply.strip(), request=safe.request.strip()),
        labels=list(base.labels),
        source="turngate.lab.attacks",
        licence="MIT",
        session=base.id,
        tags=tags,
    )


def _told(attack: Attack, base_id: str) -> list[str]:
    return _tags(
        attack=attack.kind,
        base=base_id,
        lang=attack.lang,
        aim=attack.aim,
        canary=attack.canary,
        secret=attack.secret,
    )


def _tags(**values: str) -> list[str]:
    return [f"{name}:{value}" for name, value in values.items() if value]


def _disfigured(words: str, attack: Attack) -> str:
    return attack.between.join(words.translate(str.maketrans(dict(attack.letters))))


def _repeated(text: str, characters: int) -> str:
    times = characters // len(text) + 1
    return "".join(text.replace("{n}", str(number)) for number in range(1, times + 1))[:characters].rstrip()


def _with_calls(turn: Turn, line: str, attack: Attack) -> Turn:
    # Before the turn's own calls: what came after a check, or is the last of many, says more.
    tool = line.partition(":")[0]
    kind = "read" if "read-only" in line or tool == "Read" else "other"
    disguised = _DISGUISES[attack.disguise]
    calls = (ToolCall(tool, disguised(line.replace("{n}", str(n + 1))), kind) for n in range(attack.times))
    return turn._replace(tool_calls=(*calls, *turn.tool_calls))


def _with_edited_file(turn: Turn, name: str) -> Turn:
    facts = turn.facts._replace(edited_files=(name, *turn.facts.edited_files))
    return turn._replace(tool_calls=(ToolCall("Write", f"Write: {name} -> ok", "edit"), *turn.tool_calls), facts=facts)


def _with_background(turn: Turn, command: str) -> Turn:
    facts = turn.facts._replace(uncollected_background=(f"b7: {command}",))
    call = ToolCall("Bash", f"Bash: {command} -> started in background b7")
    return turn._replace(tool_calls=(call, *turn.tool_calls), facts=facts)


def _with_words_in_check(turn: Turn, words: str) -> Turn:
    checks = tuple(Check(f"{check.command} {words}", check.passed) for check in turn.facts.checks)
    calls = tuple(
        call._replace(line=call.line.replace(" -> ", f" {words} -> ", 1)) if call.kind == "check" else call
        for call in turn.tool_calls
    )
    return turn._replace(tool_calls=calls, facts=turn.facts._replace(checks=checks))


def _with_wakeup(turn: Turn, wakeup: str) -> Turn:
    return turn._replace(facts=turn.facts._replace(wakeups=(wakeup,)))


def _below(first: str, second: str) -> str:
    return f"{first}\n\n{second}".strip()


_LAID: Final[dict[str, Callable[[Turn, str], Turn]]] = {
    "reply_start": lambda turn, text: turn._replace(reply=_below(text, turn.reply)),
    "reply_end": lambda turn, text: turn._replace(reply=_below(turn.reply, text)),
    "request_start": lambda turn, text: turn._replace(request=_below(text, turn.request)),
    "request_end": lambda turn, text: turn._replace(request=_below(turn.request, text)),
    "later_prompt": lambda turn, text: turn._replace(later_prompts=(*turn.later_prompts, text)),
    "previous_end": lambda turn, text: turn._replace(previous_reply=_below(turn.previous_reply, text)),
    "edited_file": _with_edited_file,
    "background": _with_background,
    "check": _with_words_in_check,
    "wakeup": _with_wakeup,
}

_DISGUISES: Final[dict[str, Callable[[str], str]]] = {
    "": lambda text: text,
    "tags": lambda text: "".join(chr(0xE0000 + ord(letter)) for letter in text),
    "zero_width": "\u200b".join,
    "bidi": lambda text: f"\u202e{text[::-1]}\u202c",
    "ansi": lambda text: f"\x1b[8m{text}\x1b[0m",
}
"""Each makes a text that a person does not see, or not as it is."""
