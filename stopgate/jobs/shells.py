"""
One shell process while a command runs in it: its jobs, its variables, its functions and what stands on its standard input.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .shell_tree import Node, Tree

Function = tuple["Node", "Tree"]
"""A function's body, and the tree that it stands in."""


class Value(NamedTuple):
    """
    What is known of a word or a variable.
    """

    text: str = ""
    """Without quotes; expansions stand in it as they are written."""
    is_literal: bool = False
    by_pattern: bool = False
    """It holds process ids that were found by a pattern."""
    jobs: frozenset[int] = frozenset()
    """The jobs of this shell whose process ids it holds."""
    start: int = 0
    """Its place in the command, in bytes."""
    end: int = 0
    is_variable: bool = False
    """It is one variable and nothing else; the text is then the variable's."""


class Input(NamedTuple):
    """
    What a command reads.
    """

    by_pattern: bool = False
    """Process ids that were found by a pattern."""
    text: str | None = None
    """None: not known."""


@dataclass(frozen=True)
class Job:
    """
    A process that was started with `&`.
    """

    number: int
    refuse: Callable[[], None]


@dataclass
class Shell:
    """
    A shell process.
    """

    functions: ChainMap[str, Function] = field(default_factory=ChainMap[str, Function])
    variables: ChainMap[str, Value] = field(default_factory=ChainMap[str, Value])
    stdin: Input = field(default_factory=Input)
    arguments_by_pattern: bool = False
    """Its positional parameters hold process ids that were found by a pattern."""
    jobs: list[Job] = field(default_factory=list[Job])
    """Those that it has not waited for."""
    at_exit: list[Value] = field(default_factory=list[Value])
    """Texts that it runs at its end."""
    gives_pattern_pids: bool = False
    """Its output holds process ids that were found by a pattern."""
    gives_processes: bool = False
    """Its output is a list of processes; whoever filters it selects by a pattern."""
    printed: str | None = None
    """What it prints, where that is known."""

    def subshell(self, stdin: Input | None = None) -> Shell:
        """
        Give a shell process that begins with what this one knows.
        """
        return Shell(
            self.functions.new_child(), self.variables.new_child(), stdin or self.stdin, self.arguments_by_pattern
        )

    @contextmanager
    def reading(self, redirected: Input | None) -> Generator[None]:
        """
        Put something else on its standard input for a while; None leaves what is there.
        """
        before = self.stdin
        self.stdin = redirected or before
        yield
        self.stdin = before

    def wait(self, operands: Iterable[Value]) -> None:
        """
        Wait for jobs: for all without an operand, and where it is not known for which.
        """
        awaited, is_everyone, is_name = set[int](), True, False
        for operand in operands:
            if is_name or operand.text in ("-f", "-p", "--"):
                is_name = operand.text == "-p"
                continue
            is_everyone = False
            if operand.jobs:
                awaited |= operand.jobs
            elif not operand.is_literal or operand.text.startswith("-n"):
                is_everyone = True
                break
            elif operand.text.startswith("%"):
                awaited |= self._named(operand.text[1:])
        if is_everyone or awaited:
            self.jobs = [job for job in self.jobs if not is_everyone and job.number not in awaited]

    def _named(self, name: str) -> set[int]:
        places = {"": slice(-1, None), "%": slice(-1, None), "+": slice(-1, None), "-": slice(-2, -1)}
        place = places.get(name, slice(None))
        if name.isascii() and name.isdecimal():
            place = slice(int(name) - 1, int(name)) if 0 < int(name) <= len(self.jobs) else slice(0, 0)
        return {job.number for job in self.jobs[place]}
