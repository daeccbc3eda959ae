"""
Here-documents set aside: the command with a plain redirection of the same length in place of each, and their texts.

tree-sitter-bash loses its place where anything follows the start of a here-document on its line (`cat <<EOF &`), and does not see
backticks in one. Without here-documents it does neither.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    rb"""
    \\(?s:.)
    | '[^']*' | \$'(?:\\(?s:.)|[^'\\])*' | "
    | \$\(\( | \$\( | \$\{ | [<>]\( | \(\( | \( | \)\) | \) | \} | ` | <<<
    | (?P<start><<-?[ \t]*(?:\\\n[ \t]*)*(?P<word>(?:\\(?s:.)|'[^']*'|"(?:\\(?s:.)|[^"\\])*"|[^\s;&|<>()'"\\`])+))
    | (?:(?<=[\s;&|(){}])|\A)\#[^\n]*
    | \n
    """,
    re.VERBOSE,
)
_QUOTING: Final = re.compile(rb"""\\(.)|['"]""")
_OPENED: Final = {b"$(": b"command", b"$((": b"arithmetic", b"${": b"parameter", b'"': b"quotes"}
_NOT_LINE_END: Final = re.compile(rb"[^\n]")


class HereDocument(NamedTuple):
    """
    One here-document, by its places in the command.
    """

    at: int
    """Where its `<<` begins."""
    text: bytes
    """What it holds, without the line that ends it."""
    is_literal: bool
    """Its word is quoted, so the shell expands nothing in it."""


def set_aside(command: bytes) -> tuple[bytes, tuple[HereDocument, ...]]:
    """
    Give the command without its here-documents, byte for byte in the same places, and what they hold.
    """
    if b"<<" not in command:
        return command, ()
    reader = _Reader(command)
    reader.read()
    return bytes(reader.kept), tuple(reader.found)


class _Awaited(NamedTuple):
    at: int
    word_at: int
    word_end: int
    is_indented: bool


class _Reader:
    """
    Where in quotes, substitutions and brackets the reading stands.
    """

    def __init__(self, command: bytes) -> None:
        self.kept: Final = bytearray(command)
        self.found: Final[list[HereDocument]] = []
        self._command: Final = command
        self._open: Final[list[bytes]] = []
        self._awaited: list[_Awaited] = []
        self._position = 0

    def read(self) -> None:
        while token := _TOKEN.search(self._command, self._position):
            self._position = token.end()
            place = self._open[-1] if self._open else b"command"
            if place == b"quotes":
                self._in_quotes(token)
            elif place == b"parameter":
                self._in_parameter(token)
            elif place in (b"arithmetic", b"brackets"):
                self._in_arithmetic(token)
            else:
                self._in_command(token)

    def _in_quotes(self, token: re.Match[bytes]) -> None:
        text = token[0]
        if text == b'"':
            self._open.pop()
        elif text in _OPENED:
            self._open.append(_OPENED[text])
        elif text == b"`":
            self._backtick()
        elif text[:1] != b"\\":
            self._go_on_behind(token, 1)

    def _in_parameter(self, token: re.Match[bytes]) -> None:
        text = token[0]
        if text == b"}":
            self._open.pop()
        elif text in _OPENED:
            self._open.append(_OPENED[text])
        elif text[:1] not in b"\\'$":
            self._go_on_behind(token, 1)

    def _in_arithmetic(self, token: re.Match[bytes]) -> None:
        text = token[0]
        if text == b"))" and self._open[-1] == b"arithmetic":
            self._open.pop()
        elif text in (b"$(", b"$((", b"${", b'"'):
            self._open.append(_OPENED[text])
        elif text[:1] == b"(":
            self._open.append(b"brackets")
            self._go_on_behind(token, 1)
        elif text[:1] == b")":
            if self._open[-1] == b"brackets":
                self._open.pop()
            self._go_on_behind(token, 1)
        elif token["start"]:
            self._go_on_behind(token, 2)  # a shift
        elif text[:1] in b"#<>":
            self._go_on_behind(token, 1)

    def _in_command(self, token: re.Match[bytes]) -> None:
        text = token[0]
        if text in _OPENED:
            self._open.append(_OPENED[text])
        elif text == b"((":
            self._open.append(b"arithmetic")
        elif text in (b"<(", b">(", b"("):
            self._open.append(b"command")
        elif text[:1] == b")":
            self._go_on_behind(token, 1)
            if self._open and self._open[-1] == b"command":
                self._open.pop()
        elif text == b"`":
            self._backtick()
        elif token["start"]:
            indented = text[2:3] == b"-"
            self._awaited.append(_Awaited(token.start(), token.start("word"), token.end("word"), indented))
        elif text == b"\n" and self._awaited:
            self._take_out_awaited()

    def _backtick(self) -> None:
        if b"`" not in self._open:
            self._open.append(b"`")
            return
        while self._open.pop() != b"`":
            pass

    def _go_on_behind(self, token: re.Match[bytes], taken: int) -> None:
        self._position = token.start() + taken

    def _take_out_awaited(self) -> None:
        for document in self._awaited:
            word = self._command[document.word_at : document.word_end]
            ends_at, goes_on_at = self._end_of(_QUOTING.sub(rb"\1", word), document.is_indented)
            text = self._command[self._position : ends_at]
            self.found.append(HereDocument(document.at, text, bool(_QUOTING.search(word))))
            self.kept[document.at + 1 : document.word_at] = b" " * (document.word_at - document.at - 1)
            self.kept[document.word_at : document.word_end] = b"x" * len(word)
            self.kept[self._position : goes_on_at] = _NOT_LINE_END.sub(b" ", self._command[self._position : goes_on_at])
            self._position = min(goes_on_at + 1, len(self._command))
        self._awaited = []
        # The last line end belongs to the command again: it ends the line behind which the documents stood.

    def _end_of(self, word: bytes, is_indented: bool) -> tuple[int, int]:
        """
        Where a text that begins here ends, and where the line that ends it does.
        """
        tabs = rb"\t*" if is_indented else rb""
        found = re.compile(rb"^" + tabs + re.escape(word) + rb"\r?$", re.MULTILINE).search(
            self._command, self._position
        )
        return (found.start(), found.end()) if found else (len(self._command), len(self._command))


_SUBSTITUTION: Final = re.compile(rb"\\.|\$\(\(|\$\(|`(?P<inner>(?:[^`\\]|\\.)*)`", re.DOTALL)
_BRACKET: Final = re.compile(rb"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|[()]""", re.DOTALL)


def substitutions(text: bytes) -> list[bytes]:
    """
    Give the command substitutions of a here-document that the shell expands.
    """
    found: list[bytes] = []
    position = 0
    while match := _SUBSTITUTION.search(text, position):
        position = match.end()
        if match["inner"] is not None:
            found.append(match["inner"].replace(b"\\`", b"`"))
        elif match[0] == b"$(":
            position = _behind_bracket(text, position)
            found.append(text[match.end() : position - 1])
    return found


def _behind_bracket(text: bytes, position: int) -> int:
    depth = 1
    while depth and (found := _BRACKET.search(text, position)):
        depth += {b"(": 1, b")": -1}.get(found[0], 0)
        position = found.end()
    return position if not depth else len(text) + 1
