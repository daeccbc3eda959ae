"""
The files of the pages: ours, and Plotly's script.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from turngate.costing.dashboard.assets import PLOTLY, asset, map_style_id, missing_extra, tag_of
from turngate.costing.dashboard.outcome_words import WORDS, tone, words
from turngate.costing.outcomes import OUTCOMES


@pytest.mark.parametrize(
    ("name", "kind"), [("page.css", "text/css"), ("page.js", "text/javascript"), (PLOTLY, "text/javascript")]
)
def test_each_file_is_there(name: str, kind: str) -> None:
    """
    With its type, and a tag that stands for its content.
    """
    found = asset(name)

    assert found
    assert found.body
    assert found.content_type == f"{kind}; charset=utf-8"
    assert found.tag == tag_of(name)


@pytest.mark.parametrize("name", ["", ".", "../pages.py", "page.css/", "plotly.js", "/etc/passwd", "page.css\0"])
def test_there_is_no_other_file(name: str) -> None:
    """
    A name is looked up in a table, and is no path.
    """
    assert asset(name) is None


def test_plotly_looks_for_its_map_style_by_an_id() -> None:
    """
    The id is known, so that Plotly adds no style that the policy would forbid.
    """
    assert len(map_style_id()) == 64
    assert int(map_style_id(), 16)


def test_nothing_is_missing_here() -> None:
    """
    The environment of the tests has all that the pages need.
    """
    assert missing_extra() == ""


def test_what_is_missing_is_named_in_one_line() -> None:
    """
    Without its extra the line says what to install, and nothing heavy is imported to find out.
    """
    code = """
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in ("jinja2", "plotly") else real(name, package)
from turngate.costing.dashboard.assets import missing_extra
print(missing_extra())
assert not {"jinja2", "plotly"} & set(sys.modules)
"""
    ran = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.startswith("the web page needs jinja2 and plotly: install turngate with its extra `dashboard`: ")
    assert len(ran.stdout.splitlines()) == 1


def test_every_outcome_has_words_and_a_tone() -> None:
    """
    No outcome is left to be guessed by the reader.
    """
    assert set(WORDS) == set(OUTCOMES)
    assert {tone(outcome) for outcome in OUTCOMES} == {"hold", "trouble", "fine", "plain"}
    assert words("damaged") == "damaged"
