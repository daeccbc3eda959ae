"""
The terminal side of the commands: their parser, what they print and how they complain.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from ..costing.screen import one_line

Commands: TypeAlias = "argparse._SubParsersAction[Any]"  # pyright: ignore[reportPrivateUsage]
"""What a command is added to."""


class CommandError(Exception):
    """
    The command cannot be done as asked; one line that says why.
    """


class CommandDone(Exception):
    """
    The command has said all, and ends with an exit code of its own.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def print_text(text: str) -> None:
    """
    Print a text as far as somebody reads it. Raises `CommandError` where it cannot be written.
    """
    print_while_read(text)


def print_while_read(text: str) -> bool:
    """
    Do the same with a part of a long answer, and say whether there is somebody to read the next one.
    """
    try:
        # Text of unknown origin may hold what the terminal's encoding has not.
        print(_encodable(text), end="", flush=True)
    except BrokenPipeError:
        _stop_writing()  # the reader has had enough
        return False
    except OSError as exc:
        _stop_writing()
        raise CommandError(f"cannot write the answer: {exc.strerror}") from exc
    return True


def warn(text: str) -> None:
    """
    Say one line to the person, beside what is printed.
    """
    print(f"turngate: {one_line(text)}", file=sys.stderr)


def _encodable(text: str) -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _stop_writing() -> None:
    # What is still buffered would fail once more, with a traceback, when Python flushes at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class _Help(argparse.HelpFormatter):
    def add_argument(self, action: argparse.Action) -> None:
        super().add_argument(action)
        # A command stands further to the right than an option: without this the longest one is torn from what it does.
        self._action_max_length += 2 if action.nargs == argparse.PARSER else 0


class Parser(argparse.ArgumentParser):
    """
    A parser whose complaints are one line.
    """

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", _Help)
        super().__init__(**options)

    def print_help(self, file: object = None) -> None:  # noqa: ARG002
        """
        Print the help as any other answer.
        """
        print_text(self.format_help())

    def error(self, message: str) -> NoReturn:
        """
        Say what is wrong, and end with exit code 2.
        """
        self.exit(2, f"{self.prog}: {one_line(message)} (try `{self.prog} --help`)\n")


def add_command(
    commands: Commands,
    name: str,
    command: Callable[..., Any],
    does: str,
    example: str,
) -> argparse.ArgumentParser:
    """
    Add a command that `asked.command` will be; give its parser.
    """
    parser = commands.add_parser(
        name, help=does, description=does[0].upper() + does[1:] + ".", epilog=f"example: {example}"
    )
    parser.set_defaults(command=command)
    return parser


def count_from_one(text: str) -> int:
    """
    Read an argument that is a whole number from 1 up.
    """
    if re.fullmatch("[0-9]{1,18}", text) and int(text):
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 up")
