"""
What the tests of judging share: a real ledger, a real server on loopback, and no environment of the machine's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.database import open_database
from turngate.costing.ledger import Ledger
from turngate.judge.connect import NoJudge, connect
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn

KEY = "sk-ant-test-0123456789"

AskOnce = Callable[..., Judgement]


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def _sdk_is_loaded() -> None:  # pyright: ignore[reportUnusedFunction]
    """
    Short deadlines in tests are about the endpoint, not about importing the SDK.
    """
    import turngate.judge.models.anthropic_api  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from turngate.costing.prices import warm

    warm()


@pytest.fixture(name="ledger")
def ledger_fixture(tmp_path: Path) -> Iterator[Ledger]:
    with open_database(tmp_path / "state") as database:
        yield Ledger(database)


@pytest.fixture(name="turn")
def turn_fixture() -> Turn:
    return Turn(request="Write retry.ts with one line.", reply="Wrote retry.ts.\n\nDone. All tests pass.")


@pytest.fixture(name="ask")
def ask_fixture(ledger: Ledger, turn: Turn) -> AskOnce:
    """
    Ask the judge at a server once: `ask(api, deadline_s=..., turn=..., ledger=..., **settings)`.
    """

    def ask(
        api: ScriptedMessagesApi | str,
        *,
        deadline_s: float = 5.0,
        turn: Turn = turn,
        ledger: Ledger | None = ledger,
        context: CallContext | None = None,
        prices_folder: Path | None = None,
        **settings: Any,
    ) -> Judgement:
        url = api if isinstance(api, str) else api.url
        judge = connect(
            JudgeSettings(backend="anthropic", base_url=url, **settings),
            {"ANTHROPIC_API_KEY": KEY},
            ledger,
            context or CallContext(decision_id="d1", session_id="s1"),
            deadline_at=time.monotonic() + deadline_s,
            prices_folder=prices_folder,
        )
        assert not isinstance(judge, NoJudge), judge.reason
        return judge(turn)

    return ask
