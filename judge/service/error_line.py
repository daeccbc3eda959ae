"""
An error as this service tells it: one line of JSON.
"""

from __future__ import annotations

from typing import Final

ERROR_TYPE: Final = "application/json"


def error_line(text: str) -> bytes:
    """
    Give `{"error": "..."}` and a line feed.
    """
    import json

    return json.dumps({"error": text}).encode() + b"\n"
