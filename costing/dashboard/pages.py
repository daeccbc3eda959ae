"""
The pages as HTML: templates, filled. Owner of jinja2.

All that is put into a page is escaped, and data for its script cannot end the element that they stand in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from .assets import PLOTLY, map_style_id, tag_of

if TYPE_CHECKING:
    from jinja2 import Environment

_FILES: Final = ("page.css", "page.js", PLOTLY)


def page(template: str, **values: object) -> str:
    """
    Fill a template of ours.
    """
    return (
        _environment()
        .get_template(template)
        .render(tags={name: tag_of(name) for name in _FILES}, map_style_id=map_style_id(), **values)
    )


def script_json(found: Mapping[str, Any]) -> str:
    """
    Write JSON that may stand in a script element: ASCII, without a `<`, so that nothing in it can end anything early.
    """
    return json.dumps(found, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")


@cache
def _environment() -> Environment:
    # Imported with the first page: most services never show one.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("turngate.costing.dashboard", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
