"""
When a try is worth repeating, and how long to wait: the one policy, inside one deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import tenacity

from .errors import ModelUnavailable

T = TypeVar("T")

MOST_TRIES = 3
SHORTEST_TRY_S = 0.3
"""A try that would have less than this before the deadline is not begun."""

_BACK_OFF = tenacity.wait_exponential(multiplier=0.2, max=2.0) + tenacity.wait_random(0.0, 0.2)


async def with_retries(attempt: Callable[[], Coroutine[Any, Any, T]], *, deadline_at: float) -> T:
    """
    Give the first answer, or raise the error of the last try.

    Only a retryable `ModelUnavailable` is repeated, and never when the wait, the endpoint's own `retry-after` included,
    would pass the deadline.
    """
    left_s = deadline_at - time.monotonic()
    policy = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(_may_fare_better),
        wait=_wait_s,
        stop=tenacity.stop_after_attempt(MOST_TRIES) | tenacity.stop_before_delay(left_s - SHORTEST_TRY_S),
        reraise=True,
    )
    return await policy(attempt)


def _may_fare_better(error: BaseException) -> bool:
    return isinstance(error, ModelUnavailable) and error.retryable


def _wait_s(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    asked_for_s = error.retry_after_s if isinstance(error, ModelUnavailable) else None
    return max(_BACK_OFF(state), asked_for_s or 0.0)
