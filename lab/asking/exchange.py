"""
Questions for somebody else to answer, and their answers: plain JSON Lines, so that any model or person can be the judge.

A line says nothing of labels or cases, and the order of the lines nothing at all.
"""

from __future__ import annotations

import errno
import json
import os
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..cases import json_object
from ..errors import LabError
from ..files import read_whole
from ..runs import Answered, Asked, Run, keep
from .kept_text import kept_text


class Imported(NamedTuple):
    """
    What became of the answers.
    """

    kept: int
    known: int
    """Were kept already, by an earlier import of the same."""
    missing: list[str]
    """Ids of the questions that nobody has answered yet."""


def question_id(asked: Asked) -> str:
    """
    Name a question without a word about its case; two cases with the same turn share it.
    """
    return f"{asked.hash}-r{asked.repeat}"


def request_lines(asked: Sequence[Asked], *, max_tokens: int, seed: int) -> list[str]:
    """
    Write each question as one line of JSON, with its end, in an order that only the seed decides.
    """
    lines = [
        json.dumps(
            {
                "id": name,
                "system": question.request.system,
                "user": question.request.user,
                "schema": question.request.schema,
                "max_tokens": max_tokens,
            },
            ensure_ascii=False,
        )
        + "\n"
        for name, question in sorted({question_id(question): question for question in asked}.items())
    ]
    random.Random(seed).shuffle(lines)  # noqa: S311 - an order, not a secret
    return lines


def read_answers(path: Path, asked: Sequence[Asked]) -> dict[str, str]:
    """
    Read a file of answers, by question id. Raises `LabError` for a line that answers none of the questions, or one of them anew.
    """
    known = {question_id(question): question.case.turn.reply for question in asked}
    answers: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in _lines(path):
        try:
            fields = json_object(line)
            name = _name(fields)
            if name not in known:
                raise LabError(
                    f"id: {name[:60]!r} is none of these questions: were they exported with the same options?"
                )
            text = _text(fields, known[name])
            if name in answers and answers[name] != text:
                raise LabError(f"id: {name!r} is answered otherwise on line {lines[name]}")
        except LabError as error:
            raise LabError(f"{path}: line {number}: {error}") from None
        answers[name] = text
        lines.setdefault(name, number)
    if not answers:
        raise LabError(f"{path}: no answer in it")
    return answers


def keep_answers(run: Run, asked: Iterable[Asked], answers: dict[str, str], *, path: Path) -> Imported:
    """
    Keep the answers in a run. Raises `LabError` before any is kept where a question was answered otherwise before.
    """
    new: list[Answered] = []
    missing: list[str] = []
    known = 0
    for question in asked:
        before = run.answers.get((question.case.id, question.repeat))
        is_answered = before is not None and before.outcome == "answered" and before.hash == question.hash
        text = answers.get(question_id(question))
        if text is None:
            missing += [] if is_answered else [question_id(question)]
            continue
        answered = _answered(question, kept_text(text, run.manifest.faults))
        if before is None or not is_answered:
            new.append(answered)
        elif before.text != answered.text:
            raise LabError(f"{path}: id {question_id(question)!r}: {run.folder} holds another answer to it already")
        else:
            known += 1

    for answered in new:
        keep(run.folder, answered)
    return Imported(len(new), known, missing)


def _answered(question: Asked, text: str) -> Answered:
    return Answered(
        case=question.case.id,
        repeat=question.repeat,
        hash=question.hash,
        outcome="answered",
        text=text,
        via="import",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _name(fields: dict[str, Any]) -> str:
    name = fields.get("id")
    if not isinstance(name, str) or not name:
        raise LabError("id: missing" if name is None else "id: expected a text")
    return name


def _text(fields: dict[str, Any], reply: str) -> str:
    text, verdict = fields.get("text"), fields.get("answer")
    if text is not None and verdict is not None:
        raise LabError("text and answer: one of them is enough")
    if isinstance(verdict, dict):
        return json.dumps(_quoted(cast("dict[str, Any]", verdict), reply), ensure_ascii=False)
    if verdict is not None:
        raise LabError("answer: expected the verdict as a JSON object")
    if text is None:
        raise LabError("text: missing")
    if not isinstance(text, str):
        raise LabError("text: expected a text")
    if not text.strip():
        raise LabError("text: empty; leave out the line of a question that nobody answered")
    return text


def _quoted(verdict: dict[str, Any], reply: str) -> dict[str, Any]:
    """
    Put quotes in for spans, by which answers can be kept where the words of a turn may not.
    """
    findings = verdict.get("findings")
    if not isinstance(findings, list):
        return verdict
    return {**verdict, "findings": [_with_quote(finding, reply) for finding in cast("list[object]", findings)]}


def _with_quote(finding: object, reply: str) -> object:
    if not isinstance(finding, dict) or "span" not in finding:
        return cast("object", finding)
    fields = cast("dict[str, Any]", finding)
    match fields:
        case {"span": [int(start), int(end)]} if 0 <= start < end <= len(reply) and "quote" not in fields:
            rest = {name: value for name, value in fields.items() if name != "span"}
            return {"reason": "not kept", **rest, "quote": reply[start:end]}
        case _:
            raise LabError(
                f"span: expected the first and the last character of a quote in a reply of {len(reply):,}, and no quote"
            )


def _lines(path: Path) -> list[tuple[int, bytes]]:
    data = read_whole(path)
    if data is None:
        raise LabError(f"{path}: not readable: {os.strerror(errno.ENOENT)}")
    return [(number, line) for number, line in enumerate(data.split(b"\n"), start=1) if line.strip()]
