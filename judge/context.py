"""
Whose stop a judgement belongs to, as its ledger lines will say.
"""

from __future__ import annotations

from typing import NamedTuple


class CallContext(NamedTuple):
    """
    The decision that asks, and where it stands. Empty text for what is not known.
    """

    decision_id: str = ""
    session_id: str = ""
    project: str = ""
    event: str = ""
    agent_id: str = ""
    human_turn: str = ""
