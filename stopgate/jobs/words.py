"""
A word of a command without its quoting.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from .shell_tree import Node, Tree

_ESCAPED: Final = re.compile(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES: Final = re.compile(r'\\([$`"\\\n])')
_ANSI_C: Final = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
_ANSI_C_LETTERS: Final = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))

EXPANSIONS: Final = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)


class Unquoted(NamedTuple):
    """
    What a word says.
    """

    text: str
    """Expansions stand in it as they are written."""
    is_literal: bool
    """It has no expansion."""


def unquoted(node: Node, tree: Tree) -> Unquoted:
    """
    Take the quotes and escapes off a word.
    """
    kind = node.type
    if kind in EXPANSIONS:
        return Unquoted(tree.source(node), is_literal=False)
    if kind == "raw_string":
        return Unquoted(tree.source(node)[1:-1], is_literal=True)
    if kind == "ansi_c_string":
        return Unquoted(_ANSI_C.sub(_ansi_c, tree.source(node)[2:-1]), is_literal=True)
    if kind in ("string", "translated_string"):
        return _joined(node, tree, in_quotes=True)
    if kind in ("concatenation", "command_name"):
        return _joined(node, tree, in_quotes=False)
    text = tree.source(node)
    return Unquoted(_ESCAPED.sub(_unescaped, text) if "\\" in text else text, is_literal=True)


def _joined(node: Node, tree: Tree, *, in_quotes: bool) -> Unquoted:
    parts: list[str] = []
    is_literal = True
    for child in node.children:
        if in_quotes and not child.is_named and tree.source(child).strip() in ('"', '$"', "$"):
            continue
        if in_quotes and child.type not in EXPANSIONS and child.type != "string":
            parts.append(_ESCAPED_IN_QUOTES.sub(_unescaped, tree.source(child)))
            continue
        part = unquoted(child, tree)
        parts.append(part.text)
        is_literal = is_literal and part.is_literal
    return Unquoted("".join(parts), is_literal)


def _unescaped(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _ansi_c(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        return _character(int(code[1:], 16))
    if code[0] in "01234567":
        return _character(int(code, 8) & 0xFF)
    return _ANSI_C_LETTERS.get(code, code if code in "\\'\"?" else found[0])


def _character(number: int) -> str:
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
