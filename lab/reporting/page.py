"""
A report as one HTML page that needs nothing but itself: no network, and no script to be read.

All text from cases and judges is escaped; a policy in the page lets run no script but its own two, by their hashes.
"""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from .document import Block, Plot, Prose, Section, Table
from .figures import Figure, figures, library
from .page_cases import cases_section
from .report import Report
from .sections import heading, sections

SIGN: Final = '<meta name="generator" content="turngate lab report">'
"""By which a page of ours is known."""


def page(of: Report) -> str:
    """
    Write the page.
    """
    drawn = figures(of)
    script = _shipped("report.js")
    plotly = library() if drawn else ""
    parts = sections(of)
    body = [_section(section, drawn) for section in parts]
    links = [f'<a href="#{section.name}">{escape(section.title)}</a>' for section in parts]
    return Template(_shipped("report.html")).substitute(
        sign=SIGN,
        policy=_policy(plotly, script),
        title=escape(heading(of)),
        style=_shipped("report.css"),
        links=" ".join(links),
        sections="\n".join(body),
        cases=cases_section(of),
        turngate=escape(of.turngate),
        plots=_json(drawn),
        plotly=plotly,
        script=script,
    )


def _shipped(name: str) -> str:
    return files("turngate.lab.reporting").joinpath(name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    # Plotly writes styles of its own; pictures are what its button for one saves.
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(script: str) -> str:
    return base64.b64encode(sha256(script.encode()).digest()).decode()


def _json(drawn: dict[str, Figure]) -> str:
    # ASCII, so that no line separator and no broken character can end anything early.
    return json.dumps(drawn, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


def _section(section: Section, drawn: dict[str, Figure]) -> str:
    blocks = "\n".join(_block(block, drawn) for block in section.blocks)
    return f'<section id="{escape(section.name)}">\n<h2>{escape(section.title)}</h2>\n{blocks}\n</section>'


def _block(block: Block, drawn: dict[str, Figure]) -> str:
    if isinstance(block, Prose):
        kind = ' class="warning"' if block.is_warning else ""
        return f"<p{kind}>{escape(block.text)}</p>"
    if isinstance(block, Table):
        return _table(block)
    return _plot(block) if block.name in drawn else ""


def _plot(block: Plot) -> str:
    title, name = escape(block.title), escape(block.name)
    return (
        f'<figure class="plot" hidden><figcaption>{title}</figcaption>'
        f'<div id="plot-{name}" role="img" aria-label="{title}; the figures stand in a table of this section"></div></figure>'
    )


def _table(block: Table) -> str:
    kind = "numbers" if block.numbers else "words"
    caption = f"<caption>{escape(block.title)}</caption>" if block.title else ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in block.names)
    rows = "\n".join(_row(row) for row in block.rows)
    return (
        f'<div class="wide" tabindex="0" role="group"><table class="{kind}">{caption}\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(row: tuple[str, ...]) -> str:
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
    return f'<tr><th scope="row">{escape(row[0])}</th>{cells}</tr>'
