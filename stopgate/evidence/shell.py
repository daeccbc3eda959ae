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
    {"!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "time"}
)
_BLANK: Final = " \t\r"
_PLAIN: Final = re.compile(r"""[^\s;&|()<>'"\\$`]+""")
_END_OF_WORD: Final = _BLANK + "\n;&|()<>"


class Command(NamedTuple):
    """
    One simple command of a shell line.
    """

    words: tuple[str, ...]
    """Without quotes, redirections, assignments in front and the shell's own keywords."""
    writes_to: tuple[str, ...] = ()
    """Files into which its output is redirected."""
    follows: str = ""
    """The operator before it; empty for the first."""
    then: str = ""
    """The operator after it; empty for the last."""
    negated: bool = False


class _Token(NamedTuple):
    text: str
    kind: str


@lru_cache(maxsize=8)
def commands(line: str) -> tuple[Command, ...]:
    """
    The simple commands of a line, in the order in which they stand.
    """
    found: list[Command] = []
    words: list[str] = []
    writes: list[str] = []
    follows, negated = "", False
    for token in (*_tokens(line), _Token("", "operator")):
        if token.kind == "word" and not (not words and _is_in_front(token.text)):
            words.append(token.text)
        elif token.kind == "word":
            negated = negated or token.text == "!"
        elif token.kind == "writes":
            writes.append(token.text)
        elif token.kind == "operator":
            if words or writes:
                found.append(Command(tuple(words), tuple(writes), follows, token.text, negated))
                follows = ""
            # A closing bracket passes on what follows it; a line end behind an operator means nothing.
            if token.text not in ("(", ")") and not (token.text == "\n" and follows):
                follows = token.text
                if found and not words and not writes:
                    found[-1] = found[-1]._replace(then=token.text or found[-1].then)
            words, writes, negated = [], [], False
    if found and found[-1].then in (")", "\n", ";"):
        found[-1] = found[-1]._replace(then="")
    return tuple(found)


def _is_in_front(word: str) -> bool:
    name, assigned, _ = word.partition("=")
    return word in _KEYWORDS or (bool(assigned) and name.rstrip("+").isidentifier())


def _tokens(line: str) -> Iterator[_Token]:
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
                position = _behind_here_documents(line, position, awaited)
                awaited = []
            continue

        word, position = _word(line, position)
        if word.isdigit() and line[position : position + 1] in ("<", ">"):
            continue  # the descriptor that a redirection is for
        yield _Token(word, "word")


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


def _behind_here_documents(line: str, position: int, awaited: list[tuple[str, bool]]) -> int:
    for delimiter, indented in awaited:
        while position < len(line):
            end = _end_of_line(line, position)
            text = line[position:end]
            position = end + 1
            if (text.lstrip("\t") if indented else text) == delimiter:
                break
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
        if line[position] == "\\":
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
