"""
From settings and environment to who is asked: which back end, which endpoint, which key, or why there is nobody.

Nothing heavy is imported, and nothing is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .settings import VARIABLE_NAME, JudgeSettings

VENDOR_URL = "https://api.anthropic.com"
CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")
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
    """The base URL, or the path of the script or of the client."""
    key: str = ""
    key_variable: str = ""
    """The name of the variable that the key came out of."""
    endpoint_from: str = ""
    """The setting or variable that named the endpoint; empty for the vendor's own."""
    variables: tuple[tuple[str, str], ...] = ()
    """What the client gets of the environment, the person's secrets among it."""

    @property
    def place(self) -> str:
        """
        The endpoint as the ledger names it: host, port and path.
        """
        return self.endpoint.partition("://")[2] or self.endpoint

    def __repr__(self) -> str:
        return f"Target(backend={self.backend!r}, model={self.model!r}, endpoint={self.endpoint!r}, key=...)"


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
    if settings.backend == "claude-cli":
        return _client(settings, environ)
    if settings.backend in ("bedrock", "vertex"):
        return _of_cloud(settings, environ)
    if settings.backend == "auto":
        return _auto(settings, environ)
    return _anthropic(settings, environ)


def needed_variables(settings: JudgeSettings, environ: Mapping[str, str]) -> tuple[str, ...]:
    """
    Name the variables that `choose` looks at, for whoever holds only some of an environment.
    """
    if settings.backend in ("bedrock", "vertex"):
        from .models.clouds import VARIABLES as OF_CLOUDS

        return OF_CLOUDS[settings.backend]
    own = () if settings.backend == "claude-cli" else (settings.api_key_env,)
    if settings.backend == "claude-cli" or (settings.backend == "auto" and _may_be_the_client(settings, environ)):
        from .models.client_login import VARIABLES

        return (*own, *(name for name in VARIABLES if name not in own))
    return own


def _anthropic(settings: JudgeSettings, environ: Mapping[str, str]) -> Target | NoJudge:
    key = "" if _needs_no_key(settings, environ) else _key(settings.api_key_env, environ)
    if isinstance(key, NoJudge):
        return key

    endpoint = _endpoint(settings, environ)
    if isinstance(endpoint, NoJudge):
        return endpoint

    said_by = "judge.base_url" if settings.base_url else "" if endpoint == VENDOR_URL else "ANTHROPIC_BASE_URL"
    return Target("anthropic", settings.model, endpoint, key, settings.api_key_env if key else "", said_by)


def _needs_no_key(settings: JudgeSettings, environ: Mapping[str, str]) -> bool:
    """
    Say whether a server on this machine is meant, such as Ollama, and no key is given or named for it.
    """
    from .loopback import is_loopback

    is_named = settings.api_key_env != JudgeSettings().api_key_env
    if is_named or environ.get(settings.api_key_env, "").strip():
        return False
    address = base_url(settings.base_url, "judge.base_url") if settings.base_url else NoJudge("")
    return isinstance(address, str) and is_loopback(address)


def _of_cloud(settings: JudgeSettings, environ: Mapping[str, str]) -> Target | NoJudge:
    from .models.clouds import NoAccount, find_account

    address = base_url(settings.base_url, "judge.base_url") if settings.base_url else ""
    if isinstance(address, NoJudge):
        return address
    found = find_account(settings.backend, settings.model, environ, base_url=address)
    if isinstance(found, NoAccount):
        return NoJudge(f"no judge: judge.backend is {settings.backend}, and {found.reason}")
    said_by = "judge.base_url" if address else "judge.backend"
    return Target(
        settings.backend, settings.model, found.base_url, found.secret, found.key_variable, said_by, found.variables
    )


def _auto(settings: JudgeSettings, environ: Mapping[str, str]) -> Target | NoJudge:
    """
    Choose an endpoint where a key or an address is given, else the client where somebody is signed in.
    """
    found = _anthropic(settings, environ)
    if isinstance(found, Target) or not _may_be_the_client(settings, environ):
        return found

    # A key that no setting names for the judge does not pay for it.
    client = _client(settings, environ, without_api_key=True)
    if isinstance(client, Target):
        return client
    return NoJudge(f"{found.reason}, and {client.reason.removeprefix('no judge: ')}")


def _may_be_the_client(settings: JudgeSettings, environ: Mapping[str, str]) -> bool:
    is_named = re.fullmatch(VARIABLE_NAME, settings.api_key_env) is not None
    return is_named and not settings.base_url and not environ.get(settings.api_key_env, "").strip()


def _client(settings: JudgeSettings, environ: Mapping[str, str], *, without_api_key: bool = False) -> Target | NoJudge:
    from .models.client_login import NoLogin, find_login

    if settings.base_url:
        return NoJudge(
            "no judge: judge.base_url is set, and the client asks where it is signed in: remove one of the two"
        )
    cloud = _cloud(environ)
    if cloud:
        return NoJudge(f"no judge: {cloud} is set, and the client is asked only where it is signed in with the vendor")
    found = find_login(environ, without_api_key=without_api_key)
    if isinstance(found, NoLogin):
        return NoJudge(f"no judge: {found.reason}")
    return Target(
        "claude-cli",
        settings.model,
        found.program,
        key_variable=found.key_variable,
        endpoint_from="the client's own log-in" if not found.key_variable else "PATH",
        variables=found.variables,
    )


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

    cloud = _cloud(environ)
    if cloud:
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


def _cloud(environ: Mapping[str, str]) -> str:
    """
    Give the variable that sends the client itself to a cloud's models; empty where there is none.
    """
    return next((name for name in CLOUDS if _is_truthy(environ.get(name, ""))), "")


def _is_truthy(value: str) -> bool:
    return value.strip().lower() not in ("", "0", "false", "no", "off")
