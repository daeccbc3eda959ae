"""
What can go wrong when a model is asked. All are translated into a `Judgement`; none leaves an `Ask`.

JudgeError
├── ModelUnavailable    no answer: no connection, or a status that is not 200
├── FieldsRefused       a 400 for fields of the request that can be left out
└── NoMessage           status 200, and not a message of the Messages API
"""

from __future__ import annotations

from collections.abc import Mapping

PASSING_STATUSES = (408, 429)
"""Those of the 4xx statuses that say nothing about the request itself."""


class JudgeError(Exception):
    """
    A try without an answer. The text is one masked line; the facts are attributes.
    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        raw_usage: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.request_id = request_id
        self.raw_usage = raw_usage

    @property
    def is_rejection(self) -> bool:
        """
        Whether the endpoint is there and does not take this request: another key, model or field may be taken.
        """
        return self.status is not None and 400 <= self.status < 500 and self.status not in PASSING_STATUSES


class ModelUnavailable(JudgeError):
    """
    Nobody answered. `retryable` where the next try may fare better; `retry_after_s` where the endpoint named a time.
    """

    retryable: bool = False
    never_sent: bool = False
    """No connection came about, so that nothing of the request can have arrived."""
    retry_after_s: float | None = None


class FieldsRefused(JudgeError):
    """
    The endpoint does not take these fields; the same request without them may be answered.
    """

    fields: frozenset[str] = frozenset()


class NoMessage(JudgeError):
    """
    Something else than a message came back, for example a sign-in page.
    """
