"""
The settings: where they come from, which wins, and what a project may not do.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from turngate.stopgate.settings import KEYS, BadSetting, Settings, ledger_url, read_settings, variable_of


@pytest.fixture(name="project")
def make_project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    return project


def user_environment(tmp_path: Path, content: str = "", **more: str) -> dict[str, str]:
    file = tmp_path / "config.toml"
    file.write_text(content)
    return {"TURNGATE_CONFIG": str(file), **more}


def test_defaults_are_those_of_the_documents(tmp_path: Path) -> None:
    """
    Without any file the numbers of docs/settings.md hold.
    """
    settings = read_settings(user_environment(tmp_path)).settings

    assert settings == Settings()
    assert (settings.gate_mode, settings.gate_continuations, settings.gate_style) == ("block", 2, "decision")
    assert (settings.background_mode, settings.background_holds_per_task) == ("block", 1)
    assert (settings.judge.model, settings.judge.deadline_s) == ("claude-sonnet-5-5", 8)
    assert (settings.judge.max_input_tokens, settings.judge.max_tokens, settings.judge.effort) == (2500, 1024, "medium")
    assert [settings.action(fault) for fault in ("claim", "promise", "defer", "cave", "opener")] == [
        *["hold"] * 4,
        "hold_once",
    ]


def test_the_environment_beats_the_users_file_beats_the_projects(tmp_path: Path, project: Path) -> None:
    """
    Each place overrides the one below it.
    """
    (project / ".turngate.toml").write_text('[background]\nmode = "off"\nholds_per_task = 3\nexempt_types = ["a"]\n')
    environ = user_environment(
        tmp_path,
        '[background]\nholds_per_task = 2\nexempt_types = ["b"]\n',
        TURNGATE_BACKGROUND_EXEMPT_TYPES="c, d",
    )

    settings = read_settings(environ, project_folders=[str(project)]).settings

    assert settings.background_mode == "off"
    assert settings.background_holds_per_task == 2
    assert settings.background_exempt_types == ("c", "d")


@pytest.mark.parametrize("key", KEYS)
def test_a_bad_value_is_named_with_file_and_key(tmp_path: Path, key: str) -> None:
    """
    One line names file, key, value and what was expected, for every key there is.
    """
    section, _, name = key.rpartition(".")
    environ = user_environment(tmp_path, f'[{section}]\n{name} = [1, "no\\nsuch"]\n')

    with pytest.raises(BadSetting) as caught:
        read_settings(environ)

    line = str(caught.value)
    assert "\n" not in line
    shown = "…" if key in ("judge.api_key_env", "judge.base_url", "ledger.url") else "no\\nsuch"
    assert all(part in line for part in (environ["TURNGATE_CONFIG"], key, shown, "expected"))


@pytest.mark.parametrize(
    "key", [key for key in KEYS if "exempt" not in key and "checks" not in key and "allow" not in key]
)
def test_every_key_has_a_variable(tmp_path: Path, key: str) -> None:
    """
    A bad value in the environment is named by its variable.
    """
    with pytest.raises(BadSetting, match=variable_of(key)):
        read_settings(user_environment(tmp_path, **{variable_of(key): "no\tgood"}))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"gate.mode = ", id="broken"),
        pytest.param(b"\xff\xfe", id="not text"),
        pytest.param(b"a = 1\na = 2", id="a key twice"),
        pytest.param(b"x = " + b"[" * 5000, id="nested too deeply"),
    ],
)
def test_a_file_that_is_no_toml_is_named(tmp_path: Path, content: bytes) -> None:
    """
    A broken settings file is one clear line, never a traceback.
    """
    environ = user_environment(tmp_path)
    Path(environ["TURNGATE_CONFIG"]).write_bytes(content)

    with pytest.raises(BadSetting, match="config.toml: not TOML") as caught:
        read_settings(environ)

    assert "\n" not in str(caught.value)


def test_a_settings_file_that_is_a_pipe_or_folder_is_not_waited_for(tmp_path: Path) -> None:
    """
    Only a plain file is read; anything else is named.
    """
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(BadSetting, match=f"{name}: cannot be read"):
            read_settings({"TURNGATE_CONFIG": str(tmp_path / name)})


def test_unknown_keys_and_variables_change_nothing(tmp_path: Path) -> None:
    """
    A mistyped key is doctor's business; it never changes a decision.
    """
    environ = user_environment(tmp_path, '[gate]\nmoode = "off"\n[nope]\nx = 1\n', TURNGATE_GATE_MOODE="off")

    assert read_settings(environ).settings == Settings()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param('[judge]\nbase_url = "https://evil.example"\n', id="endpoint"),
        pytest.param('[judge]\napi_key_env = "AWS_SECRET"\n', id="key"),
        pytest.param('[judge]\nbackend = "off"\n', id="judge off"),
        pytest.param('[gate]\nmode = "off"\n', id="gate off"),
        pytest.param('[gate]\nmode = "block"\n', id="gate on"),
        pytest.param("[gate]\ncontinuations = 0\n", id="no continuations"),
        pytest.param('[rubric]\nname = "theirs"\n', id="a rubric"),
        pytest.param('[rubric.action]\nclaim = "off"\n', id="a fault switched off"),
        pytest.param('[rubric.action]\nopener = "hold"\n', id="a fault made stricter"),
        pytest.param("[record]\nturns = true\n", id="recording"),
        pytest.param('[ledger]\nurl = "postgresql://evil.example/x"\n', id="the ledger"),
        pytest.param('[nope]\nx = "y"\n', id="a key nobody knows"),
        pytest.param("background.mode = 7\n", id="a bad value"),
        pytest.param("not toml", id="a broken file"),
        pytest.param(f"[background]\nexempt_commands = {['x'] * 201}\n", id="too many patterns"),
        pytest.param(f"[evidence]\nchecks = ['{'*a' * 300}']\n", id="a pattern too long"),
    ],
)
def test_a_project_file_cannot_set_the_rest(tmp_path: Path, project: Path, content: str) -> None:
    """
    What a cloned repository may not set is refused, named, and changes nothing.
    """
    (project / ".turngate.toml").write_text(content)

    reading = read_settings(user_environment(tmp_path), project_folders=[str(project)])

    assert reading.settings == Settings()
    assert len(reading.notices) == 1
    assert ".turngate.toml" in reading.notices[0]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"[{'a.' * 900}a]\nx = 1\n", id="nested deeply"),
        pytest.param("".join(f"k{number} = 1\n" for number in range(20_000)), id="many keys"),
    ],
)
def test_a_hostile_project_file_costs_little(tmp_path: Path, project: Path, content: str) -> None:
    """
    Neither the depth nor the number of a project's keys reaches the stop.
    """
    (project / ".turngate.toml").write_text(content)

    reading = read_settings(user_environment(tmp_path), project_folders=[str(project)])

    assert reading.settings == Settings()
    assert len(reading.notices) <= 5


def test_a_project_may_soften(tmp_path: Path, project: Path) -> None:
    """
    Background rules, own checks, shadow mode and softer actions are a project's to set.
    """
    (project / ".turngate.toml").write_text(
        '[gate]\nmode = "shadow"\n[background]\nexempt_commands = ["npm run dev*"]\n'
        '[evidence]\nchecks = ["./verify*"]\n[rubric.action]\nclaim = "note"\ndefer = "hold_once"\n'
    )

    reading = read_settings(user_environment(tmp_path), project_folders=[str(project)])

    assert reading.notices == ()
    assert reading.settings.gate_mode == "shadow"
    assert reading.settings.background_exempt_commands == ("npm run dev*",)
    assert reading.settings.evidence_checks == ("./verify*",)
    assert (reading.settings.action("claim"), reading.settings.action("defer")) == ("note", "hold_once")


def test_a_fault_of_a_users_own_rubric_can_be_set(tmp_path: Path) -> None:
    """
    Actions are not limited to the packaged rubric's faults.
    """
    environ = user_environment(
        tmp_path, '[rubric.action]\nswearing = "note"\nboasting = "note"\n', TURNGATE_RUBRIC_ACTION_BOASTING="off"
    )
    settings = read_settings(environ).settings

    assert [settings.action(fault) for fault in ("swearing", "boasting", "another")] == ["note", "off", "hold"]


@pytest.mark.parametrize(
    "key", ["sk-ant-api03-" + "Ab1_" * 20, "AbCd-efgh-1234-zzzz-9999", "plainlowercasekey0123456789"]
)
def test_a_pasted_key_is_not_repeated(tmp_path: Path, key: str) -> None:
    """
    Whoever writes the key itself where its variable's name belongs does not find it in a log, of whatever shape it is.
    """
    for environ in (
        user_environment(tmp_path, TURNGATE_JUDGE_API_KEY_ENV=key),
        user_environment(tmp_path, f'[judge]\napi_key_env = "{key}"\n'),
    ):
        with pytest.raises(BadSetting, match="the name of a variable") as caught:
            read_settings(environ)

        assert key[:10] not in str(caught.value)


@pytest.mark.parametrize("amount", ["1e99999999999", "1e-99999999999", "-1", "nan", "inf", "1e10", "true"])
def test_an_amount_that_is_no_budget_is_refused(tmp_path: Path, amount: str) -> None:
    """
    Nor does one with a huge exponent take the memory that it would need written out.
    """
    with pytest.raises(BadSetting, match="TURNGATE_BUDGET_USD_PER_DAY"):
        read_settings(user_environment(tmp_path, TURNGATE_BUDGET_USD_PER_DAY=amount))


def test_a_budget_is_a_plain_amount(tmp_path: Path) -> None:
    """
    However it is written.
    """
    environ = user_environment(tmp_path, "[budget]\nusd_per_day = 2.5\n", TURNGATE_BUDGET_USD_PER_SESSION="5e-1")
    judge = read_settings(environ).settings.judge

    assert (judge.usd_per_day, judge.usd_per_session) == ("2.5", "0.5")


@pytest.mark.parametrize(
    "document",
    [
        '[ledger]\nurl = "postgresql://db/t"\n[gate]\nmode = "sometimes"\n',
        '[ledger]\nurl = "postgresql://db/t"\n[judge]\ndeadline_s = "soon"\n',
    ],
)
def test_the_ledgers_address_is_known_whatever_else_is_wrong(tmp_path: Path, document: str) -> None:
    """
    A stop that passes for a bad setting is written down where the others are.
    """
    environ = user_environment(tmp_path, document)

    with pytest.raises(BadSetting):
        read_settings(environ)
    assert ledger_url(environ) == "postgresql://db/t"
    assert ledger_url(environ | {"TURNGATE_LEDGER_URL": "postgresql://other/t"}) == "postgresql://other/t"


@pytest.mark.parametrize("document", ["", "no TOML", '[ledger]\nurl = "mysql://db"\n'])
def test_an_address_that_cannot_be_read_is_none(tmp_path: Path, document: str) -> None:
    """
    Then the file in the state directory is all there is.
    """
    assert ledger_url(user_environment(tmp_path, document)) == ""
