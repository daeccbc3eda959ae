"""
A shell command as a syntax tree. This is the one file that knows the parser.
"""

from __future__ import annotations

import re
import time
from functools import cache
from typing import Final, NamedTuple

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from .here_documents import HereDocument, set_aside
from .parser_gaps import made_plain

__all__ = ["Node", "Tree", "parsed"]

LONGEST: Final = 1_000_000
"""Bytes of a command that are parsed."""

PARSING_S: Final = 0.03
PARSING_S_PER_BYTE: Final = 0.8e-6
"""
Of the thread's own time, three times what commands take; a text made to be slow takes the parser a time and a memory that grow with its
square, and meanwhile no other thread runs.
"""

_SLOW: Final = (b"=(", b"()")
_MOST_SLOW: Final = 2_000
"""Where these stand unclosed by the thousand the parser cannot be stopped for seconds."""

_CHUNK: Final = 65_536
_SPLIT_WORD: Final = re.compile(rb"^([^#\n]*[a-z>])\\\n(?=[a-z&])", re.MULTILINE)
"""A word that goes on in the next line, which the parser takes for two."""


class Tree(NamedTuple):
    """
    A command that parsed without an error.
    """

    root: Node
    text: bytes
    """As it was given, but for words that were split over two lines; the nodes' places are places in it."""
    documents: dict[int, HereDocument]
    """By the place of their `<<`."""
    coprocesses: frozenset[int]
    """Where compound commands begin that `coproc` runs."""

    def source(self, node: Node) -> str:
        """
        Give what a node covers.
        """
        return self.between(node.start_byte, node.end_byte)

    def between(self, start: int, end: int) -> str:
        """
        Give the text between two places.
        """
        return self.text[start:end].decode("utf-8", "replace")


def parsed(command: bytes) -> Tree | None:
    """
    Give the tree of a command; None where it is too long, cannot be read in time, or is no command of this shell.
    """
    # The parser's own handling of NUL can be neither bounded nor stopped.
    if len(command) > LONGEST or b"\0" in command or any(command.count(part) > _MOST_SLOW for part in _SLOW):
        return None
    # A pipe without an end takes the parser gigabytes.
    if command.rstrip().endswith((b"|", b"&&")):
        return None
    if b"\\\n" in command:
        command = _SPLIT_WORD.sub(rb"\1", command)
    text, documents = set_aside(command)
    text, coprocesses = made_plain(text)
    give_up_at = time.thread_time() + PARSING_S + PARSING_S_PER_BYTE * len(text)

    def read(position: int, _point: object) -> bytes:
        return text[position : position + _CHUNK]

    try:
        # A parser of its own: two threads must not share one.
        tree = Parser(_language()).parse(
            read, progress_callback=lambda _position, _error: time.thread_time() > give_up_at
        )
    except ValueError:
        return None
    if tree.root_node.has_error:
        return None
    return Tree(tree.root_node, command, {document.at: document for document in documents}, coprocesses)


@cache
def _language() -> Language:
    return Language(tree_sitter_bash.language())
