"""
Short names for projects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


def short_names(paths: Iterable[str]) -> dict[str, str]:
    """
    Name projects by the last part of their folder, or the last two where two are alike.
    """
    parts = {path: path.rstrip("/\\").replace("\\", "/").split("/") for path in paths}
    times = Counter(found[-1] for found in parts.values())
    return {path: "/".join(found[-2:] if times[found[-1]] > 1 else found[-1:]) for path, found in parts.items()}
