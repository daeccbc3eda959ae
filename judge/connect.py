"""
From settings to a judge: which back end, which endpoint, which key, or why there is none.

Nothing heavy is imported before the first question is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .clock import utc_now
from .context import CallContext
from .held_back import held_back
from .judgement import Judgement
from .quiet_ledger import QuietLedger
from .settings import VARIABLE_NAME, JudgeSettings

if TYPE_CHECKING:
    from ..costing.ledger import Ledger
    from ..rubric.library import Rubric
    from ..rubric.turn import Turn
    from .asking import Asking
    from .models.base import Model

VENDOR_URL = "https://api.anthropic.com"
REMOTE_TOKEN = "TURNGATE_REMOTE_TOKEN"  # noqa: S105 - the variable's name


class NoJudge(NamedTuple):
    """
    Nobody can be asked. `reason` is one line without secrets for the person.
    """

    reason: str


class Target(NamedTuple):
    """
    Who is asked: never printed with its key.
    """

    backend: str
    model: str
    endpoint: str
    """The base URL, or the path of the script."""
    key: str = ""
    key_variable: str = ""
    """The name of the variable that the key came out of."""
    endpoint_from: str = ""
    """The setting or variable that named the endpoint; empty for the vendor's own."""

    @property
    def place(self) -> str:
        """
        The endpoint as the ledger names it: host, port and path.
        """
        return self.endpoint.partition("://")[2] or self.endpoint

    def __repr__(self) -> str:
        return f"Target(backend={self.backend!r}, model={self.model!r}, endpoint={self.endpoint!r}, key=...)"


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


def choose(settings: JudgeSettings, environ: Mapping[str, str], scripted: Path | None = None) -> Target | NoJudge:
    """
    Say who would be asked; `doctor` and `install` show it.
    """
    if settings.backend == "off":
        return NoJudge("judge.backend is off")
    if settings.backend == "scripted":
        if scripted is None:
            return NoJudge("judge.backend is scripted, and there is no script")
        return Target("scripted", "scripted", str(scripted), endpoint_from="judge.backend")
    if settings.backend == "remote":
        return _remote(settings, environ)
    return _anthropic(settings, environ)


def open_model(target: Target, settings: JudgeSettings, ledger: Ledger | None) -> Model:
    """
    Build the model of a target. Slow the first time: a second or more for the SDK.
    """
    if target.backend == "scripted":
        from .models.scripted import ScriptedModel

        return ScriptedModel(Path(target.endpoint), ledger)

    from .models.anthropic_api import AnthropicModel

    return AnthropicModel(
        target.model, base_url=target.endpoint, key=target.key, max_tokens=settings.max_tokens, effort=settings.effort
    )


def _rubric(settings: JudgeSettings) -> Rubric | NoJudge:
    from ..rubric.library import BadRubric, UnknownRubric, load

    try:
        return load(settings.rubric_name, settings.rubric_folder)
    except (BadRubric, UnknownRubric) as error:
        return NoJudge(str(error))


def _anthropic(settings: JudgeSettings, environ: Mapping[str, str]) -> Target | NoJudge:
    key = _key(settings.api_key_env, environ)
    if isinstance(key, NoJudge):
        return key

    endpoint = _endpoint(settings, environ)
    if isinstance(endpoint, NoJudge):
        return endpoint

    said_by = "judge.base_url" if settings.base_url else "" if endpoint == VENDOR_URL else "ANTHROPIC_BASE_URL"
    return Target("anthropic", settings.model, endpoint, key, settings.api_key_env, said_by)


def _remote(settings: JudgeSettings, environ: Mapping[str, str]) -> Target | NoJudge:
    if not settings.base_url:
        return NoJudge("no judge: judge.backend is remote, and judge.base_url names no service")
    endpoint = base_url(settings.base_url, "judge.base_url")
    if isinstance(endpoint, NoJudge):
        return endpoint
    if not _is_private(endpoint):
        return NoJudge("no judge: judge.base_url must begin with https://: the turn would be readable on its way")

    # A model's key is not for a team's service: its token has a variable of its own.
    own = settings.api_key_env != JudgeSettings().api_key_env
    name = settings.api_key_env if own else REMOTE_TOKEN
    token = _key(name, environ)
    return token if isinstance(token, NoJudge) else Target("remote", "remote", endpoint, token, name, "judge.base_url")


def _is_private(url: str) -> bool:
    from urllib.parse import urlsplit

    from .loopback import is_loopback

    return urlsplit(url).scheme == "https" or is_loopback(url)


def _key(name: str, environ: Mapping[str, str]) -> str | NoJudge:
    # The commonest mistake is the key itself in this place: what may be one is never repeated.
    if not re.fullmatch(VARIABLE_NAME, name):
        return NoJudge("judge.api_key_env must be the name of a variable, in capitals, and never the key itself")

    key = environ.get(name, "").strip()
    if not key:
        return NoJudge(f"no judge: {name} is not set")
    if not re.fullmatch(r"[!-~]+", key):
        return NoJudge(f"no judge: the value of {name} is not a key: it has characters that a header cannot carry")
    return key


def _endpoint(settings: JudgeSettings, environ: Mapping[str, str]) -> str | NoJudge:
    if settings.base_url:
        return base_url(settings.base_url, "judge.base_url")

    for cloud in ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"):
        if _is_truthy(environ.get(cloud, "")):
            return NoJudge(f"no judge: {cloud} is set and judge.base_url is not; nothing is sent to another vendor")

    if environ.get("ANTHROPIC_BASE_URL", "").strip():
        return base_url(environ["ANTHROPIC_BASE_URL"], "ANTHROPIC_BASE_URL")
    return VENDOR_URL


def base_url(text: str, name: str) -> str | NoJudge:
    """
    Check an endpoint's address; `name` is what it is called in the reason. A user or password in it is not repeated.
    """
    from urllib.parse import urlsplit

    text = text.strip()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return NoJudge(f"{name} is not a valid address")

    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return NoJudge(f"{name} must begin with http:// or https:// and name a host")
    if parts.username is not None or parts.password is not None:
        return NoJudge(f"{name} must not carry a user or a password")
    if parts.query or parts.fragment or not re.fullmatch(r"[!-~]+", text):
        return NoJudge(f"{name} must be a plain address without a query, a fragment or white space")

    # The SDK adds /v1/messages; addresses are often copied with their /v1.
    return text.rstrip("/").removesuffix("/v1")


def _is_truthy(value: str) -> bool:
    return value.strip().lower() not in ("", "0", "false", "no", "off")
