"""
What the programs of a command do, as far as this check has to know: start processes, wait for them, stop them, or run texts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..evidence.wrappers import SHELLS, layers, shell_text
from .kills import gives_pattern_pids, kills_by_pattern, lists_processes
from .shells import Shell, Value

if TYPE_CHECKING:
    from .shell_tree import Node
    from .walk import Walk

_DETACHERS: Final = ("nohup", "setsid", "disown")
_READERS: Final = ("read", "mapfile", "readarray")
_OWN: Final = frozenset({"command", "builtin", "time"})
"""Behind these it is still the shell itself that runs `wait`."""
_FED: Final = ("xargs", "parallel")
"""They hand on what they read as operands."""
_EXEC: Final = ("-exec", "-execdir", "-ok", "-okdir")
_EXEC_ENDS: Final = (";", "+")
_MOST_WRAPPERS: Final = 16
_COMMAND_OPTION: Final = re.compile(r"(?:-[a-z]*c|--command=?)(?P<value>.*)", re.DOTALL)
_SPLIT_OPTION: Final = re.compile(r"(?:-[a-z]*S|--split-string=?)(?P<value>.*)", re.DOTALL)
_SHORT_B: Final = re.compile(r"-[A-Za-z]*b[A-Za-z]*\Z")
_INFORMS: Final = ("--help", "--version", "-h", "-V")


class Program(NamedTuple):
    """
    A program with its operands: the one that a command names, or one that a wrapper of it runs.
    """

    name: str
    """Without its folder."""
    words: Sequence[Value]
    node: Node
    wrappers: tuple[str, ...] = ()

    @property
    def operands(self) -> Sequence[Value]:
        """
        All words behind its name, the options too.
        """
        return self.words[1:]

    @property
    def texts(self) -> tuple[str, ...]:
        """
        The operands' texts.
        """
        return tuple(word.text for word in self.operands)

    @property
    def start(self) -> int:
        """
        Its place in the command, in bytes.
        """
        return self.words[0].start

    @property
    def is_builtin(self) -> bool:
        """
        Whether the shell itself runs it, where it has such a command.
        """
        return "/" not in self.words[0].text and _OWN.issuperset(self.wrappers)


def programs_in(words: Sequence[Value], node: Node, wrappers: tuple[str, ...] = ()) -> Iterator[Program]:
    """
    Give the program that a command names, and those that its wrappers run, from the outside in.
    """
    if len(wrappers) > _MOST_WRAPPERS:
        return
    for layer in layers(tuple(word.text for word in words)):
        program = Program(layer[0], words[len(words) - len(layer) :], node, wrappers)
        yield program
        if layer[0] == "find":
            yield from _found_by_find(program)
        wrappers = (*wrappers, layer[0])


def _found_by_find(program: Program) -> Iterator[Program]:
    inner: list[Value] | None = None
    for word in program.words:
        if inner is None:
            inner = [] if word.text in _EXEC else None
        elif word.text in _EXEC_ENDS:
            yield from programs_in(inner, program.node, (*program.wrappers, "find"))
            inner = None
        else:
            inner.append(word)


def take_in(walk: Walk, program: Program, shell: Shell) -> None:
    """
    Take in what a program does in a shell.
    """
    name = program.name
    fed = shell.stdin.by_pattern and any(wrapper in _FED for wrapper in program.wrappers)
    if kills_by_pattern(name, program.operands, fed_by_pattern=fed):
        walk.refuse("pattern", program.node)
    elif name in _DETACHERS or _sudo_in_background(program):
        _detached(walk, program)
    elif name == "coproc":
        walk.add_job(program.node, shell, "coproc")
    elif name in _BUILTINS and program.is_builtin:
        _BUILTINS[name](walk, program, shell)
    elif name in SHELLS:
        _run_shell(walk, program, shell, fed=fed)
    elif text := _given_text(program):
        child = shell.subshell()
        child.arguments_by_pattern = fed or shell.stdin.by_pattern
        walk.run_text(text, child, program.start, own_shell=True)
    _note_output(program, shell)


def _wait(_walk: Walk, program: Program, shell: Shell) -> None:
    shell.wait(program.operands)


def _eval(walk: Walk, program: Program, shell: Shell) -> None:
    walk.run_text(" ".join(program.texts), shell, program.start, own_shell=False)


def _trap(_walk: Walk, program: Program, shell: Shell) -> None:
    shell.at_exit.extend([word for word in program.operands if word.text != "--"][:1])


def _read(_walk: Walk, program: Program, shell: Shell) -> None:
    for word in program.operands:
        if word.is_literal and word.text.isidentifier():
            shell.variables[word.text] = Value(by_pattern=shell.stdin.by_pattern)


def _set(_walk: Walk, program: Program, shell: Shell) -> None:
    if "--" in program.texts:
        shell.arguments_by_pattern = any(word.by_pattern for word in program.operands)


_BUILTINS: Final = {
    "set": _set,
    "wait": _wait,
    "eval": _eval,
    "trap": _trap,
    **dict.fromkeys(_READERS, _read),
}


def _sudo_in_background(program: Program) -> bool:
    return program.name == "sudo" and _background_option(program) is not None


def _background_option(program: Program) -> Value | None:
    inner = layers(tuple(word.text for word in program.words))[1:2]
    options = program.operands[: len(program.operands) - len(inner[0])] if inner else ()
    return next((word for word in options if word.text == "--background" or _SHORT_B.match(word.text)), None)


def _options(program: Program) -> Iterator[str]:
    for text in program.texts:
        if not text.startswith(("-", "+")):
            return
        yield text


def _detached(walk: Walk, program: Program) -> None:
    if len(program.texts) == 1 and program.texts[0] in _INFORMS:
        return
    statement, inner = _statement(program.node), layers(tuple(word.text for word in program.words))[1:2]
    if program.name == "disown":
        walk.refuse("detached", statement)
        return
    if not inner:
        return
    start, end = program.start, program.words[len(program.words) - len(inner[0])].start
    if option := _background_option(program) if program.name == "sudo" else None:
        start, end = option.start, option.end + 1
    walk.detachers.append((start, end))
    own = list(itertools.takewhile(lambda taken: taken[0] >= statement.start_byte, reversed(walk.detachers)))
    # What a combined option such as `-nb` says beside is not taken apart.
    is_known = program.name != "sudo" or (option is not None and option.text in ("-b", "--background"))
    walk.refuse("detached", statement, walk.proposed(statement, own) if is_known else "")


def _statement(node: Node) -> Node:
    """
    Give the command with its redirections.
    """
    parent = node.parent
    if parent is not None and parent.type == "redirected_statement":
        body = parent.child_by_field_name("body")
        return parent if body is not None and body.id == node.id else node
    return node


def _run_shell(walk: Walk, program: Program, shell: Shell, *, fed: bool) -> None:
    text = shell_text((program.name, *program.texts))
    by_pattern = fed or any(word.by_pattern for word in program.operands)
    # What stands in double quotes was put in by the outer shell.
    child = Shell(variables=shell.variables.new_child(), stdin=shell.stdin, arguments_by_pattern=by_pattern)
    if not text and shell.stdin.text is not None and not _has_script(program):
        text = shell.stdin.text
    walk.run_text(text, child, program.start, own_shell=True)
    shell.gives_pattern_pids = shell.gives_pattern_pids or child.gives_pattern_pids


def _has_script(program: Program) -> bool:
    options = list(_options(program))
    return len(options) < len(program.texts) and "-s" not in options


def _given_text(program: Program) -> str:
    """
    Give the text that a program other than a shell hands to one; empty where there is none.
    """
    name, texts = program.name, program.texts
    if name in ("su", "script", "runuser", "flock"):
        return _behind_option(texts, _COMMAND_OPTION)
    if name == "watch":
        return " ".join(_behind_options(texts, with_value=("-n", "--interval")))
    if name == "parallel":
        return next((text for text in texts if " " in text), "")
    return _behind_option(texts, _SPLIT_OPTION) if name == "env" else ""


def _behind_option(texts: Sequence[str], option: re.Pattern[str]) -> str:
    """
    Give an option's value, which stands behind it or is part of the same word.
    """
    for text, following in zip(texts, (*texts[1:], ""), strict=False):
        if found := option.match(text):
            return found["value"] or following
    return ""


def _behind_options(texts: Sequence[str], *, with_value: Sequence[str]) -> Sequence[str]:
    position = 0
    while position < len(texts) and texts[position].startswith("-"):
        position += 1 + (texts[position] in with_value)
    return texts[position:]


def _note_output(program: Program, shell: Shell) -> None:
    name = program.name
    shell.gives_pattern_pids = shell.gives_pattern_pids or gives_pattern_pids(name, program.operands)
    shell.gives_processes = shell.gives_processes or lists_processes(name, program.operands)
    if name in ("echo", "printf"):
        text = " ".join(text for text in program.texts if not text.startswith("-"))
        shell.printed = text.replace("\\n", "\n")
    elif name == "cat" and set(program.texts) <= {"-"}:
        shell.printed = shell.stdin.text
