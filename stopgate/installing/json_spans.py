"""
A JSON text with the place of each value in it, and edits that touch nothing else.

A text is edited by cutting and inserting, so that spaces, order and line ends of all that is not ours stay as somebody wrote them.
"""

from __future__ import annotations

import json
from typing import Final, Literal, NamedTuple, NoReturn

_SPACE: Final = " \t\r\n"
_USUAL_INDENT: Final = "  "
_DEEPEST: Final = 200


class BadJson(ValueError):
    """
    Not JSON that can be edited; one line that names line and column.
    """


class Node(NamedTuple):
    """
    A value and where it stands: `text[start:end]`.
    """

    kind: Literal["object", "array", "other"]
    start: int
    end: int
    value: object = None
    """Of what is neither object nor array."""
    children: tuple[Child, ...] = ()

    def member(self, key: str) -> Node | None:
        """
        Give the value of a key of an object; the last one, where it stands there twice.
        """
        found = [child.node for child in self.children if self.kind == "object" and child.key == key]
        return found[-1] if found else None

    def plain(self) -> object:
        """
        Give the value as `json.loads` does.
        """
        if self.kind == "object":
            return {child.key: child.node.plain() for child in self.children}
        if self.kind == "array":
            return [child.node.plain() for child in self.children]
        return self.value


class Child(NamedTuple):
    """
    A member of an object, which starts at its key, or an element of an array.
    """

    key: str
    start: int
    node: Node

    @property
    def end(self) -> int:
        """
        Give the place after it.
        """
        return self.node.end


def parse(text: str) -> Node:
    """
    Read a JSON text. Raises `BadJson`.
    """
    try:
        json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise BadJson(_complaint(text, error)) from error
    except RecursionError as error:
        raise BadJson("line 1: nested too deeply") from error
    except ValueError as error:
        raise BadJson(f"line 1: {' '.join(str(error).split())[:100]}") from error
    return _value(text, _skipped(text, 0), 0)


def place(text: str, at: int) -> str:
    """
    Name a place as `line 3, column 7`.
    """
    before = text[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - (before.rfind(chr(10)) + 1) + 1}"


def with_member(text: str, parent: Node, key: str, value: object) -> str:
    """
    Add a member at the end of an object.
    """
    return _with_child(text, parent, value, key)


def with_element(text: str, parent: Node, value: object) -> str:
    """
    Add an element at the end of an array.
    """
    return _with_child(text, parent, value, None)


def with_value(text: str, node: Node, value: object) -> str:
    """
    Put another value in the place of one.
    """
    is_long = "\n" in text[node.start : node.end]
    written = _Style.of(text).written(value, _indent_at(text, node.start) if is_long else None)
    return text[: node.start] + written + text[node.end :]


def without(text: str, parent: Node, index: int) -> str:
    """
    Take out a child, and the comma that it came with.
    """
    child = parent.children[index]
    if len(parent.children) == 1:
        return text[: parent.start + 1] + text[parent.end - 1 :]
    if index:
        return text[: parent.children[index - 1].end] + text[child.end :]
    return text[: child.start] + text[parent.children[1].start :]


class _Style(NamedTuple):
    """
    How a text is laid out.
    """

    newline: str
    indent: str | None
    """None: all in one line."""
    colon: str
    comma: str

    @classmethod
    def of(cls, text: str) -> _Style:
        newline = "\r\n" if "\r\n" in text else "\n"
        root = parse(text)
        first = next(iter(root.children), None)
        if first is None:
            return cls(newline, _USUAL_INDENT, ": ", ", ")
        before = text[root.start + 1 : first.start]
        key_end = first.node.start - 1 if root.kind == "object" else -1
        is_tight = root.kind == "object" and text[key_end] == ":" and "\n" not in before
        indent = before.rpartition("\n")[2] if "\n" in before else None
        return cls(newline, indent or (None if indent is None else ""), *((":", ",") if is_tight else (": ", ", ")))

    def written(self, value: object, base: str | None) -> str:
        """
        Write a value; `base` is the indent of the line that it begins in, None for one line.
        """
        if base is None or self.indent is None:
            return json.dumps(value, ensure_ascii=False, separators=(self.comma, self.colon))
        written = json.dumps(value, ensure_ascii=False, indent=self.indent or _USUAL_INDENT)
        return written.replace("\n", self.newline + base)


def _with_child(text: str, parent: Node, value: object, key: str | None) -> str:
    style = _Style.of(text)
    prefix = "" if key is None else json.dumps(key, ensure_ascii=False) + style.colon
    if not parent.children:
        return _with_first(text, parent, value, prefix, style)
    last = parent.children[-1]
    before = text[: last.start].rstrip(_SPACE)
    gap = text[len(before) : last.start]
    base = gap.rpartition("\n")[2] if "\n" in gap else None
    gap = gap or style.comma.removeprefix(",")
    return text[: last.end] + "," + gap + prefix + style.written(value, base) + text[last.end :]


def _with_first(text: str, parent: Node, value: object, prefix: str, style: _Style) -> str:
    brackets = text[parent.start], text[parent.end - 1]
    if style.indent is None:
        inside = prefix + style.written(value, None)
    else:
        base = _indent_at(text, parent.start)
        deeper = base + (style.indent or _USUAL_INDENT)
        inside = style.newline + deeper + prefix + style.written(value, deeper) + style.newline + base
    return text[: parent.start] + brackets[0] + inside + brackets[1] + text[parent.end :]


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise BadJson(f"{place(text, at)}: nested too deeply")
    if text[at] == "{":
        return _container(text, at, depth, "object")
    if text[at] == "[":
        return _container(text, at, depth, "array")
    value, end = _DECODER.raw_decode(text, at)
    return Node("other", at, end, value)


def _container(text: str, start: int, depth: int, kind: Literal["object", "array"]) -> Node:
    children: list[Child] = []
    at = _skipped(text, start + 1)
    while text[at] not in "}]":
        began, key = at, ""
        if kind == "object":
            key, at = _DECODER.raw_decode(text, at)
            at = _skipped(text, _skipped(text, at) + 1)
        node = _value(text, at, depth + 1)
        children.append(Child(key, began, node))
        at = _skipped(text, node.end)
        if text[at] == ",":
            at = _skipped(text, at + 1)
    return Node(kind, start, at + 1, children=tuple(children))


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _complaint(text: str, error: json.JSONDecodeError) -> str:
    at = _skipped(text, error.pos)
    if text.startswith(("//", "/*"), at):
        return f"{place(text, at)}: a comment, which JSON has not"
    return f"{place(text, error.pos)}: {error.msg}"


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder()
