"""
How long a turn that is sent to another machine may be: known to both ends, and to the server before it reads.
"""

from __future__ import annotations

from typing import Final

MAX_BODY_BYTES: Final = 1_000_000
"""Of a request to judge."""
