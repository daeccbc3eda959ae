"""
The live scenarios: the real client, a scripted main loop, and a real judge that somebody pays.

The scenes stand in a clone, in `tests/e2e/test_live.py`; each leaves what it measured as one line, which ends in the user's own ledger.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from ..costing.database import FILE_NAME
from ..costing.ledger import Ledger
from ..costing.opening import open_ledger_store
from ..costing.prices import price, user_prices
from ..costing.records import Call, CallEnd, Decision
from ..costing.usage import Usage
from ..judge.connect import NoJudge, Target, choose
from ..judge.settings import JudgeSettings
from .errors import LabError
from .files import write_whole

SCENES: Final = "test_live.py"
KEY_VARIABLE: Final = "TURNGATE_LIVE_KEY"
"""Under this name the key reaches the hook: the client, whose main loop is scripted, gets another."""
PROJECT: Final = "turngate lab live"
LOG: Final = "pytest.log"
STOPS: Final = 4
"""A scene has no more that are judged: two holds, and the replies after them."""

_NEEDS: Final = (
    "it needs a clone of the repository with its development packages (`make test` sets them up), the real client, a key and a "
    "spend limit: "
    "export TURNGATE_TEST_CLIENT=$(tests/e2e/install-client) ANTHROPIC_API_KEY=...; turngate lab live --usd 0.50"
)


class Scene(NamedTuple):
    """
    What one scene came to.
    """

    name: str
    expected: tuple[str, ...]
    """Outcomes of the stops that a faultless judge would bring about."""
    decisions: tuple[Decision, ...]
    why_not: str = ""
    """Why it was not played."""

    @property
    def outcomes(self) -> tuple[str, ...]:
        """
        Outcomes of its stops.
        """
        return tuple(decision.line.outcome for decision in self.decisions)

    @property
    def calls(self) -> tuple[Call, ...]:
        """
        The tries at the judge, in order.
        """
        return tuple(call for decision in self.decisions for call in decision.calls)

    @property
    def is_as_expected(self) -> bool:
        """
        Whether the judge saw what there was to see, and nothing else.
        """
        return self.outcomes == self.expected


def play_scenes(
    folder: Path,
    scenes: Path,
    settings: JudgeSettings,
    environ: Mapping[str, str],
    *,
    limit_usd: Decimal,
    prices_folder: Path | None,
) -> list[Scene]:
    """
    Play every scene, each call before the limit, and give what they came to. Raises `LabError`, with all that is needed.
    """
    target = _target(settings, environ)
    _check_place(scenes, environ)
    results = folder / "scenes.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    live = {
        "judge_url": target.endpoint,
        "model": settings.model,
        "effort": settings.effort,
        "max_tokens": settings.max_tokens,
        "limit_usd": str(limit_usd),
        "worst_scene_usd": str(_worst_scene(settings, prices_folder)),
        "results": str(results.resolve()),
    }
    inherited = {
        name: value for name, value in environ.items() if not name.startswith(("TURNGATE_", "ANTHROPIC_", "CLAUDE_"))
    }
    process = subprocess.run(  # noqa: S603 - our own tests, by our own interpreter
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--basetemp",
            str(folder.resolve() / "scenes"),
            str((scenes / SCENES).resolve()),
        ],
        env={
            **inherited,
            "TURNGATE_LIVE": json.dumps(live),
            KEY_VARIABLE: target.key,
            "TURNGATE_TEST_CLIENT": environ["TURNGATE_TEST_CLIENT"],
        },
        cwd=scenes.resolve().parents[1],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = process.stdout.replace(target.key, "[key]")
    write_whole(folder / LOG, said)
    played = _read(results)
    if not played:
        last = [line for line in said.splitlines() if line.strip()][-1:]
        raise LabError(f"no scene could be played: {' '.join(last) or f'pytest ended with {process.returncode}'}")
    return played


def record_calls(ledger: Ledger, played: Sequence[Scene]) -> int:
    """
    Write the calls of all scenes into a ledger, and give their number: what was paid shows up in `turngate cost`.
    """
    calls = [call for scene in played for call in scene.calls]
    for call in calls:
        start = call.start._replace(
            project=PROJECT, event="lab", session_id="", decision_id="", agent_id="", human_turn=""
        )
        ledger.settle_call("", start, call.end or CallEnd("error", detail="it never ended"))
    return len(calls)


def _target(settings: JudgeSettings, environ: Mapping[str, str]) -> Target:
    target = choose(settings._replace(backend="anthropic") if settings.backend == "auto" else settings, environ)
    if isinstance(target, NoJudge):
        raise LabError(f"{target.reason}; {_NEEDS}")
    if target.backend != "anthropic":
        raise LabError(f"judge.backend {target.backend}: expected anthropic, whose calls can be measured; {_NEEDS}")
    return target


def _check_place(scenes: Path, environ: Mapping[str, str]) -> None:
    if not (scenes / SCENES).is_file():
        raise LabError(f"{scenes}: no {SCENES} in it; {_NEEDS}")
    if find_spec("pytest") is None:
        raise LabError(f"pytest is not installed; {_NEEDS}")
    if not os.access(environ.get("TURNGATE_TEST_CLIENT", ""), os.X_OK):
        raise LabError(f"TURNGATE_TEST_CLIENT names no client; {_NEEDS}")


def _read(results: Path) -> list[Scene]:
    if not results.exists():
        return []
    found = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    return [Scene(s["name"], tuple(s["expected"]), _decisions(s["state"]), s["why_not"]) for s in found]


def _decisions(state: str) -> tuple[Decision, ...]:
    if not (Path(state) / FILE_NAME).exists():
        return ()
    with open_ledger_store(state, "") as store:
        return tuple(Ledger(store).decisions())


def _worst_scene(settings: JudgeSettings, prices_folder: Path | None) -> Decimal:
    """
    What a scene can cost at most: each of its stops asks once, with all that a request and an answer may have.
    """
    most = Usage(output_tokens=settings.max_tokens, cache_write_5m_tokens=settings.max_input_tokens)
    cost = price(settings.model, most, datetime.now(UTC), overrides=user_prices(prices_folder)).cost_usd
    if cost is None:
        raise LabError(
            f"judge.model {settings.model}: its price is not known, so no limit could be kept (see docs/costs.md, Prices)"
        )
    return cost * STOPS
