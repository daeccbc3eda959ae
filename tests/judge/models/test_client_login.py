"""
Where the client lies, who is signed in, and when `auto` asks it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from turngate.judge.connect import NoJudge, Target, choose, needed_variables
from turngate.judge.models.client_login import VARIABLES, Login, NoLogin, find_login
from turngate.judge.settings import JudgeSettings

OWN_LOGIN = {"claudeAiOauth": {"accessToken": "sk-ant-oat01-x", "refreshToken": "r", "expiresAt": 1}}


@pytest.fixture(name="home")
def home_fixture(tmp_path: Path) -> Path:
    """
    A home whose client is on the PATH, and where nobody is signed in.
    """
    program(tmp_path / "bin")
    (tmp_path / ".claude").mkdir()
    return tmp_path


def program(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "claude"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def sign_in(config: Path) -> None:
    config.mkdir(parents=True, exist_ok=True)
    (config / ".credentials.json").write_text(json.dumps(OWN_LOGIN))


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": f"{home / 'bin'}:/usr/bin", **more}


def login(found: Login | NoLogin) -> Login:
    assert isinstance(found, Login), found
    return found


@pytest.mark.parametrize(
    ("more", "paid_by"),
    [
        pytest.param({"ANTHROPIC_API_KEY": "k"}, "ANTHROPIC_API_KEY", id="key"),
        pytest.param({"ANTHROPIC_AUTH_TOKEN": "t"}, "ANTHROPIC_AUTH_TOKEN", id="gateway-token"),
        pytest.param({"CLAUDE_CODE_OAUTH_TOKEN": "t"}, "CLAUDE_CODE_OAUTH_TOKEN", id="long-lived-token"),
        pytest.param(
            {"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_OAUTH_TOKEN": "t"}, "ANTHROPIC_API_KEY", id="the-key-comes-first"
        ),
    ],
)
def test_a_key_or_a_token_of_the_environment_is_a_log_in(home: Path, more: dict[str, str], paid_by: str) -> None:
    """
    What pays is named by its variable.
    """
    found = login(find_login(environ(home, **more)))

    assert found.key_variable == paid_by
    assert found.program == str(home / "bin" / "claude")
    assert dict(found.variables) == environ(home, **more)


@pytest.mark.skipif(sys.platform == "darwin", reason="the log-in lies in the keychain there")
def test_the_clients_own_log_in_is_a_file_of_its_config_folder(home: Path) -> None:
    """
    `CLAUDE_CONFIG_DIR` counts, and an empty log-in does not.
    """
    assert isinstance(find_login(environ(home)), NoLogin)

    (home / ".claude" / ".credentials.json").write_text("{}")
    assert isinstance(find_login(environ(home)), NoLogin)

    sign_in(home / "elsewhere")
    assert isinstance(find_login(environ(home)), NoLogin)
    assert login(find_login(environ(home, CLAUDE_CONFIG_DIR=str(home / "elsewhere")))).key_variable == ""

    sign_in(home / ".claude")
    assert login(find_login(environ(home))).key_variable == ""


def test_on_macos_the_account_in_the_clients_state_is_a_log_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The token lies in the keychain, which would ask the person.
    """
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isinstance(find_login(environ(home)), NoLogin)

    (home / ".claude.json").write_text(json.dumps({"oauthAccount": {"emailAddress": "a@example.org"}}))

    assert login(find_login(environ(home))).key_variable == ""


def test_a_log_in_that_is_a_folder_or_a_pipe_is_none(home: Path) -> None:
    """
    Nothing is waited for, and nothing is raised.
    """
    (home / ".claude" / ".credentials.json").mkdir()
    assert isinstance(find_login(environ(home)), NoLogin)


