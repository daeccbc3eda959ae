"""
The judge: whether somebody can be asked, and with `--live` whether somebody answers.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from ...costing.prices import PriceError, user_prices
from ...judge.choosing import NoJudge, Target, choose
from ...judge.loopback import is_loopback
from ..places import config_dir
from .finding import Finding, bad, ok, warn
from .scene import Scene


def check(scene: Scene) -> Iterator[Finding]:
    """
    Say who would be asked; nobody is.
    """
    state = scene.state
    if scene.settings.judge.backend == "off":
        yield warn("judge", "judge.backend is off: only the free checks run", "set judge.backend, if you want a judge")
        return
    found = choose(scene.settings.judge, scene.safe.environ, Path(state, "scripted.jsonl") if state else None)
    if isinstance(found, NoJudge):
        yield bad("judge", f"{found.reason}; only the free checks run", _fix(found.reason))
        return
    key = f", key from {found.key_variable}" if found.key_variable else ""
    yield ok("judge", f"{found.model} ({found.backend}) at {found.place}{key}")
    yield from _endpoint(found)
    yield from _prices(scene)


def check_live(scene: Scene) -> Iterator[Finding]:
    """
    Ask the judge once, and pay for it; the call stands in the ledger.
    """
    from ...judge.connect import connect
    from ...judge.context import CallContext
    from ...rubric.turn import Turn
    from ..in_process import open_store

    environ, settings = scene.safe.environ, scene.settings
    store = open_store(environ, settings.ledger_url)
    config = config_dir(environ)
    judge = connect(
        settings.judge._replace(rubric_folder=Path(config, "rubrics") if config else None),
        environ,
        store.ledger,
        CallContext(project=scene.project, event="doctor"),
        deadline_at=time.monotonic() + settings.judge.deadline_s,
        scripted=Path(scene.state, "scripted.jsonl") if scene.state else None,
        prices_folder=Path(config) if config else None,
    )
    if isinstance(judge, NoJudge):
        return
    began = time.monotonic()
    answer = judge(Turn(request="Say hello.", reply="Hello."))
    took_s = time.monotonic() - began
    if answer.outcome == "answered":
        yield ok("live call", f"{judge.target.model} answered in {took_s:.1f} s")
    else:
        yield bad(
            "live call", f"{answer.outcome}: {answer.detail}", "`turngate cost` has the call; put right what it names"
        )


def _fix(reason: str) -> str:
    if "is not set" in reason or "not a key" in reason:
        return "start the client with the key in that variable, name another in judge.api_key_env, or sign in with the client"
    if "base_url" in reason or "BASE_URL" in reason:
        return "put the address right in your config.toml"
    return "see docs/judges.md, and set judge.backend"


def _endpoint(found: Target) -> Iterator[Finding]:
    if urlsplit(found.endpoint).scheme == "http" and not is_loopback(found.endpoint):
        text = f"{found.place} is asked over plain http: key and turns can be read on the way"
        yield warn("judge", text, "use an https:// address")


def _prices(scene: Scene) -> Iterator[Finding]:
    try:
        user_prices(config_dir(scene.safe.environ))
    except PriceError as error:
        yield warn("prices", f"costs stay unknown: {error}", "put the file right")
