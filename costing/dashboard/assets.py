"""
The files that every page uses: our script and style, and Plotly's script as its wheel has it.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

PLOTLY: Final = "plotly.min.js"
EXTRA: Final = ("jinja2", "plotly")
"""What the extra `dashboard` installs."""

_HOW: Final = "install turngate with its extra `dashboard`: pip install -c constraints.txt '.[dashboard]'"

_SCRIPT: Final = "text/javascript; charset=utf-8"
_KINDS: Final = {"page.css": "text/css; charset=utf-8", "page.js": _SCRIPT, PLOTLY: _SCRIPT}


_MAP_STYLE: Final = b'(function(){if(!document.getElementById("'


class Asset(NamedTuple):
    """
    A file, with a tag that changes with its content.
    """

    body: bytes
    content_type: str
    tag: str


def missing_extra() -> str:
    """
    Say in one line what the page lacks and how to get it; empty where nothing is missing.
    """
    lacking = [name for name in EXTRA if find_spec(name) is None]
    if not lacking:
        return ""
    return f"the web page needs {' and '.join(lacking)}: {_HOW}"


def asset(name: str) -> Asset | None:
    """
    Give a file by its name; None where there is no such file.
    """
    body = _body(name)
    return None if body is None else Asset(body, _KINDS[name], tag_of(name))


@cache
def tag_of(name: str) -> str:
    """
    Give the tag of a file, empty where it is missing; it is read once in the life of a process.
    """
    return sha256(_body(name) or b"").hexdigest()[:20]


@cache
def map_style_id() -> str:
    """
    Give the id of the style that Plotly adds for its maps where none has that id, and which our policy forbids; empty where unknown.
    """
    start = (found := _body(PLOTLY) or b"").find(_MAP_STYLE)
    end = start + len(_MAP_STYLE)
    return found[end : end + 64].decode("ascii", "replace") if start >= 0 else ""


def _body(name: str) -> bytes | None:
    if name not in _KINDS:
        return None
    if name != PLOTLY:
        return files("turngate.costing.dashboard").joinpath("static", name).read_bytes()
    # Found and not imported: the library would take 20 MB and 100 ms, and of it one file is used.
    spec = find_spec("plotly")
    places = [
        Path(place, "package_data", PLOTLY) for place in (spec.submodule_search_locations if spec else None) or ()
    ]
    return next((place.read_bytes() for place in places if place.is_file()), None)
