"""
A command walked as a shell would run it: which processes it starts and does not wait for, and which it stops by a pattern.

Nothing is run and nothing is looked up. A branch counts as taken, a loop as run once, a function as its body where it is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

from .here_documents import substitutions
from .programs import programs_in, take_in
from .shell_tree import Node, Tree, parsed
from .shells import Input, Job, Shell, Value
from .words import EXPANSIONS, unquoted

Kind = Literal["background", "detached", "pattern"]

_DEEPEST: Final = 150
"""Levels of nesting; people write fewer than ten."""
_WALKING_S: Final = 2.5
"""Of the thread's own time; functions that call each other make a short text long."""
_MOST_PROPOSED: Final = 8
_DEEPEST_TEXT: Final = 4
"""Texts within texts: `bash -c "bash -c ..."`."""

_GROUPS: Final = ("program", "compound_statement", "do_group")
_BRANCHES: Final = (
    *("if_statement", "elif_clause", "else_clause", "while_statement", "c_style_for_statement"),
    *("case_statement", "case_item", "negated_command"),
)
"""Statements that run what they hold in the same shell."""
_SUBSTITUTIONS: Final = frozenset({"command_substitution", "process_substitution"})


class Finding(NamedTuple):
    """
    One thing that is refused.
    """

    kind: Kind
    part: str
    """As it is written."""
    instead: str
    """What to send instead: the same without `&`, `nohup` and `setsid`; empty where that cannot be told."""
    place: int
    """Where it begins, in bytes, in the whole command."""
    end: int
    is_glued: bool = False
    """The `&` stands between two words without a blank."""


class TooMuch(Exception):
    """
    The command is nested too deep, or runs in too many circles, to be followed.
    """


def findings(command: str) -> list[Finding] | None:
    """
    Give what is refused of a command, in its order; None where it cannot be parsed or followed.
    """
    walk = Walk()
    try:
        if not walk.run(command.encode("utf-8", "replace"), Shell()):
            return None
    except TooMuch:
        return None
    return sorted(dict.fromkeys(walk.found), key=lambda finding: finding.place)


