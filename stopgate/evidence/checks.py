"""
Whether a shell command checks work, and whether the check passed: by structure and exit status, never by output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from .check_commands import checks
from .shell import Command, commands
from .wrappers import shell_text, unwrapped

_NEUTRAL: Final = frozenset(
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
_WRITERS: Final = frozenset(["cat", "echo", "printf"])
_DEPTH: Final = 3


class Ran(NamedTuple):
    """
    One check in a command line.
    """

    command: str
    passes_with: bool | None
    """
    What an exit status of 0 says of it: that it passed, or nothing (None), because the line hides its status.
    """
    fails_with: bool | None
    """What another exit status says of it: that it failed (False), or nothing (None)."""


def checks_in(line: str, extra: Sequence[str] = ()) -> list[Ran]:
    """
    The checks that a command line runs, in their order. *extra* are the project's own, as patterns such as `./verify*`.
    """
    return _checks_in(line, extra, _DEPTH)


def _checks_in(line: str, extra: Sequence[str], depth: int) -> list[Ran]:
    found: list[Ran] = []
    parts = commands(line)
    pipefail = any("pipefail" in part.words for part in parts if part.words[:1] == ("set",))
    for index, part in enumerate(parts):
        words = unwrapped(part.words)
        inner = _checks_in(text, extra, depth - 1) if depth and (text := shell_text(words)) else []
        if not inner and not (words and (checks(words) or _is_extra(part.words, words, extra))):
            continue
        shows_success = not part.negated and _shows_success(parts[index:], pipefail=pipefail)
        shows_failure = shows_success and _is_only_suspect(parts, index)
        found.extend(
            Ran(ran.command, ran.passes_with if shows_success else None, ran.fails_with if shows_failure else None)
            for ran in inner or [Ran(" ".join(part.words), passes_with=True, fails_with=False)]
        )
    return found


def passed(ran: Ran, exit_code: int | None) -> bool | None:
    """
    Whether a check passed, by the exit status of its line; None where that cannot be known.
    """
    if exit_code is None:
        return None
    return ran.passes_with if exit_code == 0 else ran.fails_with


def _shows_success(rest: Sequence[Command], *, pipefail: bool) -> bool:
    """
    Whether the line's status is 0 only if its first command's was: nothing behind may put its own in its place.
    """
    for part, following in zip(rest, [*rest[1:], None], strict=True):
        if following is None or part.then == "":
            return part.then != "&"
        if part.then == "&&" or (part.then in ("|", "|&") and pipefail):
            continue
        return part.then == "||" and following.words[:1] in (("exit",), ("return",)) and following.words[1:2] != ("0",)
    return True


def _is_only_suspect(parts: Sequence[Command], index: int) -> bool:
    others = [part.words for position, part in enumerate(parts) if position != index]
    return all(words and words[0] in _NEUTRAL for words in others)


def _is_extra(raw: Sequence[str], words: Sequence[str], extra: Sequence[str]) -> bool:
    if not extra:
        return False
    from fnmatch import fnmatchcase

    texts = (" ".join(raw), " ".join(words))
    return any(fnmatchcase(text, pattern) or text.startswith(f"{pattern} ") for text in texts for pattern in extra)


def edits_in(line: str) -> tuple[bool, tuple[str, ...]]:
    """
    Whether a command line edits files, by structure only, and which it names: redirection, `sed -i`, `tee`, git.
    """
    edits, files = False, list[str]()
    for part in commands(line):
        words = unwrapped(part.words)
        name = words[0] if words else "cat"
        named = _edited_by(name, words[1:], part.writes_to)
        edits = edits or named is not None
        files += named or ()
    return edits, tuple(dict.fromkeys(files))


def _edited_by(name: str, args: Sequence[str], writes_to: Sequence[str]) -> list[str] | None:
    """
    The files that a command edits; None where it edits none.
    """
    plain = [arg for arg in args if not arg.startswith("-")]
    if name in _WRITERS:
        return _kept(writes_to)
    if name == "tee":
        return _kept(plain)
    if name in ("sed", "gsed"):
        in_place = any(arg.startswith(("-i", "--in-place")) for arg in args)
        return (plain if "-e" in args else plain[1:]) if in_place else None
    return [] if name == "patch" or (name == "git" and _git_edits(plain, args)) else None


def _kept(files: Sequence[str]) -> list[str] | None:
    return [file for file in files if not file.startswith(("/dev/", "/tmp/", "&"))] or None  # noqa: S108


def _git_edits(plain: Sequence[str], args: Sequence[str]) -> bool:
    match plain[:2]:
        case ["apply" | "am" | "restore" | "revert", *_]:
            return not {"--check", "--stat", "--staged"}.intersection(args)
        case ["checkout", *_]:
            return "--" in args
        case ["stash", *then]:
            return then[:1] in ([], ["push"], ["pop"], ["apply"])
        case ["reset", *_]:
            return "--hard" in args
        case _:
            return False
