"""
A team's service: one machine judges, the others send it turns; and what the port tells those who send something else.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from turngate.judge.scripted_api import ScriptedMessagesApi
from turngate.judge.service.wire import write_request
from turngate.rubric.turn import Turn

from .hook_runner import CLAIM, Hook, a_stop
from .serve_process import Person

TOKEN = "a-token-for-the-team"


class Team(NamedTuple):
    """
    The service, its port, and the endpoint that it asks with a key of its own.
    """

    server: Person
    url: str
    api: ScriptedMessagesApi

    def post(self, body: bytes | str, content_type: str = "application/json", token: str = TOKEN) -> httpx.Response:
        """
        Send a request to judge over the port.
        """
        headers = {"authorization": f"Bearer {token}", "content-type": content_type}
        return httpx.post(f"{self.url}/v1/judge", content=body, headers=headers, trust_env=False)


@pytest.fixture(name="team")
def team_fixture(short_path: Path) -> Iterator[Team]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ScriptedMessagesApi(otherwise=CLAIM, key="the-teams-key") as api:
        environ = {
            "ANTHROPIC_API_KEY": "the-teams-key",
            "TURNGATE_JUDGE_BASE_URL": api.url,
            "TURNGATE_SERVICE_HTTP_PORT": str(port),
            "TURNGATE_SERVICE_TOKEN": TOKEN,
            "TURNGATE_JUDGE_DEADLINE_S": "60",
        }
        server = Person(short_path / "server", **environ)
        with server.serving():
            yield Team(server, f"http://127.0.0.1:{port}", api)


@pytest.fixture(name="developer", params=["in-process", "relay"])
def developer_fixture(team: Team, short_path: Path, request: pytest.FixtureRequest) -> Iterator[Hook]:
    """
    A machine without any key; its hook decides by itself, or by a service of its own.
    """
    folder = short_path / "developer"
    folder.mkdir()
    hook = Hook(
        folder,
        TURNGATE_JUDGE_BACKEND="remote",
        TURNGATE_JUDGE_DEADLINE_S="60",
        TURNGATE_JUDGE_BASE_URL=team.url,
        TURNGATE_REMOTE_TOKEN=TOKEN,
    )
    if request.param == "in-process":
        yield hook
        return
    with Person(folder / "own", **hook.environ).serving():
        yield hook


def test_a_turn_is_judged_by_the_team_and_held_on_the_developers_machine(team: Team, developer: Hook) -> None:
    """
    The machine that called the model writes the call's line; the other one refers to it, and keeps the cap.
    """
    ran = [developer.run(a_stop()) for _ in range(3)]

    assert [one.holds for one in ran] == [True, True, False]
    assert ran[0].answer["reason"] == CLAIM["findings"][0]["reason"]
    own = developer.log()
    assert [line["outcome"] for line in own] == ["block_verdict", "block_verdict", "pass_cap_spent"]
    assert [line["calls"] for line in own] == [[], [], []]
    shown = team.server.run("show", own[0]["detail"].rpartition(" ")[2]).out
    assert "claude-sonnet-5-5" in shown
    cost = json.loads(team.server.run("cost", "--json").out)
    assert cost["total"]["calls"] == 2
    assert own[0]["detail"].startswith("calls of the team's service: ")


def test_secrets_leave_no_developers_machine(team: Team, developer: Hook) -> None:
    """
    What the team's service gets, and what it asks its endpoint, was masked where it was typed.
    """
    secret = "ghp_" + "a1B2" * 9

    developer.run(a_stop(last_assistant_message=f"Done. All tests pass. The token is {secret}."))

    [request] = team.api.requests
    assert "All tests pass." in request.user_text
    assert secret not in request.user_text


@pytest.mark.parametrize(
    ("environ", "outcome", "words"),
    [
        pytest.param(
            {"TURNGATE_REMOTE_TOKEN": "another"}, "pass_judge_error", "TURNGATE_REMOTE_TOKEN", id="wrong-token"
        ),
        pytest.param({"TURNGATE_REMOTE_TOKEN": ""}, "pass_no_judge", "TURNGATE_REMOTE_TOKEN", id="no-token"),
        pytest.param(
            {"TURNGATE_JUDGE_BASE_URL": "http://team.example"}, "pass_no_judge", "https://", id="readable-on-the-way"
        ),
    ],
)
def test_a_developer_who_cannot_ask_is_told_why(
    developer: Hook, environ: dict[str, str], outcome: str, words: str
) -> None:
    """
    The turn ends, and the log names the variable or the setting.
    """
    ran = developer.run(a_stop(), environ=environ)

    assert not ran.holds
    [line] = developer.log()
    assert (line["outcome"], words in line["detail"]) == (outcome, True)


A_TURN = write_request(Turn(request="Write it.", reply="Done. All tests pass."), 5.0)


def test_a_turn_can_be_judged_without_any_hook(team: Team) -> None:
    """
    The wire format alone is enough.
    """
    response = team.post(A_TURN)

    reply = response.json()
    assert (response.status_code, reply["outcome"]) == (200, "answered")
    assert [finding["fault"] for finding in reply["verdict"]["findings"]] == ["claim"]
    assert len(reply["calls"]) == 1


def _changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(A_TURN), **fields}).encode()


@pytest.mark.parametrize(
    ("body", "content_type", "status", "words"),
    [
        pytest.param(b"no JSON", "application/json", 400, "JSON", id="bad-json"),
        pytest.param(A_TURN, "text/plain", 415, "application/json", id="wrong-content-type"),
        pytest.param(_changed(extra=1), "application/json", 422, "extra", id="unknown-field"),
        pytest.param(_changed(version=2), "application/json", 400, "version", id="newer-version"),
        pytest.param(_changed(turn={"reply": 1}), "application/json", 422, "turn", id="ill-typed"),
        pytest.param(
            _changed(turn={**json.loads(A_TURN)["turn"], "reply": "x" * 900_000}),
            "application/json",
            413,
            "turn.reply",
            id="huge-field",
        ),
        pytest.param(b"[" * 2_000_000, "application/json", 413, "1,000,000", id="huge-body"),
    ],
)
def test_bad_input_gets_one_clear_line(team: Team, body: bytes, content_type: str, status: int, words: str) -> None:
    """
    A 4xx with one JSON line that names what is wrong, and no call is made.
    """
    response = team.post(body, content_type)

    assert response.status_code == status
    line = response.json()["error"]
    assert words in line
    assert "\n" not in line
    assert team.api.requests == []


def test_without_the_token_only_health_is_told(team: Team) -> None:
    """
    A stranger learns that the service lives, and its version.
    """
    stranger = httpx.Client(base_url=team.url, trust_env=False)
    with stranger:
        assert stranger.get("/healthz").json() == {"status": "ok", "version": "0.1.0"}
        for path in ("/metrics", "/v1/judge", "/v1/hook/claude-code", "/"):
            assert stranger.get(path).status_code == 401
        known = {"authorization": f"Bearer {TOKEN}"}
        assert "pid" in stranger.get("/healthz", headers=known).json()
        assert b"turngate_build_info" in stranger.get("/metrics", headers=known).content
    assert team.post(A_TURN, token="a-token-for-the-tea").status_code == 401


@pytest.mark.parametrize(
    "headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}], ids=str
)
def test_no_web_page_reaches_the_port(team: Team, headers: dict[str, str]) -> None:
    """
    Neither by a name of its own for 127.0.0.1 nor from its own origin, even where it knew the token.
    """
    known = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json", **headers}

    response = httpx.post(f"{team.url}/v1/judge", content=A_TURN, headers=known, trust_env=False)

    assert response.status_code == 403
    assert team.api.requests == []


def test_a_token_is_made_where_none_is_given(short_path: Path) -> None:
    """
    In a file that only its user can read, the same at the next start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    person = Person(short_path / "p", TURNGATE_SERVICE_HTTP_PORT=str(port))
    tokens: list[str] = []
    for _ in range(2):
        with person.serving():
            file = person.state / "turngate.token"
            tokens.append(file.read_text().strip())
            assert file.stat().st_mode & 0o777 == 0o600
            headers = {"authorization": f"Bearer {tokens[-1]}"}
            assert httpx.get(f"http://127.0.0.1:{port}/metrics", headers=headers, trust_env=False).status_code == 200

    assert tokens[0] == tokens[1]
    assert len(tokens[0]) >= 32