class Walk:
    """
    One walk; `found` is what it has met so far.
    """

    def __init__(self) -> None:
        self.found: Final[list[Finding]] = []
        self._tree: Tree
        self._texts: Final[list[int]] = []
        """Where the texts within the command stand that are being walked."""
        self._depth = 0
        self._walks: Final[Mapping[str, Callable[[Node, Shell, Input | None], None]]] = {
            **dict.fromkeys(_GROUPS, self._group),
            **dict.fromkeys(_BRANCHES, self._branch),
            "command": self._command,
            "redirected_statement": self._redirected,
            "list": self._list,
            "pipeline": self._pipeline,
            "subshell": self._subshell,
            "for_statement": self._for,
            "function_definition": self._define,
            "variable_assignment": self._assignments,
            "variable_assignments": self._assignments,
            "declaration_command": self._assignments,
            "unset_command": self._unset,
        }
        """How each kind of statement is walked; what has none is a word, or holds words."""
        self._steps = 0
        self._give_up_at = time.thread_time() + _WALKING_S
        self._jobs = 0
        self._called: Final[list[str]] = []
        self._context = 0
        """How much of what holds a command, or ran before it, it may depend on."""
        self._first: int | None = None
        """Where the first statement of the outermost text begins that is over."""
        self._over = 0
        """How many of its statements are over, and how many of them were jobs."""
        self._over_jobs = 0
        self.detachers: list[tuple[int, int]] = []
        """Where, in the tree at hand, a `nohup` or `setsid` stands, with its options."""

    # Texts

    def run(self, text: bytes, shell: Shell) -> bool:
        """
        Walk a text in a shell of its own; False where it cannot be parsed.
        """
        is_parsed = self._run_in(text, shell)
        self._end(shell)
        return is_parsed

    def _run_in(self, text: bytes, shell: Shell) -> bool:
        tree = parsed(text)
        if tree is None:
            return False
        outer = self._tree if self._texts else None
        detachers, self.detachers = self.detachers, []
        self._tree = tree
        self._visit(tree.root, shell)
        self.detachers = detachers
        if outer is not None:
            self._tree = outer
        return True

    def run_text(self, text: str, shell: Shell, place: int, *, own_shell: bool) -> None:
        """
        Walk a text that a command is given. What cannot be parsed is not known.
        """
        if len(self._texts) >= _DEEPEST_TEXT or not text.strip():
            return
        self._texts.append(self._place(place))
        data = text.encode("utf-8", "replace")
        if own_shell:
            self.run(data, shell)
        else:
            self._run_in(data, shell)
        self._texts.pop()

    def _place(self, byte: int) -> int:
        return self._texts[0] if self._texts else byte

    def _end(self, shell: Shell) -> None:
        """
        End a shell: what it runs at its end is run, and a job that it did not wait for is refused.
        """
        while shell.at_exit:
            text = shell.at_exit.pop()
            self.run_text(text.text, shell, text.start, own_shell=False)
        for job in shell.jobs:
            job.refuse()
        shell.jobs.clear()

    # Statements

    def _visit(self, node: Node, shell: Shell, redirected: Input | None = None) -> None:
        self._steps += 1
        self._depth += 1
        if self._depth > _DEEPEST or (self._steps % 256 == 0 and time.thread_time() > self._give_up_at):
            raise TooMuch
        walk = self._walks.get(node.type)
        if walk is not None:
            walk(node, shell, redirected)
        elif node.is_named and node.child_count:
            self._value(node, shell)
        self._depth -= 1

    def _group(self, node: Node, shell: Shell, redirected: Input | None) -> None:
        with shell.reading(redirected):
            self._sequence(node.children, shell)

    def _branch(self, node: Node, shell: Shell, redirected: Input | None) -> None:
        with self._depending():
            self._group(node, shell, redirected)

    def _sequence(self, nodes: Sequence[Node], shell: Shell) -> None:
        context = self._context
        is_outermost = not self._texts and bool(nodes) and _is_program(nodes[0].parent)
        for position, node in enumerate(nodes):
            if not node.is_named or node.type == "comment":
                continue
            follows = nodes[position + 1].type if position + 1 < len(nodes) else ""
            if follows == "&":
                self._background(node, shell, "&")
            elif node.start_byte in self._tree.coprocesses:
                self._background(node, shell, "coproc")
            else:
                self._visit(node, shell)
            self._context += 1
            if is_outermost:
                self._first = node.start_byte if self._first is None else self._first
                self._over += 1
                self._over_jobs += follows == "&"
        self._context = context

    @contextmanager
    def _depending(self) -> Generator[None]:
        """
        Walk what means something else by itself: a part of a loop, a branch, a pipe, a function.
        """
        self._context += 1
        yield
        self._context -= 1

    def _background(self, node: Node, shell: Shell, by: str) -> None:
        job_shell = shell.subshell()
        known = len(self.detachers)
        self._visit(node, job_shell)
        self._end(job_shell)
        self.add_job(node, shell, by, self.detachers[known:])

    def add_job(self, node: Node, shell: Shell, by: str, detachers: Sequence[tuple[int, int]] = ()) -> None:
        """
        Take note of a process that a shell starts by `&` or `coproc`; it is refused if that shell ends without a wait for it.
        """
        tree = self._tree
        text = tree.source(node)
        part = f"{text} &" if by == "&" else f"{by} {text}" if not text.startswith(by) else text
        end = node.end_byte
        is_glued = by == "&" and tree.text[end : end + 1] == b"&" and tree.text[end + 1 : end + 2].strip() != b""
        instead = self.proposed(node, detachers) if by == "&" and not is_glued else ""
        finding = Finding("background", part, instead, self._place(node.start_byte), self._place(end), is_glued)
        self._jobs += 1
        shell.jobs.append(Job(self._jobs, lambda: self.found.append(finding)))

    def proposed(self, node: Node, taken: Sequence[tuple[int, int]]) -> str:
        """
        Give what to send instead of a node: its text without these parts, behind what it may depend on.

        Empty where it would mean something else by itself, or has a here-document, whose text lies elsewhere.
        """
        start, end, tree = node.start_byte, node.end_byte, self._tree
        if len(self.found) > _MOST_PROPOSED:
            return ""
        if self._context:
            if self._texts or not _is_program(node.parent) or self._over != self._context:
                return ""
            if self._over_jobs and (self._over_jobs != self._over or "$" in tree.source(node)):
                return ""
            start = start if self._over_jobs or self._first is None else self._first
        if any(start <= at < end for at in tree.documents):
            return ""
        parts: list[str] = []
        for from_byte, to_byte in sorted(taken):
            parts.append(tree.between(start, from_byte))
            start = to_byte
        return "".join((*parts, tree.between(start, end))).strip()

    def _list(self, node: Node, shell: Shell, redirected: Input | None) -> None:
        # `a && b && c` is nested to the left, as deep as it is long.
        parts: list[Node] = []
        while node.type == "list" and node.children:
            parts.extend(reversed([child for child in node.children[1:] if child.is_named]))
            node = node.children[0]
        self._visit(node, shell, redirected if not parts else None)
        with self._depending():
            for part in reversed(parts):
                self._visit(part, shell, redirected if part is parts[0] else None)

    def _pipeline(self, node: Node, shell: Shell, redirected: Input | None) -> None:
        parts = [child for child in node.children if child.is_named]
        stdin = shell.stdin
        for part in parts:
            is_last = part is parts[-1]
            child = shell.subshell(stdin)
            with self._depending():
                self._visit(part, child, redirected if is_last else None)
                self._end(child)
            by_pattern = child.gives_pattern_pids or child.gives_processes or stdin.by_pattern
            if is_last:
                shell.gives_pattern_pids = shell.gives_pattern_pids or child.gives_pattern_pids or stdin.by_pattern
                shell.gives_processes = shell.gives_processes or child.gives_processes
            stdin = Input(by_pattern, child.printed)

    def _subshell(self, node: Node, shell: Shell, redirected: Input | None) -> None:
        child = shell.subshell(redirected)
        self._sequence(node.children, child)
        self._end(child)
        shell.gives_pattern_pids = shell.gives_pattern_pids or child.gives_pattern_pids
        shell.gives_processes = shell.gives_processes or child.gives_processes

    def _redirected(self, node: Node, shell: Shell, redirected: Input | None) -> None:
        body = node.child_by_field_name("body")
        for redirect in node.named_children:
            if redirect.type.endswith("_redirect"):
                redirected = self._redirect(redirect, shell) or redirected
        if body is not None:
            self._visit(body, shell, redirected)

    def _redirect(self, node: Node, shell: Shell) -> Input | None:
        """
        Give what a redirection puts on the standard input; None where it does not.
        """
        document = self._tree.documents.get(_first_at(node, "<"))
        if document is not None:
            by_pattern = False if document.is_literal else self._expanded(document.text, shell, node.start_byte)
            return Input(by_pattern, document.text.decode("utf-8", "replace"))
        value = self._value(node, shell)
        if node.type == "herestring_redirect":
            return Input(value.by_pattern, unquoted(node.children[-1], self._tree).text)
        return Input(value.by_pattern) if _first_at(node, "<") >= 0 else None

    def _expanded(self, text: bytes, shell: Shell, place: int) -> bool:
        """
        Walk the substitutions of a here-document; True where they give process ids found by a pattern.
        """
        child = shell.subshell()
        for substituted in substitutions(text):
            self.run_text(substituted.decode("utf-8", "replace"), child, place, own_shell=True)
        return child.gives_pattern_pids

    def _for(self, node: Node, shell: Shell, redirected: Input | None) -> None:
        names = node.children_by_field_name("variable")
        values = [self._value(child, shell) for child in node.children_by_field_name("value")]
        for name in names:
            by_pattern = any(value.by_pattern for value in values)
            jobs = frozenset[int]().union(*(value.jobs for value in values))
            shell.variables[self._tree.source(name)] = Value(by_pattern=by_pattern, jobs=jobs)
        body = node.child_by_field_name("body")
        if body is not None:
            with self._depending():
                self._visit(body, shell, redirected)

    def _define(self, node: Node, shell: Shell, _redirected: Input | None) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            shell.functions[self._tree.source(name)] = (body, self._tree)

    def _assignments(self, node: Node, shell: Shell, _redirected: Input | None) -> None:
        children = (node,) if node.type == "variable_assignment" else node.children
        for child in children:
            if child.type == "variable_assignment":
                self._assign(child, shell)
            elif child.is_named:
                self._value(child, shell)

    def _unset(self, node: Node, shell: Shell, _redirected: Input | None) -> None:
        for child in node.named_children:
            shell.variables[self._tree.source(child)] = Value()

    def _assign(self, node: Node, shell: Shell) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or value is None:
            return
        given = self._value(value, shell)
        text = self._tree.source(name).partition("[")[0]
        if node.child_by_field_name("name") is not None and b"+=" in self._tree.text[name.end_byte : name.end_byte + 2]:
            before = shell.variables.get(text, Value())
            by_pattern, jobs = before.by_pattern or given.by_pattern, before.jobs | given.jobs
            given = Value(given.text, by_pattern=by_pattern, jobs=jobs)
        shell.variables[text] = given

    # Words

    def _value(self, node: Node, shell: Shell) -> Value:
        """
        Give what is known of a word, or of anything that holds words; its substitutions are walked.
        """
        if not node.named_child_count and node.type not in EXPANSIONS:
            text = unquoted(node, self._tree).text
            by_pattern = shell.arguments_by_pattern and "{}" in text
            return Value(text, True, by_pattern, start=node.start_byte, end=node.end_byte)
        by_pattern, jobs = False, frozenset[int]()
        for part in _expansions(node):
            known = self._expansion(part, shell)
            by_pattern, jobs = by_pattern or known.by_pattern, jobs | known.jobs
        word = unquoted(node, self._tree)
        text, is_literal = word
        if shell.arguments_by_pattern and "{}" in text:
            by_pattern = True
        if node.type in ("simple_expansion", "expansion") or _only_expansion(node):
            known = shell.variables.get(_variable(node, self._tree), Value())
            text, is_literal = (known.text, True) if known.is_literal else (text, is_literal)
            return Value(text, is_literal, by_pattern, jobs, node.start_byte, node.end_byte, is_variable=True)
        return Value(text, is_literal, by_pattern, jobs, node.start_byte, node.end_byte)

    def _expansion(self, node: Node, shell: Shell) -> Value:
        if node.type in _SUBSTITUTIONS:
            return self._substituted(node, shell)
        name = _variable(node, self._tree)
        if name == "!" or self._tree.source(node).strip() == "${!}":
            return Value(jobs=frozenset(job.number for job in shell.jobs[-1:]))
        if name in ("@", "*") or name.isdecimal():
            return Value(by_pattern=shell.arguments_by_pattern)
        return shell.variables.get(name, Value())

    def _substituted(self, node: Node, shell: Shell) -> Value:
        source = self._tree.source(node).strip()
        child = shell.subshell()
        if source.startswith("`") and "\\`" in source:
            inner = source[1:-1].replace("\\`", "`")
            self.run_text(inner, child, node.start_byte, own_shell=True)
        else:
            self._sequence(node.children, child)
            self._end(child)
        is_input = node.type == "process_substitution" and child.gives_processes
        return Value(by_pattern=child.gives_pattern_pids or is_input)

    def refuse(self, kind: Kind, node: Node, instead: str = "") -> None:
        """
        Refuse what a node covers.
        """
        start, end = self._place(node.start_byte), self._place(node.end_byte)
        self.found.append(Finding(kind, self._tree.source(node), instead, start, end))

    # Commands

    def _command(self, node: Node, shell: Shell, redirected: Input | None) -> None:
        words: list[Value] = []
        for child in node.children:
            if child.type == "variable_assignment":
                self._value(child, shell)
            elif child.type in ("file_redirect", "herestring_redirect"):
                redirected = self._redirect(child, shell) or redirected
            elif child.is_named:
                words.append(self._value(child.children[0] if child.type == "command_name" else child, shell))
        if words:
            with shell.reading(redirected):
                self._execute(words, node, shell)

    def _execute(self, words: list[Value], node: Node, shell: Shell) -> None:
        if any(word.by_pattern for word in words):
            shell.gives_pattern_pids = True
        if words[0].text in shell.functions:
            self._call(words, shell)
            return
        for program in programs_in(_split(words), node):
            take_in(self, program, shell)

    def _call(self, words: list[Value], shell: Shell) -> None:
        name = words[0].text
        if name in self._called:
            return
        body, tree = shell.functions[name]
        outer, self._tree = self._tree, tree
        before, shell.arguments_by_pattern = shell.arguments_by_pattern, any(word.by_pattern for word in words[1:])
        self._called.append(name)
        with self._depending():
            self._visit(body, shell)
        self._called.pop()
        self._tree, shell.arguments_by_pattern = outer, before


