"""
The disagreements of a report as HTML: one card a case, that the page's filters show or hide.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from .disagreements import KINDS, Disagreement, Mark, Opinion, Said
from .report import Report
from .shown_text import quoted

_CONFIDENCES: Final = (
    ("sure", "sure: undisputed, high or medium"),
    ("high", "high"),
    ("medium", "medium"),
    ("low", "low"),
    ("disputed", "disputed"),
)


def cases_section(of: Report) -> str:
    """
    Write the section with the filters and all cards.
    """
    scored = [arm for arm in of.arms if arm.score]
    if not scored:
        told = "<p>Not shown: no run has a score. They appear once the questions without a verdict are asked again.</p>"
        return _section(told)
    if not of.disagreements:
        return _section("<p>None: on each case with labels, what was named is what people say.</p>")

    letters = [arm.letter for arm in scored]
    cards = "\n".join(_card(one, number, len(of.arms) > 1) for number, one in enumerate(of.disagreements, start=1))
    return _section(f'{_filters(of, letters)}\n<div id="cards">\n{cards}\n</div>')


def _section(inside: str) -> str:
    return f'<section id="disagreements">\n<h2>Disagreements</h2>\n{inside}\n</section>'


def _filters(of: Report, letters: Sequence[str]) -> str:
    marks = [mark for one in of.disagreements for mark in one.marks]
    faults = dict.fromkeys(fault for arm in of.arms for fault in arm.manifest.faults)
    kinds = [kind for kind in KINDS if any(mark.kind == kind for mark in marks)]
    total = len(of.disagreements)
    fields = [
        _select("arm", "run", [(letter, letter) for letter in letters]) if len(letters) > 1 else "",
        _select("fault", "fault", [(fault, fault) for fault in faults]),
        _select("kind", "kind", [(kind, kind) for kind in kinds]),
        _select("confidence", "confidence", _CONFIDENCES),
        '<label>session <input name="session" type="search" autocomplete="off"></label>',
        '<label>text <input name="text" type="search" autocomplete="off"></label>',
        '<button type="reset">all</button>',
        '<button type="button" id="open">open those shown</button>',
        '<button type="button" id="close">close all</button>',
    ]
    return (
        '<form id="filters" hidden aria-label="filter the disagreements">\n'
        + "\n".join(filter(None, fields))
        + f'\n<output id="count" aria-live="polite">{total:,} of {total:,} cases</output>\n</form>'
    )


def _select(name: str, label: str, options: Iterable[tuple[str, str]]) -> str:
    inside = "".join(f'<option value="{escape(value)}">{escape(shown)}</option>' for value, shown in options)
    return f'<label>{label} <select name="{name}"><option value="">any</option>{inside}</select></label>'


def _card(one: Disagreement, number: int, has_arms: bool) -> str:
    marks = json.dumps([[mark.arm, mark.kind, mark.fault] for mark in one.marks])
    data = (
        f'data-case="{escape(one.case)}" data-marks="{escape(marks)}" data-confidence="{one.confidence}" '
        f'data-disputed="{str(one.disputed).lower()}" data-session="{escape(one.session)}"'
    )
    tags = " ".join(_tag(mark, has_arms) for mark in one.marks)
    body = "\n".join(_body(one, has_arms))
    return (
        f'<details class="case" id="case-{number}" {data}>\n<summary><b>{escape(one.case)}</b> {tags}</summary>\n'
        f"{body}\n</details>"
    )


def _tag(mark: Mark, has_arms: bool) -> str:
    arm = f"{mark.arm}: " if has_arms else ""
    share = "" if mark.share == 1 else f" ({mark.share:.0%} of repeats)"
    kind = mark.kind.replace(" ", "-")
    return f'<span class="tag {kind}">{escape(f"{arm}{mark.kind} {mark.fault}{share}")}</span>'


def _body(one: Disagreement, has_arms: bool) -> Iterator[str]:
    yield f"<dl>{''.join(f'<dt>{name}</dt><dd>{escape(value)}</dd>' for name, value in _about(one) if value)}</dl>"
    for opinion in one.opinions:
        yield from _opinion(opinion, has_arms)
    turn = one.turn
    yield from _text("The request", turn.request or "(out of reach)")
    for prompt in turn.later_prompts:
        yield from _text("Typed during the turn", prompt)
    if turn.previous_reply:
        yield from _text("The end of the reply before", turn.previous_reply)
    yield from _text(f"Tool calls: {len(turn.tool_lines)}", "\n".join(turn.tool_lines) or "(none)")
    yield from _text("Facts", "\n".join(turn.facts) or "(none)")
    yield "<h3>The reply</h3>"
    yield _pre(_highlighted(turn.reply, [said.quote for opinion in one.opinions for said in opinion.said]))


def _about(one: Disagreement) -> Iterator[tuple[str, str]]:
    yield "labels", ", ".join(one.labels) or "clean"
    yield "confidence", f"{one.confidence}, disputed" if one.disputed else one.confidence
    yield "rationale", one.rationale
    yield "session", one.session
    yield "source", ", ".join(filter(None, (one.source, one.licence)))
    yield "written by", ", ".join(filter(None, (one.model, one.client_version and f"client {one.client_version}")))
    yield "sample", f"{one.split} split, {one.sample}"
    yield "tags", ", ".join(one.tags)


def _opinion(of: Opinion, has_arms: bool) -> Iterator[str]:
    yield f"<h3>What {f'run {of.arm}' if has_arms else 'the judge'} named</h3>"
    if not of.readable:
        yield "<p>No readable answer.</p>"
        return
    if of.said:
        yield f"<ul>{''.join(_said(said, of) for said in of.said)}</ul>"
    else:
        yield "<p>Nothing.</p>"
    if of.dropped:
        yield f"<p>Left out, because the quote is not in the reply or the fault is unknown: {of.dropped}.</p>"
    answers = "".join(_pre(escape(answer)) for answer in of.answers)
    yield f"<details><summary>the answer as it came</summary>{answers}</details>"


def _said(said: Said, of: Opinion) -> str:
    numbers = ", ".join(map(str, said.repeats))
    times = "" if len(said.repeats) == of.asked else f" (repeat{'s' * (len(said.repeats) > 1)} {numbers} of {of.asked})"
    return (
        f"<li><b>{escape(said.fault)}</b>: <q>{escape(said.quote)}</q> "
        f'<span class="reason">{escape(said.reason)}</span>{times}</li>'
    )


def _text(title: str, text: str) -> Iterator[str]:
    yield f"<h3>{escape(title)}</h3>"
    yield _pre(escape(text))


def _pre(inside: str) -> str:
    # The first line end inside of a pre is no part of it.
    return f'<pre dir="auto" tabindex="0">\n{inside}</pre>'


def _highlighted(reply: str, quotes: Sequence[str]) -> str:
    pieces = quoted(reply, quotes)
    return "".join(f"<mark>{escape(text)}</mark>" if is_quote else escape(text) for text, is_quote in pieces)
