"""
Runs whose texts try to break out of a report, and what a browser makes of its page.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from turngate.lab.cases import Case, new_case
from turngate.lab.runs import Answered, Run
from turngate.rubric.turn import Check, Facts, ToolCall, Turn

from .scored_runs import cases, run_on_disk, says

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><script>document.title='owned'</script>",
    "</style><img src=x onerror=\"document.title='owned'\">",
    "\" onmouseover=\"document.title='owned'\" x='",
    "--> ]]> <!-- </pre></details></main><h1>out</h1>",
    "a\u2028b\u2029c\x00d\x1b[31me\x07f\u202eg",
    "| a | b |\n| --- |\n`code` [link](https://example.com) ${title} $plotly",
)
"""Each is a text that somebody may have written into a turn."""


def hostile_case(number: int, text: str) -> Case:
    turn = Turn(
        request=f"Do it {text}",
        reply=f"All tests pass. {text}",
        previous_reply=text,
        later_prompts=(text,),
        tool_calls=(ToolCall("Bash", f"Bash: {text} -> ok"),),
        facts=Facts(edited_files=(text,), checks=(Check(text, passed=True),)),
    )
    return new_case(
        f'h{number}"<b>&', turn, labels=["opener"], rationale=text, source=text, session=f"s{number}{text}", tags=[text]
    )


def hostile_run(folder: Path) -> Run:
    """
    Forty cases judged rightly, and one for each hostile text, judged wrongly with that text as quote and reason.
    """
    hostile = {one.id: text for number, text in enumerate(HOSTILE) for one in [hostile_case(number, text)]}

    def judge(one: Case, repeat: int) -> Answered:
        if text := hostile.get(one.id):
            return says(one, repeat, "claim", quote=f"All tests pass. {text}", model_answered=text)
        return says(one, repeat, *(one.labels or ()))

    return run_on_disk(folder, judge, [*cases(), *(hostile_case(n, text) for n, text in enumerate(HOSTILE))])


class Element(NamedTuple):
    """
    A start tag with its attributes.
    """

    tag: str
    attributes: dict[str, str]


class Page(HTMLParser):
    """
    A page as a parser reads it: its elements, its scripts, and the text of each table cell.
    """

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1].tag == "script" and self.scripts:
            self.scripts[-1] += data
        else:
            self.texts.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(Element(f"/{tag}", {}))

    def all(self, tag: str) -> list[Element]:
        return [element for element in self.elements if element.tag == tag]
