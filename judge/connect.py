"""
From settings to a judge, or why there is none; `choosing` says who it is.

Nothing heavy is imported before the first question is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .choosing import VENDOR_URL, NoJudge, Target, choose, needed_variables
from .clock import utc_now
from .context import CallContext
from .held_back import held_back
from .judgement import Judgement
from .quiet_ledger import QuietLedger
from .settings import JudgeSettings

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from ..rubric.library import Rubric
    from ..rubric.turn import Turn
    from .asking import Asking
    from .models.anthropic_api import CloudClient
    from .models.base import Model

__all__ = ["VENDOR_URL", "Judge", "NoJudge", "Target", "choose", "connect", "needed_variables", "open_model"]


class Judge(NamedTuple):
    """
    Somebody to ask about one stop: an `Ask` that also says beforehand whether it would make a call.
    """

    target: Target
    rubric: Rubric
    settings: JudgeSettings
    ledger: Ledger | None
    quiet_ledger: QuietLedger
    context: CallContext
    deadline_at: float
    prices_folder: Path | None

    def held_back(self) -> Judgement | None:
        """
        Give the judgement of one who must not be asked now, for a spent budget or an open breaker; cheap.
        """
        return held_back(
            self.settings,
            self.rubric,
            self.quiet_ledger,
            endpoint=self.target.place,
            session_id=self.context.session_id,
            now=utc_now(),
        )

    def __call__(self, turn: Turn) -> Judgement:
        """
        Judge a turn; what `held_back` would say counts here too.
        """
        from .asking import ask_with

        target, settings = self.target, self.settings
        if target.backend == "remote":
            from .asking_remotely import ask_remotely

            return self.held_back() or ask_remotely(target, deadline_at=self.deadline_at)(turn)

        ask = ask_with(lambda: open_model(target, settings, self.ledger), self.asking(), deadline_at=self.deadline_at)
        return ask(turn)

    def asking(self) -> Asking:
        """
        Give all about the judgement but the turn, the model and its deadline.
        """
        from .asking import Asking

        return Asking(
            self.rubric,
            self.settings,
            self.target.backend,
            self.target.place,
            self.target.model,
            self.quiet_ledger,
            self.context,
            prices_folder=self.prices_folder,
        )


def connect(
    settings: JudgeSettings,
    environ: Mapping[str, str],
    ledger: Ledger | None,
    context: CallContext,
    *,
    deadline_at: float,
    scripted: Path | None = None,
    prices_folder: Path | None = None,
) -> Judge | NoJudge:
    """
    Give the judge that the settings and the environment name.

    `deadline_at` is on `time.monotonic`'s clock. Without a ledger (None) the judge answers all the same. `scripted` is
    the script of the back end of that name: one answer a line. In `prices_folder` a user's own `prices.toml` may lie.
    """
    target = choose(settings, environ, scripted)
    if isinstance(target, NoJudge):
        return target

    rubric = _rubric(settings)
    if isinstance(rubric, NoJudge):
        return rubric

    return Judge(target, rubric, settings, ledger, QuietLedger(ledger), context, deadline_at, prices_folder)


def open_model(target: Target, settings: JudgeSettings, ledger: Ledger | None) -> Model:
    """
    Build the model of a target. Slow the first time: a second or more for the SDK.
    """
    if target.backend == "scripted":
        from .models.scripted import ScriptedModel

        return ScriptedModel(Path(target.endpoint), ledger)

    if target.backend == "claude-cli":
        from .models.claude_cli import ClaudeCliModel

        return ClaudeCliModel(
            target.model,
            program=target.endpoint,
            variables=target.variables,
            max_tokens=settings.max_tokens,
            effort=settings.effort,
        )

    from .models.anthropic_api import AnthropicModel

    return AnthropicModel(
        target.model,
        base_url=target.endpoint,
        key=target.key,
        max_tokens=settings.max_tokens,
        effort=settings.effort,
        cloud=_cloud_client(target),
    )


def _cloud_client(target: Target) -> CloudClient | None:
    if target.backend not in ("bedrock", "vertex"):
        return None
    from .models.anthropic_clouds import bedrock_client, vertex_client

    make = bedrock_client if target.backend == "bedrock" else vertex_client
    return lambda http: make(dict(target.variables), target.endpoint, http)


def _rubric(settings: JudgeSettings) -> Rubric | NoJudge:
    from ..rubric.library import BadRubric, UnknownRubric, load

    try:
        return load(settings.rubric_name, settings.rubric_folder)
    except (BadRubric, UnknownRubric) as error:
        return NoJudge(str(error))
