"""
The seam between asking and a model: one request in, one completion out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ...rubric.render import Request


class Completion(NamedTuple):
    """
    What a model answered in one try.
    """

    text: str
    stop_reason: str
    """`end_turn`, `max_tokens`, `refusal`, ... as the Messages API names them."""
    model_answered: str
    raw_usage: Mapping[str, object] | None
    """As it arrived, in the Messages API's form."""
    request_id: str | None = None


class Model(Protocol):
    """
    A model that can be asked several times, also at once.
    """

    async def complete(
        self, request: Request, *, cached: bool, without: frozenset[str], timeout_s: float
    ) -> Completion:
        """
        Ask once, without any retry.

        `cached` asks for the system text to be kept in the prompt cache; `without` names fields that this endpoint
        refused before. `timeout_s` is a hint: the caller keeps the deadline. Raises a `JudgeError`.
        """
        ...

    def without_secrets(self, text: str) -> str:
        """
        Replace what must go nowhere, such as the key, in a text that was taken out of an answer.
        """
        ...

    async def close(self) -> None:
        """
        Let go of connections.
        """
        ...
