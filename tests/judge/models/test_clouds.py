"""
Bedrock and Vertex through the SDK's clients: what arrives there, checked by a server on loopback.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.connect import Judge, NoJudge, Target, choose, connect
from turngate.judge.context import CallContext
from turngate.judge.judgement import Judgement
from turngate.judge.loopback_server import LoopbackServer
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn

from ..answers import USAGE, ended

BEDROCK_MODEL = "us.anthropic.claude-sonnet-5-5"
AWS_KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-aws-0123456789"}
AWS = {"AWS_REGION": "eu-west-1", **AWS_KEYS}
GOOGLE = {"CLOUD_ML_REGION": "europe-west1", "ANTHROPIC_VERTEX_PROJECT_ID": "my-project"}


class Cloud(LoopbackServer):
    """
    Answers each model's address with a verdict, and an address of tokens with a token; keeps what arrived.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.received: list[tuple[str, dict[str, str], Any]] = []
        self.status = 200


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Cloud  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/token":
            return self._send({"access_token": "ya29.token", "expires_in": 3600, "token_type": "Bearer"})
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.received.append((self.path, headers, json.loads(raw)))
        if self.server.status != 200:
            return self._send({"message": f"denied for {headers['authorization']}"}, self.server.status)
        text = {"type": "text", "text": '{"findings": []}'}
        return self._send(
            {"type": "message", "model": "m", "content": [text], "stop_reason": "end_turn", "usage": USAGE}
        )

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """
        Say nothing.
        """

    def _send(self, body: Any, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(name="cloud")
def cloud_fixture() -> Iterator[Cloud]:
    with Cloud() as cloud:
        yield cloud


def ask(settings: JudgeSettings, environ: dict[str, str], ledger: Ledger, turn: Turn) -> Judgement:
    judge = connect(settings, environ, ledger, CallContext(), deadline_at=time.monotonic() + 20)
    assert isinstance(judge, Judge), judge
    return judge(turn)


def bedrock(cloud: Cloud) -> JudgeSettings:
    return JudgeSettings(backend="bedrock", model=BEDROCK_MODEL, base_url=cloud.url)


def test_bedrock_gets_a_signed_request(
    cloud: Cloud, ledger: Ledger, turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    The model stands in the path and not in the body, and the signature covers just the headers that arrive.
    """
    pytest.importorskip("boto3")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-other: 1")

    judged = ask(bedrock(cloud), {**AWS, "AWS_SESSION_TOKEN": "session"}, ledger, turn)

    assert judged.outcome == "answered", judged.detail
    ((path, headers, body),) = cloud.received
    assert path == f"/model/{BEDROCK_MODEL}/invoke"
    assert "model" not in body
    assert body["anthropic_version"]
    assert (body["max_tokens"], body["messages"][0]["role"]) == (1024, "user")
    signed = re.search(
        r"Credential=AKIDEXAMPLE/\d{8}/eu-west-1/bedrock/aws4_request, SignedHeaders=(\S+),", headers["authorization"]
    )
    assert signed
    assert set(signed[1].split(";")) <= set(headers)
    assert headers["x-amz-security-token"] == "session"
    assert not [name for name in headers if name.startswith(("x-stainless", "x-other"))]
    end = ended(ledger.calls()[0])
    assert end.usage is not None
    assert (end.usage.input_tokens, ledger.calls()[0].start.backend) == (700, "bedrock")


def test_bedrocks_signature_is_the_one_that_amazons_own_signer_gives(cloud: Cloud, ledger: Ledger, turn: Turn) -> None:
    """
    Signed once more by botocore, from what arrived, it is the same: nothing was changed on the way.
    """
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest  # pyright: ignore
    from botocore.credentials import Credentials  # pyright: ignore

    bodies: list[bytes] = []
    real = _Handler.do_POST

    def keep(self: _Handler) -> None:
        import io

        bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.rfile = io.BufferedReader(io.BytesIO(bodies[-1]))  # pyright: ignore[reportArgumentType]
        real(self)
        self.close_connection = True

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Handler, "do_POST", keep)
        ask(bedrock(cloud), AWS, ledger, turn)

    ((path, headers, _),) = cloud.received
    names = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    again = AWSRequest(
        method="POST",
        url=cloud.url + path,
        headers={name: headers[name] for name in names if name != "x-amz-date"},
        data=bodies[0],
    )
    again.context["timestamp"] = headers["x-amz-date"]
    signer = auth.SigV4Auth(Credentials(*AWS_KEYS.values()), "bedrock", "eu-west-1")
    again.headers["X-Amz-Date"] = headers["x-amz-date"]
    canonical = signer.canonical_request(again)
    signature = signer.signature(signer.string_to_sign(again, canonical), again)
    assert headers["authorization"].endswith(f"Signature={signature}")


def test_bedrock_takes_a_bearer_token_without_any_other_library(cloud: Cloud, ledger: Ledger, turn: Turn) -> None:
    """
    A token of Bedrock wins over access keys.
    """
    judged = ask(bedrock(cloud), {**AWS, "AWS_BEARER_TOKEN_BEDROCK": "bearer-of-bedrock"}, ledger, turn)

    ((_, headers, _),) = cloud.received
    assert judged.outcome == "answered", judged.detail
    assert headers["authorization"] == "Bearer bearer-of-bedrock"


def test_what_a_cloud_says_is_told_without_its_secret(cloud: Cloud, ledger: Ledger, turn: Turn) -> None:
    """
    A cloud that repeats a token in its error does not put it into the ledger.
    """
    cloud.status = 403

    judged = ask(bedrock(cloud), {**AWS, "AWS_BEARER_TOKEN_BEDROCK": "bearer-of-bedrock"}, ledger, turn)

    assert judged.outcome == "error"
    assert "status 403" in judged.detail
    assert "bearer-of-bedrock" not in judged.detail + str(ledger.calls())


def credentials(folder: Path, cloud: Cloud) -> dict[str, str]:
    """
    A service account's file as Google gives it, with a key of its own and its address of tokens on loopback.
    """
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization  # pyright: ignore
    from cryptography.hazmat.primitives.asymmetric import rsa  # pyright: ignore

    pem: bytes = rsa.generate_private_key(65537, 2048).private_bytes(  # pyright: ignore
        serialization.Encoding.PEM,  # pyright: ignore
        serialization.PrivateFormat.PKCS8,  # pyright: ignore
        serialization.NoEncryption(),  # pyright: ignore
    )
    account = {"type": "service_account", "client_email": "judge@my-project.example", "private_key": pem.decode()}
    path = folder / "account.json"
    path.write_text(json.dumps({**account, "token_uri": f"{cloud.url}/token"}))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}


def test_vertex_gets_a_token_and_its_own_path(cloud: Cloud, ledger: Ledger, turn: Turn, tmp_path: Path) -> None:
    """
    Project, region and model stand in the path, and the token is one that the credentials were exchanged for.
    """
    pytest.importorskip("google.oauth2.credentials")
    settings = JudgeSettings(backend="vertex", base_url=cloud.url)

    judged = ask(settings, {**GOOGLE, **credentials(tmp_path, cloud)}, ledger, turn)

    assert judged.outcome == "answered", judged.detail
    ((path, headers, body),) = cloud.received
    where = "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models"
    assert path == f"{where}/claude-sonnet-5-5:rawPredict"
    assert headers["authorization"] == "Bearer ya29.token"
    assert body["anthropic_version"]
    assert "model" not in body


@pytest.mark.parametrize("content", [None, "", "[]", '{"type": "external_account"}', '{"type": "authorized_user"}'])
def test_vertex_without_usable_credentials_is_an_error(
    cloud: Cloud, ledger: Ledger, turn: Turn, tmp_path: Path, content: str | None
) -> None:
    """
    One line names the file, and nothing is sent.
    """
    pytest.importorskip("google.oauth2.credentials")
    path = tmp_path / "adc.json"
    if content is not None:
        path.write_text(content)

    judged = ask(
        JudgeSettings(backend="vertex", base_url=cloud.url),
        {**GOOGLE, "GOOGLE_APPLICATION_CREDENTIALS": str(path)},
        ledger,
        turn,
    )

    assert judged.outcome == "error"
    assert str(path) in judged.detail
    assert cloud.received == []


@pytest.mark.parametrize(
    ("settings", "environ", "endpoint"),
    [
        pytest.param(
            {"backend": "bedrock", "model": BEDROCK_MODEL},
            AWS,
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            id="bedrock",
        ),
        pytest.param(
            {"backend": "vertex"},
            {**GOOGLE, "HOME": "/home/a"},
            "https://europe-west1-aiplatform.googleapis.com/v1",
            id="vertex",
        ),
        pytest.param(
            {"backend": "vertex"},
            {**GOOGLE, "CLOUD_ML_REGION": "global", "HOME": "/home/a"},
            "https://aiplatform.googleapis.com/v1",
            id="vertex-global",
        ),
    ],
)
def test_a_cloud_has_the_address_of_its_region(
    settings: dict[str, Any], environ: dict[str, str], endpoint: str
) -> None:
    """
    The address is the cloud's documented one.
    """
    found = choose(JudgeSettings(**settings), environ)

    assert isinstance(found, Target)
    assert found.endpoint == endpoint


@pytest.mark.parametrize(
    ("settings", "environ", "named"),
    [
        pytest.param({"backend": "bedrock"}, AWS, "judge.model", id="the-vendors-id-of-a-model"),
        pytest.param({"backend": "bedrock", "model": BEDROCK_MODEL}, AWS_KEYS, "AWS_REGION", id="no-region"),
        pytest.param(
            {"backend": "bedrock", "model": BEDROCK_MODEL}, {"AWS_REGION": "a.b/c"}, "AWS_REGION", id="no-such-region"
        ),
        pytest.param(
            {"backend": "bedrock", "model": BEDROCK_MODEL},
            {"AWS_REGION": "eu-west-1", "ANTHROPIC_API_KEY": "k"},
            "AWS_BEARER_TOKEN_BEDROCK",
            id="nothing-that-pays",
        ),
        pytest.param({"backend": "vertex"}, {"CLOUD_ML_REGION": "us"}, "ANTHROPIC_VERTEX_PROJECT_ID", id="no-project"),
        pytest.param({"backend": "vertex"}, GOOGLE, "GOOGLE_APPLICATION_CREDENTIALS", id="no-file"),
        pytest.param({"backend": "vertex"}, {}, "CLOUD_ML_REGION", id="nothing"),
    ],
)
def test_what_a_cloud_lacks_is_named(settings: dict[str, Any], environ: dict[str, str], named: str) -> None:
    """
    There is no judge, and no other vendor is asked.
    """
    found = choose(JudgeSettings(**settings), environ)

    assert isinstance(found, NoJudge)
    assert named in found.reason


def test_a_library_that_is_missing_is_named() -> None:
    """
    One line says what to install.
    """
    code = f"""
import sys, time
sys.modules["boto3"] = None
from turngate.judge.connect import connect
from turngate.judge.context import CallContext
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn
settings = JudgeSettings(backend="bedrock", model={BEDROCK_MODEL!r}, base_url="http://127.0.0.1:9")
judge = connect(settings, {AWS!r}, None, CallContext(), deadline_at=time.monotonic() + 20)
print(judge(Turn(request="a", reply="b")).detail)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "an access key of Bedrock needs a library: pip install 'turngate[bedrock]'"
