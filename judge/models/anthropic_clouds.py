"""
The SDK's clients for Bedrock and Vertex, with the account that is given here and nothing of the process's own environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from ..errors import ModelUnavailable
from .anthropic_api import BedrockClient, VertexClient

if TYPE_CHECKING:
    import httpx2

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_LONGEST_FILE: Final = 100_000


def bedrock_client(variables: Mapping[str, str], base_url: str, http: httpx2.AsyncClient) -> BedrockClient:
    """
    Give a client that signs with an access key, or sends a bearer token. Raises ModelUnavailable.
    """
    bearer = variables.get("AWS_BEARER_TOKEN_BEDROCK")
    if not bearer:
        _needed("botocore.auth", "an access key of Bedrock", "bedrock")
        _needed("boto3", "an access key of Bedrock", "bedrock")
    return BedrockClient(
        api_key=bearer,
        aws_access_key=None if bearer else variables["AWS_ACCESS_KEY_ID"],
        aws_secret_key=None if bearer else variables["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=None if bearer else variables.get("AWS_SESSION_TOKEN"),
        aws_region=variables["AWS_REGION"],
        base_url=base_url,
        max_retries=0,
        open_telemetry=False,
        http_client=http,
    )


def vertex_client(variables: Mapping[str, str], base_url: str, http: httpx2.AsyncClient) -> VertexClient:
    """
    Give a client that asks with the token of a credentials file. Raises ModelUnavailable.
    """
    return VertexClient(
        region=variables["CLOUD_ML_REGION"],
        project_id=variables["ANTHROPIC_VERTEX_PROJECT_ID"],
        credentials=_google_credentials(Path(variables["GOOGLE_APPLICATION_CREDENTIALS"])),
        base_url=base_url,
        max_retries=0,
        open_telemetry=False,
        http_client=http,
    )


def _google_credentials(path: Path) -> Any:
    for module in ("google.oauth2.credentials", "google.oauth2.service_account", "google.auth.transport.requests"):
        _needed(module, "an account of Vertex", "vertex")
    from google.oauth2 import credentials, service_account  # pyright: ignore

    try:
        with path.open("rb") as file:
            found: object = json.loads(file.read(_LONGEST_FILE))
        info = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        # Other kinds run programs or ask addresses that the file names.
        if info.get("type") == "authorized_user":
            return credentials.Credentials.from_authorized_user_info(info, scopes=[_SCOPE])  # pyright: ignore
        if info.get("type") == "service_account":
            return service_account.Credentials.from_service_account_info(info, scopes=[_SCOPE])  # pyright: ignore
    except OSError as error:
        raise ModelUnavailable(f"{path}: {error.strerror}") from error
    except Exception as error:  # other people's reading of a file with secrets: what it says is not repeated
        raise ModelUnavailable(f"{path}: no credentials of Google") from error
    raise ModelUnavailable(f"{path}: neither a user's nor a service account's credentials of Google")


def _needed(module: str, what: str, extra: str) -> None:
    from importlib import import_module

    try:
        import_module(module)
    except ImportError as error:
        raise ModelUnavailable(f"{what} needs a library: pip install 'turngate[{extra}]'") from error
