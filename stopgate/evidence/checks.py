"""
Whether a shell command checks work, and whether the check passed: by structure and exit status, never by output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from .check_commands import checks, forces_zero
from .shell import Command, commands
from .wrappers import shell_text, unwrapped

NEUTRAL: Final = frozenset(
    [
        "cd",
        "pushd",
        "popd",
        "export",
        "unset",
        "set",
        "source",
        ".",
        "echo",
        "printf",
        "true",
        ":",
        "pwd",
        "clear",
        "mkdir",
        "ulimit",
        "umask",
        "sleep",
        "tee",
        "tail",
        "head",
        "cat",
        "exit",
        "return",
    ]
)
"""Commands that do not fail in practice: a failed line is not theirs."""
_DEPTH: Final = 3
MOST_COMMANDS: Final = 300
"""Commands of a line that are looked at. Of a longer one it is not known how it came to its status."""


class Ran(NamedTuple):
    """
    One check in a command line.
    """

    command: str
    passes_with: bool | None
    """
    What an exit status of 0 says of it: that it passed, or nothing (None), because the line hides its status or may have left it out.
    """
    fails_with: bool | None
    """What another exit status says of it: that it failed (False), or nothing (None)."""
    position: int = 0
    """Among the commands of the line."""
    is_last: bool = True
    """Of the line: nothing prints behind it."""


def checks_in(line: str, extra: Sequence[str] = ()) -> list[Ran]:
    """
    The checks that a command line runs, in their order. *extra* are the project's own, as patterns such as `./verify*`.
    """
    return _checks_in(line, extra, _DEPTH)


def _checks_in(line: str, extra: Sequence[str], depth: int) -> list[Ran]:
    found: list[Ran] = []
    parts = commands(line)
    is_known = len(parts) <= MOST_COMMANDS
    for index, part in enumerate(parts[:MOST_COMMANDS]):
        words = unwrapped(part.words)
        text = part.assigned or shell_text(words)
        inner = _checks_in(text, extra, depth - 1) if depth and text else []
        if not inner and not (words and (checks(words) or _is_extra(part.words, words, extra))):
            continue
        shows_status = is_known and not part.negated and shows_its_status(parts, index)
        shows_success = shows_status and not part.may_not_run and not may_end_before(parts[:index])
        shows_failure = shows_status and _is_only_suspect(parts, index)
        found.extend(
            Ran(
                ran.command,
                ran.passes_with if shows_success else None,
                ran.fails_with if shows_failure else None,
                index,
                ran.is_last and index == len(parts) - 1,
            )
            for ran in inner or [Ran(" ".join(part.words), None if forces_zero(words) else True, fails_with=False)]
        )
    return found


def passed(ran: Ran, exit_code: int | None) -> bool | None:
    """
    Whether a check passed, by the exit status of its line; None where that cannot be known.
    """
    if exit_code is None:
        return None
    return ran.passes_with if exit_code == 0 else ran.fails_with


def shows_its_status(parts: Sequence[Command], index: int) -> bool:
    """
    Whether the line's status is 0 only if that of the command there was: nothing behind may put its own in its place.
    """
    pipefail = _has_pipefail(parts[:index], parts[index].subshell)
    for position, part in enumerate(parts[index:], start=index):
        following = parts[position + 1] if position + 1 < len(parts) else None
        if following is None or part.then == "":
            return part.then != "&"
        if part.then == "&&" or (part.then in ("|", "|&") and pipefail):
            continue
        if part.then != "||" or not _hands_on_failure(following):
            return False
        # Out of brackets or a pipe, the status goes on as theirs.
        is_enclosed = following.subshell or following.then in ("|", "|&", "&")
        return not is_enclosed or shows_its_status(parts, position + 1)
    return True


def _hands_on_failure(part: Command) -> bool:
    return part.words[:1] in (("exit",), ("return",)) and part.words[1:2] != ("0",)


def _has_pipefail(before: Sequence[Command], subshell: int) -> bool:
    sets = [part for part in before if part.words[:1] == ("set",) and "pipefail" in part.words]
    return bool(sets) and all(
        "+o" not in part.words and not part.may_not_run and part.subshell in (0, subshell) for part in sets
    )


def may_end_before(parts: Sequence[Command]) -> bool:
    """
    Whether the line may have ended well before what follows these commands.
    """
    return any(_may_end_well(part, before) for before, part in zip([None, *parts], parts, strict=False))


def _may_end_well(part: Command, before: Command | None) -> bool:
    name, *args = part.words or ("",)
    if name == "exec":
        return bool(args)
    if name not in ("exit", "return"):
        return False
    if args:
        return not args[0].isdigit() or int(args[0]) % 256 == 0
    # Behind `||` the status that it hands on is that of a failure.
    return before is None or before.then != "||"


def _is_only_suspect(parts: Sequence[Command], index: int) -> bool:
    others = [part.words for position, part in enumerate(parts) if position != index]
    return all(words and words[0] in NEUTRAL for words in others)


def _is_extra(raw: Sequence[str], words: Sequence[str], extra: Sequence[str]) -> bool:
    if not extra:
        return False
    from fnmatch import fnmatchcase

    texts = (" ".join(raw), " ".join(words))
    return any(fnmatchcase(text, pattern) or text.startswith(f"{pattern} ") for text in texts for pattern in extra)
