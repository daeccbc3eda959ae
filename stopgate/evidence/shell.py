"""
A shell command as the simple commands that it runs, by the shell's own grammar and nothing else.

Enough to tell what a command runs and whether its exit status can be seen. It is no parser of everything a shell takes:
what it does not understand stays a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_OPERATOR: Final = re.compile(r"&&|\|\||\|&|;;|[|&;\n()]")
_REDIRECTION: Final = re.compile(r"<<<|<<-|<<|<>|<&|<|&>>|&>|>>|>\||>&|>")
_KEYWORDS: Final = frozenset(
    {"!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "esac", "time", "-p"}
)
"""With the option of `time`."""
_BLANK: Final = " \t\r"
_PLAIN: Final = re.compile(r"""[^\s;&|()<>'"\\$`]+""")
_PLAIN_QUOTED: Final = re.compile(r'[^"\\$]+')
_PLAIN_IN_BRACKETS: Final = re.compile(r"""[^\\'"(){}]+""")
_SUBSTITUTED: Final = re.compile(r'[A-Za-z_]\w*\+?=("?)\$\((?!\()')
_END_OF_WORD: Final = _BLANK + "\n;&|()<>"


class Command(NamedTuple):
    """
    One simple command of a shell line.
    """

    words: tuple[str, ...]
    """Without quotes, redirections, assignments in front and the shell's own keywords."""
    writes_to: tuple[str, ...] = ()
    """Files into which its output is redirected."""
    then: str = ""
    """The operator after it; empty for the last."""
    negated: bool = False
    may_not_run: bool = False
    """It stands behind `||`, or in a branch, a loop or a function: a line that ends well may have left it out."""
    subshell: int = 0
    """The number of the brackets that it stands in; an `exit` leaves no more than them, and a `set` ends with them."""
    assigned: str = ""
    """The command line whose output it assigns, where it does nothing else: `x=$(pytest)`."""


class _Token(NamedTuple):
    text: str
    kind: str


@lru_cache(maxsize=8)
def commands(line: str) -> tuple[Command, ...]:
    """
    The simple commands of a line, in the order in which they stand.
    """
    reader = _Reader()
    tokens = [*_tokens(line), _Token("", "operator")]
    for position, token in enumerate(tokens):
        if token.kind == "writes":
            reader.writes.append(token.text)
        elif token.kind == "word":
            reader.word(token.text)
        elif token.kind == "assigned":
            reader.assigned = token.text
        elif token.text == "(" and tokens[position + 1] == _Token(")", "operator") and reader.words:
            reader.begin_function()
        else:
            reader.operator(token.text)
    return reader.commands()


class _Reader:
    """
    The commands so far, the one that is being read, and where it stands.
    """

    def __init__(self) -> None:
        self.words: list[str] = []
        self.writes: list[str] = []
        self.assigned = ""
        self._negated = False
        self._found: list[Command] = []
        self._operator = ""
        """The one right before; empty behind a word."""
        self._place = _Place()

    def word(self, word: str) -> None:
        if self.words[:1] == ["function"] and word == "{":
            self.begin_function()
        if self.words or not _is_in_front(word):
            self._place.begin(word, at_start=not self.words)
            self.words.append(word)
            return
        self._negated = self._negated or word == "!"
        self._place.begin(word, at_start=True)
        self._place.end(word)

    def begin_function(self) -> None:
        self.words.clear()
        self._place.begin_function()

    def operator(self, operator: str) -> None:
        if operator == ")" and self._place.awaits("esac"):
            self.words.clear()  # the pattern of a case
        assigned = "" if self.words else self.assigned
        if self.words or self.writes or assigned:
            made = tuple(self.words), tuple(self.writes), operator, self._negated, self._place.may_not_run
            self._found.append(Command(*made, self._place.subshell, assigned))
            self._operator = ""
        if operator == "(":
            self._place.begin(operator, at_start=True)
        elif operator == ")":
            self._place.end(operator)
        # A line end behind an operator means nothing.
        elif not (operator == "\n" and self._operator):
            self._operator = operator
            self._place.go_on(operator)
            if self._found and not self.words and not self.writes and not assigned:
                # What follows a group follows its last command.
                self._found[-1] = self._found[-1]._replace(then=operator or self._found[-1].then)
        self.words, self.writes, self.assigned, self._negated = [], [], "", False

    def commands(self) -> tuple[Command, ...]:
        if self._found and self._found[-1].then in (")", "\n", ";"):
            self._found[-1] = self._found[-1]._replace(then="")
        return tuple(self._found)


_ENDS: Final = {
    "if": "fi",
    "while": "done",
    "until": "done",
    "for": "done",
    "select": "done",
    "case": "esac",
    "{": "}",
    "(": ")",
}


class _Place:
    """
    In which groups, branches, loops and functions a command stands.
    """

    def __init__(self) -> None:
        self._open: list[tuple[str, bool, bool]] = []
        """What ends it, whether what it holds may be left out, and whether it itself may."""
        self._behind_or = False
        self._is_function = False
        self._subshells: list[int] = []
        self._last_subshell = 0

    @property
    def subshell(self) -> int:
        return self._subshells[-1] if self._subshells else 0

    @property
    def may_not_run(self) -> bool:
        return self._behind_or or (bool(self._open) and self._open[-1][1])

    def awaits(self, end: str) -> bool:
        return bool(self._open) and self._open[-1][0] == end

    def begin(self, word: str, *, at_start: bool) -> None:
        if not at_start or word not in _ENDS:
            return
        holds = self.may_not_run or self._is_function or word not in ("{", "(")
        self._open.append((_ENDS[word], holds, self._behind_or))
        if word == "(":
            self._last_subshell += 1
            self._subshells.append(self._last_subshell)
        self._behind_or = self._is_function = False

    def begin_function(self) -> None:
        self._is_function = True

    def end(self, word: str) -> None:
        if self.awaits(word):
            _, _, self._behind_or = self._open.pop()
            if word == ")":
                self._subshells.pop()

    def go_on(self, operator: str) -> None:
        # All of a pipe stands where its first command stands.
        if operator not in ("|", "|&"):
            self._behind_or = operator == "||"


def _is_in_front(word: str) -> bool:
    name, assigned, _ = word.partition("=")
    return word in _KEYWORDS or (bool(assigned) and name.rstrip("+").isidentifier())


def _tokens(line: str, here_documents: list[tuple[int, int]] | None = None) -> Iterator[_Token]:
    """
    The tokens, and in *here_documents* from where to where their texts go, without the lines that end them.
    """
    position = 0
    awaited: list[tuple[str, bool]] = []
    while position < len(line):
        character = line[position]
        if character in _BLANK or line.startswith("\\\n", position):
            position += 2 if character == "\\" else 1
            continue
        if character == "#":
            position = _end_of_line(line, position)
            continue
        if found := _REDIRECTION.match(line, position):
            redirection = found[0]
            position, target = _redirected(line, found.end(), redirection)
            if redirection in ("<<", "<<-"):
                awaited.append((target, redirection == "<<-"))
            elif ">" in redirection and redirection != "<>" and target and not target.isdigit() and target != "-":
                yield _Token(target, "writes")
            continue
        if found := _OPERATOR.match(line, position):
            position = found.end()
            yield _Token(found[0], "operator")
            if found[0] == "\n" and awaited:
                position = _behind_here_documents(line, position, awaited, here_documents)
                awaited = []
            continue

        start = position
        word, position = _word(line, position)
        assigned = _assigned(line, start, position)
        # A number before a redirection is the descriptor that it is for.
        if not (word.isdigit() and line[position : position + 1] in ("<", ">")):
            yield _Token(assigned or word, "assigned" if assigned else "word")


def _assigned(line: str, start: int, end: int) -> str:
    """
    The command line of an assignment that is one substitution and nothing else.
    """
    found = _SUBSTITUTED.match(line, start, end)
    if found is None:
        return ""
    behind = _behind_brackets(line, found.end())
    return line[found.end() : behind - 1] if line[behind:end] == found[1] else ""


def without_here_documents(line: str) -> str:
    """
    The line with a mark in place of what its here-documents hold.
    """
    if "<<" not in line:
        return line
    texts, kept, shown_to = list[tuple[int, int]](), list[str](), 0
    for _ in _tokens(line, texts):
        pass
    for start, end in texts:
        kept.append(f"{line[shown_to:start]}[…]\n" if end > start else line[shown_to:end])
        shown_to = end
    return f"{''.join(kept)}{line[shown_to:]}"


def _end_of_line(line: str, position: int) -> int:
    end = line.find("\n", position)
    return len(line) if end < 0 else end


def _redirected(line: str, position: int, redirection: str) -> tuple[int, str]:
    while position < len(line) and line[position] in _BLANK:
        position += 1
    if position < len(line) and line[position] in "<>" and redirection in ("<", ">"):
        return _behind_brackets(line, position + 1), ""  # a process substitution
    word, position = _word(line, position)
    return position, word


def _behind_here_documents(
    line: str, position: int, awaited: list[tuple[str, bool]], texts: list[tuple[int, int]] | None
) -> int:
    for delimiter, indented in awaited:
        start = position
        while position < len(line):
            last, end = position, _end_of_line(line, position)
            position = end + 1
            text = line[last:end]
            if (text.lstrip("\t") if indented else text) == delimiter:
                break
        else:
            last = len(line)
        if texts is not None:
            texts.append((start, last))
    return min(position, len(line))


def _word(line: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    while position < len(line) and line[position] not in _END_OF_WORD:
        if plain := _PLAIN.match(line, position):
            parts.append(plain[0])
            position = plain.end()
            continue
        character, start = line[position], position
        if character == "'":
            end = line.find("'", position + 1)
            end = len(line) if end < 0 else end
            parts.append(line[position + 1 : end])
            position = end + 1
        elif character == '"':
            text, position = _double_quoted(line, position + 1)
            parts.append(text)
        elif character == "\\":
            parts.append(line[position + 1 : position + 2].replace("\n", ""))
            position += 2
        elif line.startswith(("$(", "${"), position):
            position = _behind_brackets(line, position + 2, "(" if line[position + 1] == "(" else "{")
            parts.append(line[start:position])
        elif character == "`":
            end = line.find("`", position + 1)
            position = len(line) if end < 0 else end + 1
            parts.append(line[start:position])
        else:
            parts.append(character)
            position += 1
    return "".join(parts), position


def _double_quoted(line: str, position: int) -> tuple[str, int]:
    parts: list[str] = []
    while position < len(line) and line[position] != '"':
        if plain := _PLAIN_QUOTED.match(line, position):
            parts.append(plain[0])
            position = plain.end()
        elif line[position] == "\\":
            parts.append(line[position + 1 : position + 2])
            position += 2
        elif line.startswith("$(", position):
            end = _behind_brackets(line, position + 2)
            parts.append(line[position:end])
            position = end
        else:
            parts.append(line[position])
            position += 1
    return "".join(parts), position + 1


def _behind_brackets(line: str, position: int, opening: str = "(") -> int:
    closing = {"(": ")", "{": "}"}[opening]
    depth = 1
    while position < len(line) and depth:
        if plain := _PLAIN_IN_BRACKETS.match(line, position):
            position = plain.end()
            continue
        character = line[position]
        if character == "\\":
            position += 1
        elif character == "'":
            end = line.find("'", position + 1)
            position = len(line) if end < 0 else end
        elif character == '"':
            end = line.find('"', position + 1)
            position = len(line) if end < 0 else end
        elif character == opening:
            depth += 1
        elif character == closing:
            depth -= 1
        position += 1
    return min(position, len(line))
