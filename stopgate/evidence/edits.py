"""
Whether a shell command edits files, by structure only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from .checks import MOST_COMMANDS, NEUTRAL, may_end_before, shows_its_status
from .scratch import is_scratch
from .shell import Command, commands
from .wrappers import unwrapped

_WRITERS: Final = frozenset(["cat", "echo", "printf"])
"""Commands that write what stands in the command itself, or in other files; what another one prints is a log."""
_IN_PLACE_OF_PERL: Final = re.compile(r"-[0-9acflnpsw]*i(?:\.\w+|[lnpw]*[eE]?)")
_SCRIPT_OF_PERL: Final = re.compile(r"-[0-9acfilnpsw]*[eE]")


class Edit(NamedTuple):
    """
    One command of a line that edits files.
    """

    files: tuple[str, ...]
    """As far as the command names them."""
    on_zero: bool
    """Whether it surely ran where the line's exit status is 0."""
    on_other: bool
    """Whether it surely ran, and has not failed by itself, where the status is another."""
    position: int
    """Among the commands of the line."""


def edits_in(line: str, cwd: str = "") -> list[Edit]:
    """
    The commands of a line that edit files.

    Known are what `cat`, `echo` and `printf` write by redirection or through `tee`, a here-document given to `tee`, `sed -i`, `perl -i`,
    `patch`, and the git commands that change the working tree. Scratch files outside *cwd* and those in `/dev` do not count. What may leave
    every file as it was, as a formatter or `git pull` does, is no sure edit.
    """
    parts = commands(line)
    if len(parts) > MOST_COMMANDS:
        return []
    return [
        Edit(files, _ran_on_zero(parts, index), _ran_on_other(parts, index), index)
        for index, part in enumerate(parts)
        if (files := _files_of(part, parts[index - 1] if index else None, cwd)) is not None
    ]


def _files_of(part: Command, fed_by: Command | None, cwd: str) -> tuple[str, ...] | None:
    words = unwrapped(part.words)
    name = words[0] if words else "cat"
    if name == "tee" and not _is_edit(fed_by):
        return None
    named = _edited_by(name, words[1:], part.writes_to)
    kept = tuple(file for file in named or () if not is_scratch(file, cwd))
    return None if named is None or (named and not kept) else kept


def _ran_on_zero(parts: Sequence[Command], index: int) -> bool:
    if parts[index].may_not_run or may_end_before(parts[:index]):
        return False
    return _only_neutral_conditions(parts[:index]) or shows_its_status(parts, index)


def _ran_on_other(parts: Sequence[Command], index: int) -> bool:
    # What follows behind `;` has put its own status in the place of this one's.
    if parts[index].may_not_run or may_end_before(parts[:index]) or parts[index].then not in (";", "\n"):
        return False
    return all(part.then != "&&" for part in parts[:index])


def _only_neutral_conditions(before: Sequence[Command]) -> bool:
    """
    Whether all that stands before a command by `&&`, in its own list, does not fail in practice.
    """
    for part in reversed(before):
        if part.then not in ("&&", "|", "|&"):
            return True
        if part.then == "&&" and part.words[:1] not in {(name,) for name in NEUTRAL}:
            return False
    return True


def _is_edit(fed_by: Command | None) -> bool:
    """
    Whether what `tee` writes is an edit. Behind no pipe it writes a here-document.
    """
    if fed_by is None or fed_by.then not in ("|", "|&"):
        return True
    return unwrapped(fed_by.words)[:1] in {(writer,) for writer in _WRITERS}


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
        return _files_of_sed(args) if in_place else None
    if name == "perl":
        return _files_of_perl(args) if any(map(_IN_PLACE_OF_PERL.fullmatch, args)) else None
    if name == "patch":
        return None if {"--dry-run", "-C", "--check"}.intersection(args) else []
    return [] if name == "git" and _git_edits(plain, args) else None


def _files_of_sed(args: Sequence[str]) -> list[str]:
    # The `-i` of BSD takes a suffix, mostly an empty one, as a word of its own.
    plain = [
        arg
        for before, arg in zip(["", *args], args, strict=False)
        if arg[:1] not in ("", "-") and before not in ("-e", "-f")
    ]
    scripts = any(arg in ("-e", "-f") or arg.startswith(("--expression", "--file")) for arg in args)
    return plain if scripts else plain[1:]


def _files_of_perl(args: Sequence[str]) -> list[str]:
    before = ["", *args]
    return [
        arg
        for option, arg in zip(before, args, strict=False)
        if not arg.startswith("-") and not _SCRIPT_OF_PERL.fullmatch(option)
    ]


def _kept(files: Sequence[str]) -> list[str] | None:
    return [file for file in files if not file.startswith(("/dev/", "&"))] or None


def _git_edits(plain: Sequence[str], args: Sequence[str]) -> bool:
    match plain[:2]:
        case ["apply" | "am" | "restore" | "revert" | "cherry-pick", *_]:
            return not {"--check", "--stat", "--staged", "--abort", "--quit"}.intersection(args)
        case ["mv" | "rm", *_]:
            return not {"-n", "--dry-run", "--cached"}.intersection(args)
        case ["checkout", *_]:
            return "--" in args
        case ["stash", *then]:
            return then[:1] in ([], ["push"], ["pop"], ["apply"])
        case ["reset", *_]:
            return "--hard" in args
        case _:
            return False
