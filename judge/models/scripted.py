"""
A model that reads its answers from a file: for tests and demonstrations without any network.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ...costing.store import StoreError
from ..errors import ModelUnavailable
from .base import Completion

if TYPE_CHECKING:
    from ...costing.ledger import Ledger
    from ...rubric.render import Request


class ScriptedModel:
    """
    A script with one answer a line: the text that the model says, usually a verdict's JSON, or `{"error": "..."}`.

    The ledger says how far the script is, so that one script serves many hook processes.
    """

    def __init__(self, script: Path, ledger: Ledger | None) -> None:
        self._script = script
        self._ledger = ledger
        self._answered = 0

    async def complete(
        self,
        request: Request,
        *,
        cached: bool,  # noqa: ARG002
        without: frozenset[str],  # noqa: ARG002
        timeout_s: float,  # noqa: ARG002
    ) -> Completion:
        """
        Say the next line of the script.
        """
        text = self._next_line()
        error = _error(text)
        if error:
            raise ModelUnavailable(error)
        return Completion(text, "end_turn", "scripted", _usage(request, text))

    def without_secrets(self, text: str) -> str:
        """
        Nothing is secret.
        """
        return text

    async def close(self) -> None:
        """
        Nothing is open.
        """

    def _next_line(self) -> str:
        try:
            lines = self._script.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError) as exc:
            why = exc.strerror if isinstance(exc, OSError) else "it is no text in UTF-8"
            raise ModelUnavailable(f"the script of the scripted judge cannot be read: {why}") from exc

        said = self._said_before()
        if said >= len(lines):
            raise ModelUnavailable(f"the script of the scripted judge has no more than {len(lines)} answers")
        return lines[said]

    def _said_before(self) -> int:
        self._answered += 1
        if self._ledger is None:
            return self._answered - 1
        try:
            # The line of this very try is open already.
            return max(0, len(self._ledger.recent_outcomes(str(self._script), 1_000_000)) - 1)
        except StoreError:
            return self._answered - 1


def _error(text: str) -> str:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return str(cast("dict[str, Any]", found).get("error", "")) if isinstance(found, dict) else ""


def _usage(request: Request, text: str) -> dict[str, object]:
    return {"input_tokens": request.estimated_tokens, "output_tokens": len(text) // 4 + 1}