def test_the_client_is_looked_for_on_absolute_paths_only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A relative entry would be the project's; the places of the client's own installers come last.
    """
    project = home / "project"
    program(project / "bin")
    program(project)
    monkeypatch.chdir(project)
    token = {"CLAUDE_CODE_OAUTH_TOKEN": "t"}

    assert isinstance(find_login({"HOME": str(home), "PATH": "bin:.::", **token}), NoLogin)

    program(home / ".local" / "bin")
    found = login(find_login({"HOME": str(home), "PATH": "bin:.::/usr/bin", **token}))
    assert found.program == str(home / ".local" / "bin" / "claude")
    assert dict(found.variables)["PATH"] == "/usr/bin"


@pytest.mark.parametrize("mode", [0o644, None], ids=["not-executable", "a-folder"])
def test_what_cannot_be_run_is_no_client(home: Path, mode: int | None) -> None:
    """
    The reason says where it was looked for.
    """
    path = home / "bin" / "claude"
    path.unlink()
    if mode is None:
        path.mkdir()
    else:
        path.write_text("")
        path.chmod(mode)

    assert find_login(environ(home, CLAUDE_CODE_OAUTH_TOKEN="t")) == NoLogin("the client 'claude' is not on the PATH")


# Who is chosen


def choice(home: Path, settings: dict[str, Any] | None = None, **more: str) -> Target | NoJudge:
    return choose(JudgeSettings(**(settings or {})), environ(home, **more))


def test_auto_asks_the_client_where_there_is_no_key(home: Path) -> None:
    """
    A key comes first, then the client's log-in, then nobody, and then both reasons are told.
    """
    nobody = choice(home)
    assert nobody == NoJudge(
        "no judge: ANTHROPIC_API_KEY is not set, and the client 'claude' is not signed in: run it and type /login"
    )

    by_token = choice(home, CLAUDE_CODE_OAUTH_TOKEN="t")
    assert isinstance(by_token, Target)
    assert (by_token.backend, by_token.key_variable) == ("claude-cli", "CLAUDE_CODE_OAUTH_TOKEN")

    by_key = choice(home, CLAUDE_CODE_OAUTH_TOKEN="t", ANTHROPIC_API_KEY="k")
    assert isinstance(by_key, Target)
    assert (by_key.backend, by_key.key) == ("anthropic", "k")


def test_a_key_that_is_not_meant_for_the_judge_does_not_pay_for_its_client(home: Path) -> None:
    """
    Where `judge.api_key_env` names another variable, and that is not set, the client gets no key.
    """
    sign_in(home / ".claude")

    found = choice(home, {"api_key_env": "JUDGE_KEY"}, ANTHROPIC_API_KEY="k")

    if sys.platform != "darwin":
        assert isinstance(found, Target)
        assert (found.backend, found.key_variable) == ("claude-cli", "")
        assert "ANTHROPIC_API_KEY" not in dict(found.variables)


@pytest.mark.parametrize(
    ("settings", "more", "named"),
    [
        pytest.param({}, {"ANTHROPIC_API_KEY": "clé"}, "ANTHROPIC_API_KEY", id="auto-with-a-bad-key"),
        pytest.param({"base_url": "https://g.example"}, {}, "ANTHROPIC_API_KEY", id="auto-with-an-address"),
        pytest.param({"backend": "anthropic"}, {}, "ANTHROPIC_API_KEY", id="a-key-was-asked-for"),
        pytest.param({}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK", id="auto-on-bedrock"),
        pytest.param(
            {"backend": "claude-cli"}, {"CLAUDE_CODE_USE_VERTEX": "1"}, "CLAUDE_CODE_USE_VERTEX", id="client-on-vertex"
        ),
        pytest.param(
            {"backend": "claude-cli", "base_url": "https://g.example"},
            {},
            "judge.base_url",
            id="client-with-an-address",
        ),
    ],
)
def test_the_client_is_no_way_round_what_was_set(
    home: Path, settings: dict[str, Any], more: dict[str, str], named: str
) -> None:
    """
    What names another endpoint, another payer or another cloud is not passed over in silence.
    """
    found = choice(home, settings, CLAUDE_CODE_OAUTH_TOKEN="t", **more)

    assert isinstance(found, NoJudge)
    assert named in found.reason


@pytest.mark.parametrize(
    ("settings", "given", "needed"),
    [
        pytest.param({}, {"ANTHROPIC_API_KEY": "k"}, ("ANTHROPIC_API_KEY",), id="auto-with-a-key"),
        pytest.param({"base_url": "https://g.example"}, {}, ("ANTHROPIC_API_KEY",), id="auto-with-an-address"),
        pytest.param({"backend": "anthropic", "api_key_env": "K"}, {}, ("K",), id="anthropic"),
        pytest.param({"backend": "claude-cli"}, {"ANTHROPIC_API_KEY": "k"}, VARIABLES, id="client"),
        pytest.param({"api_key_env": "K"}, {}, ("K", *VARIABLES), id="auto-with-a-key-that-is-not-known-yet"),
    ],
)
def test_a_service_asks_a_hook_for_what_its_judge_takes(
    settings: dict[str, Any], given: dict[str, str], needed: tuple[str, ...]
) -> None:
    """
    The variables of a person's log-in are relayed only where the client may be asked.
    """
    assert needed_variables(JudgeSettings(**settings), given) == needed