def _expansions(node: Node) -> Iterator[Node]:
    """
    Give the expansions of a word, without those within a substitution.
    """
    awaited = [node]
    while awaited:
        part = awaited.pop()
        if part.type in _SUBSTITUTIONS or part.type == "simple_expansion":
            yield part
            continue
        if part.type == "expansion":
            yield part
        awaited.extend(reversed(part.named_children))


def _variable(node: Node, tree: Tree) -> str:
    while node.type in ("string", "command_name", "concatenation") and node.named_child_count == 1:
        node = node.named_children[0]
    for child in node.named_children:
        if child.type in ("variable_name", "special_variable_name"):
            return tree.source(child)
        if child.type == "subscript":
            return _variable(child, tree)
    return ""


def _only_expansion(node: Node) -> bool:
    while node.type in ("string", "command_name") and node.named_child_count == 1:
        node = node.named_children[0]
    return node.type in ("simple_expansion", "expansion")


def _is_program(node: Node | None) -> bool:
    return node is not None and node.type == "program"


def _first_at(node: Node, token: str) -> int:
    return next((child.start_byte for child in node.children if child.type == token), -1)


def _split(words: list[Value]) -> list[Value]:
    """
    Split a variable that stands for a whole command, as the shell does where it is not quoted.
    """
    first = words[0]
    if not first.is_variable or " " not in first.text:
        return words
    return [*(first._replace(text=text) for text in first.text.split()), *words[1:]]
