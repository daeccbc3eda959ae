"""
A word for what a page was made of, by which it is known cheaply whether it is out of date.
"""

from __future__ import annotations

import re
from datetime import datetime

from ..store import Store


def state_of(store: Store, now: datetime) -> str:
    """
    Give a word that changes with each decision, call and label, and each minute for what else may have changed. Raises StoreError.
    """
    numbers = [store.rows(f"SELECT MAX(number) FROM {table}")[0][0] for table in ("decisions", "calls")]  # noqa: S608
    labels = store.rows("SELECT COUNT(*), MAX(at) FROM labels")[0]
    parts = (*numbers, *labels, int(now.timestamp() // 60))
    return "-".join(re.sub(r"[^0-9A-Za-z]", "", str(part)) for part in parts)
