"""
Who will judge, who pays for it, and what a call costs: what a person should know before the first stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from ...costing.prices import PriceError, price, user_prices
from ...costing.screen import money
from ...costing.usage import Usage
from ...judge.choosing import NoJudge, choose
from ..places import config_dir, state_dir
from ..settings import Settings

PLAIN: Final = Usage(1_031, 44, 0, 0, 0, 0)
"""A small turn, the rubric not cached: see docs/costs.md."""

WARM: Final = Usage(106, 44, 0, 0, 0, 925)


class JudgeChoice(NamedTuple):
    """
    The judge that would be asked now.
    """

    backend: str
    """Empty where there is none."""
    lines: tuple[str, ...]


def judge_choice(settings: Settings, environ: Mapping[str, str]) -> JudgeChoice:
    """
    Say who answers, in lines for a person. Nobody is asked.
    """
    state = state_dir(environ)
    found = choose(settings.judge, environ, Path(state, "scripted.jsonl") if state else None)
    if isinstance(found, NoJudge):
        return JudgeChoice("", (f"judge: none, only the free checks run: {found.reason}",))
    return JudgeChoice(
        found.backend,
        (
            f"judge: {found.model} ({found.backend}) at {found.place}",
            f"paid by: {_payer(found.backend, found.key_variable)}",
            f"a call: {_cost(found.backend, found.model, environ)}",
        ),
    )


def _payer(backend: str, key_variable: str) -> str:
    if key_variable:
        return f"the key in {key_variable}"
    if backend == "claude-cli":
        return "your log-in with the client; calls count towards the limits of your plan"
    return "nobody: it takes no key"


def _cost(backend: str, model: str, environ: Mapping[str, str]) -> str:
    if backend in ("remote", "scripted"):
        return "whatever the service's owner pays" if backend == "remote" else "nothing"
    try:
        own = user_prices(config_dir(environ))
    except PriceError as error:
        return f"not known: {error}"
    now = datetime.now(UTC)
    plain, warm = (price(model, usage, now, overrides=own).cost_usd for usage in (PLAIN, WARM))
    if plain is None or warm is None:
        return "not known: the model has no price; give it one in prices.toml"
    return f"about {money(plain)}, with a warm cache {money(warm)} (estimated, at list prices for a small turn)"
