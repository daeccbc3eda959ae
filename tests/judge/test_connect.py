"""
Which judge is chosen, by settings and environment.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from turngate.costing.ledger import Ledger
from turngate.judge.connect import VENDOR_URL, NoJudge, Target, choose, connect
from turngate.judge.context import CallContext
from turngate.judge.settings import JudgeSettings
from turngate.rubric.turn import Turn

GATEWAY = "https://gateway.example/anthropic"


def choice(settings: JudgeSettings, environ: dict[str, str], scripted: Path | None = None) -> Target | NoJudge:
    return choose(settings, environ, scripted)


@pytest.mark.parametrize(
    ("settings", "environ", "key"),
    [
        pytest.param(JudgeSettings(), {"ANTHROPIC_API_KEY": "k1"}, "k1", id="auto-with-the-default-variable"),
        pytest.param(JudgeSettings(backend="anthropic"), {"ANTHROPIC_API_KEY": "k1"}, "k1", id="named-back-end"),
        pytest.param(
            JudgeSettings(api_key_env="JUDGE_KEY"),
            {"ANTHROPIC_API_KEY": "k1", "JUDGE_KEY": "k2"},
            "k2",
            id="another-variable-wins",
        ),
        pytest.param(JudgeSettings(), {"ANTHROPIC_API_KEY": " k1\n"}, "k1", id="pasted-with-white-space"),
    ],
)
def test_the_key_is_that_of_the_named_variable(settings: JudgeSettings, environ: dict[str, str], key: str) -> None:
    """
    The variable that `judge.api_key_env` names holds the key.
    """
    found = choice(settings, environ)

    assert isinstance(found, Target)
    assert found.key == key


@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        pytest.param(JudgeSettings(), {}, id="auto-without-a-key"),
        pytest.param(JudgeSettings(backend="anthropic"), {}, id="named-without-a-key"),
        pytest.param(JudgeSettings(), {"ANTHROPIC_API_KEY": ""}, id="empty"),
        pytest.param(JudgeSettings(api_key_env="JUDGE_KEY"), {"ANTHROPIC_API_KEY": "k1"}, id="other-variable-unset"),
        pytest.param(JudgeSettings(), {"ANTHROPIC_AUTH_TOKEN": "t1"}, id="a-token-is-not-asked-for"),
        pytest.param(JudgeSettings(), {"ANTHROPIC_API_KEY": "k1\r\nx-evil: 1"}, id="header-injection"),
        pytest.param(JudgeSettings(), {"ANTHROPIC_API_KEY": "clé"}, id="not-ascii"),
        pytest.param(JudgeSettings(), {"ANTHROPIC_API_KEY": "\udcff"}, id="lone-surrogate"),
    ],
)
def test_without_a_usable_key_there_is_no_judge(settings: JudgeSettings, environ: dict[str, str]) -> None:
    """
    No key, no judge, and a reason that names the variable.
    """
    found = choice(settings, environ)

    assert isinstance(found, NoJudge)
    assert settings.api_key_env in found.reason


def test_a_key_in_place_of_a_variables_name_is_never_repeated() -> None:
    """
    Neither reason nor repr repeats what stands where a variable's name is meant, or a password in an address.
    """
    secret = "sk-ant-api03-very-secret"
    settings = JudgeSettings(api_key_env=secret, base_url="https://me:hunter2@gateway.example")

    found = choice(settings, {"ANTHROPIC_API_KEY": "k1"})

    assert isinstance(found, NoJudge)
    assert secret not in found.reason + repr(settings)
    assert "hunter2" not in found.reason + repr(settings)


def test_a_key_is_not_in_the_repr_of_a_target() -> None:
    """
    A target can be logged.
    """
    found = choice(JudgeSettings(), {"ANTHROPIC_API_KEY": "k-secret"})

    assert "k-secret" not in repr(found)


@pytest.mark.parametrize(
    ("setting", "environ", "endpoint"),
    [
        pytest.param("", {}, VENDOR_URL, id="the-vendor"),
        pytest.param("", {"ANTHROPIC_BASE_URL": GATEWAY}, GATEWAY, id="variable"),
        pytest.param("http://127.0.0.1:9", {"ANTHROPIC_BASE_URL": GATEWAY}, "http://127.0.0.1:9", id="setting-wins"),
        pytest.param("", {"ANTHROPIC_BASE_URL": "  "}, VENDOR_URL, id="blank-variable"),
        pytest.param(GATEWAY + "/v1/", {}, GATEWAY, id="copied-with-v1"),
        pytest.param("http://[::1]:8080", {}, "http://[::1]:8080", id="ipv6"),
        pytest.param(GATEWAY, {"CLAUDE_CODE_USE_BEDROCK": "1"}, GATEWAY, id="cloud-with-a-setting"),
        pytest.param("", {"CLAUDE_CODE_USE_VERTEX": "0"}, VENDOR_URL, id="cloud-off"),
        pytest.param("", {"CLAUDE_CODE_USE_BEDROCK": "false"}, VENDOR_URL, id="cloud-false"),
    ],
)
def test_the_endpoint_is_the_setting_else_the_variable_else_the_vendor(
    setting: str, environ: dict[str, str], endpoint: str
) -> None:
    """
    The nearest of the three addresses is asked.
    """
    found = choice(JudgeSettings(base_url=setting), {"ANTHROPIC_API_KEY": "k1", **environ})

    assert isinstance(found, Target)
    assert found.endpoint == endpoint


@pytest.mark.parametrize(
    ("setting", "environ", "named"),
    [
        pytest.param("", {"CLAUDE_CODE_USE_BEDROCK": "1"}, "CLAUDE_CODE_USE_BEDROCK", id="bedrock"),
        pytest.param("", {"CLAUDE_CODE_USE_VERTEX": "true"}, "CLAUDE_CODE_USE_VERTEX", id="vertex"),
        pytest.param(
            "",
            {"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_BASE_URL": GATEWAY},
            "CLAUDE_CODE_USE_BEDROCK",
            id="bedrock-with-the-clients-own-address",
        ),
        pytest.param("ftp://gateway.example", {}, "judge.base_url", id="scheme"),
        pytest.param("gateway.example", {}, "judge.base_url", id="no-scheme"),
        pytest.param("https://", {}, "judge.base_url", id="no-host"),
        pytest.param("https://h:99999", {}, "judge.base_url", id="port"),
        pytest.param("https://h:x", {}, "judge.base_url", id="port-no-number"),
        pytest.param("https://[::1", {}, "judge.base_url", id="open-bracket"),
        pytest.param("https://me:pw@h", {}, "judge.base_url", id="password"),
        pytest.param("https://h/?key=1", {}, "judge.base_url", id="query"),
        pytest.param("https://h/a b", {}, "judge.base_url", id="white-space"),
        pytest.param("", {"ANTHROPIC_BASE_URL": "nonsense"}, "ANTHROPIC_BASE_URL", id="bad-variable"),
    ],
)
def test_an_endpoint_that_cannot_be_meant_is_no_judge(setting: str, environ: dict[str, str], named: str) -> None:
    """
    There is no silent fall-back to the vendor, and the reason names what is wrong.
    """
    found = choice(JudgeSettings(base_url=setting), {"ANTHROPIC_API_KEY": "k1", **environ})

    assert isinstance(found, NoJudge)
    assert named in found.reason
    assert "\n" not in found.reason


def test_off_is_no_judge() -> None:
    """
    A judge that is switched off is not asked, whatever key there is.
    """
    found = choice(JudgeSettings(backend="off"), {"ANTHROPIC_API_KEY": "k1"})

    assert found == NoJudge("judge.backend is off")


def test_an_unknown_rubric_is_no_judge() -> None:
    """
    A rubric that cannot be loaded gives a reason, not an exception.
    """
    found = connect(
        JudgeSettings(rubric_name="no_such_rubric"), {"ANTHROPIC_API_KEY": "k1"}, None, CallContext(), deadline_at=0.0
    )

    assert isinstance(found, NoJudge)
    assert "no_such_rubric" in found.reason


def test_the_script_of_the_scripted_back_end_is_read_line_by_line(tmp_path: Path, ledger: Ledger, turn: Turn) -> None:
    """
    Each call takes the next line, also from a new process: the ledger says how many are used up.
    """
    script = tmp_path / "scripted.jsonl"
    script.write_text('{"findings": []}\n{"error": "down"}\nno verdict\n')

    outcomes: list[str] = []
    for _ in range(4):
        ask = connect(
            JudgeSettings(backend="scripted"),
            {},
            ledger,
            CallContext(),
            deadline_at=time.monotonic() + 5,
            scripted=script,
        )
        assert not isinstance(ask, NoJudge)
        outcomes.append(ask(turn).outcome)

    assert outcomes == ["answered", "error", "unreadable", "error"]


HEAVY = (
    "anthropic",
    "httpx",
    "httpx2",
    "pydantic",
    "tenacity",
    "asyncio",
    "genai_prices",
    "rich",
    "dataclasses",
    "http",
)


@pytest.mark.parametrize("environ", [{}, {"ANTHROPIC_API_KEY": "k1"}], ids=["no-judge", "judge-not-asked-yet"])
def test_connecting_imports_nothing_heavy(environ: dict[str, str]) -> None:
    """
    Until somebody is asked, no SDK, no event loop and no price table is loaded.
    """
    code = f"""
import sys
from turngate.judge.connect import connect
from turngate.judge.context import CallContext
from turngate.judge.settings import JudgeSettings
import turngate.judge.sharing
connect(JudgeSettings(), {environ!r}, None, CallContext(), deadline_at=0.0)
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
