"""
A cloud's account as it stands in an environment: where its models are asked, and with what. Nothing is asked here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Cloud = Literal["bedrock", "vertex"]

VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "bedrock": (
        *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    ),
    "vertex": ("CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS", "HOME"),
}

_WHOLE_REGIONS: Final = {
    "global": "aiplatform.googleapis.com",
    **{r: f"aiplatform.{r}.rep.googleapis.com" for r in ("us", "eu")},
}
_OWN_FILE: Final = ".config/gcloud/application_default_credentials.json"


class Account(NamedTuple):
    """
    Somebody's account with a cloud.
    """

    base_url: str
    variables: tuple[tuple[str, str], ...]
    """With the person's secrets."""
    secret: str
    key_variable: str
    """What pays."""


class NoAccount(NamedTuple):
    """
    What is missing, in one line.
    """

    reason: str


def find_account(cloud: str, model: str, environ: Mapping[str, str], *, base_url: str = "") -> Account | NoAccount:
    """
    Read the account out of a trusted environment; `base_url` is asked in place of the cloud's own address.
    """
    kept = {name: environ[name].strip() for name in VARIABLES[cloud] if environ.get(name, "").strip()}
    return _bedrock(model, kept, base_url) if cloud == "bedrock" else _vertex(kept, base_url)


def _bedrock(model: str, kept: dict[str, str], base_url: str) -> Account | NoAccount:
    if "anthropic." not in model and not model.startswith("arn:"):
        return NoAccount("judge.model must be an id of Bedrock, for example us.anthropic.claude-sonnet-5-5")
    region = kept.get("AWS_REGION") or kept.get("AWS_DEFAULT_REGION", "")
    if not re.fullmatch(r"[a-z0-9-]+", region):
        return NoAccount("AWS_REGION is not set to a region")

    bearer, has_keys = (
        kept.get("AWS_BEARER_TOKEN_BEDROCK", ""),
        {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} <= set(kept),
    )
    if not bearer and not has_keys:
        return NoAccount("neither AWS_BEARER_TOKEN_BEDROCK nor AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set")
    pays = "AWS_BEARER_TOKEN_BEDROCK" if bearer else "AWS_SECRET_ACCESS_KEY"
    address = base_url or f"https://bedrock-runtime.{region}.amazonaws.com"
    return Account(address, tuple(sorted({**kept, "AWS_REGION": region}.items())), kept[pays], pays)


def _vertex(kept: dict[str, str], base_url: str) -> Account | NoAccount:
    region, project = kept.get("CLOUD_ML_REGION", ""), kept.get("ANTHROPIC_VERTEX_PROJECT_ID", "")
    if not re.fullmatch(r"[a-z0-9-]+", region):
        return NoAccount("CLOUD_ML_REGION is not set to a region")
    if not re.fullmatch(r"[a-z0-9.:-]+", project):
        return NoAccount("ANTHROPIC_VERTEX_PROJECT_ID is not set to a project")

    file = kept.get("GOOGLE_APPLICATION_CREDENTIALS") or f"{kept.get('HOME', '')}/{_OWN_FILE}"
    if not file.startswith("/") or file == f"/{_OWN_FILE}":
        return NoAccount("GOOGLE_APPLICATION_CREDENTIALS is not set to the path of a file")
    host = _WHOLE_REGIONS.get(region, f"{region}-aiplatform.googleapis.com")
    variables = {
        "CLOUD_ML_REGION": region,
        "ANTHROPIC_VERTEX_PROJECT_ID": project,
        "GOOGLE_APPLICATION_CREDENTIALS": file,
    }
    return Account(
        f"{base_url or f'https://{host}'}/v1", tuple(sorted(variables.items())), "", "GOOGLE_APPLICATION_CREDENTIALS"
    )
