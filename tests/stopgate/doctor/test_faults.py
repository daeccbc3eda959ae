from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from turngate.costing.outcomes import Outcome
from turngate.stopgate.doctor.storage import LEAST_FREE, space_finding
from turngate.stopgate.failed_start import remember_failure
from turngate.stopgate.installing.our_hooks import our_command
from turngate.stopgate.pausing import add_pause, new_pause

from .patient import PROBES, Patient, Plant


def settings_text(text: str) -> Plant:
    def plant(patient: Patient) -> None:
        patient.settings.write_text(text)

    return plant


def config(text: str) -> Plant:
    def plant(patient: Patient) -> None:
        patient.config.write_text(text)

    return plant


def variable(name: str, value: str) -> Plant:
    return lambda patient: patient.environ.update({name: value})


def without_key(patient: Patient) -> None:
    del patient.environ["ANTHROPIC_API_KEY"]


def not_utf8(patient: Patient) -> None:
    patient.settings.write_bytes(b'{"a": "\xff"}')


def directory(patient: Patient) -> None:
    patient.settings.unlink()
    patient.settings.mkdir()


def managed_only(patient: Patient) -> None:
    patient.managed.write_text('{"allowManagedHooksOnly": true}')


def off_in_the_project(patient: Patient) -> None:
    patient.write({"disableAllHooks": True}, place="settings.local.json")


def twice_in_two_files(patient: Patient) -> None:
    patient.write(patient.read(), place="settings.local.json")


def twice_in_one_file(patient: Patient) -> None:
    settings = patient.read()
    settings["hooks"]["Stop"] *= 2
    patient.write(settings)


def prompt_hook(patient: Patient) -> None:
    patient.write(
        {"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "Is it done?"}]}]}}, place="settings.json"
    )


def another_hook(patient: Patient) -> None:
    patient.write({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./check"}]}]}}, place="settings.json")


def wrong_matcher(patient: Patient) -> None:
    settings = patient.read()
    settings["hooks"]["PreToolUse"][0]["matcher"] = "Write"
    patient.write(settings)


def project_file(patient: Patient) -> None:
    (patient.project / ".turngate.toml").write_text('[judge]\nbase_url = "http://evil.example"\n')


def project_env(patient: Patient) -> None:
    patient.environ["TURNGATE_JUDGE_BASE_URL"] = "http://evil.example"
    patient.write({"env": {"TURNGATE_JUDGE_BASE_URL": "http://evil.example"}}, place="settings.json")


def open_state(patient: Patient) -> None:
    patient.state.chmod(0o755)


def state_is_a_file(patient: Patient) -> None:
    patient.state.rmdir()
    patient.state.write_text("")


def garbage_ledger(patient: Patient) -> None:
    (patient.state / "turngate.db").write_bytes(b"garbage" * 100)


def open_ledger(patient: Patient) -> None:
    patient.decided("pass_clean")
    (patient.state / "turngate.db").chmod(0o644)


def open_token(patient: Patient) -> None:
    (patient.state / "turngate.token").write_text("secret")
    (patient.state / "turngate.token").chmod(0o644)


def paused(patient: Patient) -> None:
    now = datetime.now(UTC)
    add_pause(str(patient.state), new_pause(now, {"CLAUDECODE": "1"}, lasting=timedelta(hours=1)), now)


def damaged_pauses(patient: Patient) -> None:
    (patient.state / "turngate.pauses.json").write_text("{")


def failed_start(patient: Patient) -> None:
    remember_failure(str(patient.state), "no memory")


def long_path(patient: Patient) -> None:
    patient.environ["TURNGATE_STATE_DIR"] = str(patient.state / ("x" * 120))


def from_the_future(patient: Patient) -> None:
    patient.decided("pass_clean", at=datetime.now(UTC) + timedelta(days=400))


def nothing_is_judged(patient: Patient) -> None:
    outcomes: list[Outcome] = ["pass_judge_error"] * 10
    patient.decided(*outcomes)


FAULTS = [
    pytest.param(settings_text("{,}"), "bad", "line 1, column 2", "put the file right", id="settings: no JSON"),
    pytest.param(
        settings_text('{\n// x\n"a": 1}'), "bad", "line 2, column 1: a comment", "put", id="settings: comment"
    ),
    pytest.param(not_utf8, "bad", "not UTF-8", "put the file right", id="settings: not UTF-8"),
    pytest.param(directory, "bad", "is a directory", "put the file right", id="settings: directory"),
    pytest.param(
        settings_text('{"hooks": {"Stop": [{"command": "x"}]}}'), "bad", "an entry of hooks.Stop", "put", id="malformed"
    ),
    pytest.param(settings_text("{}"), "bad", "no settings file has our hooks", "turngate install", id="not installed"),
    pytest.param(
        lambda patient: patient.use_hooks(events=["Stop"]),
        "warn",
        "no hook at SubagentStop",
        "install",
        id="event missing",
    ),
    pytest.param(
        lambda patient: patient.add(disableAllHooks=True), "bad", "disableAllHooks", "take", id="hooks switched off"
    ),
    pytest.param(
        off_in_the_project, "bad", "settings.local.json: disableAllHooks", "take", id="switched off in project"
    ),
    pytest.param(managed_only, "bad", "allowManagedHooksOnly", "ask whoever", id="managed hooks only"),
    pytest.param(
        lambda p: p.use_hooks(timeout=15_000),
        "bad",
        "at Stop has a timeout of 15000: that is in s",
        '"timeout": 15',
        id="milliseconds",
    ),
    pytest.param(lambda p: p.use_hooks(timeout=5), "bad", "deadline of 8 s", '"timeout": 15', id="timeout too short"),
    pytest.param(
        config("[judge]\ndeadline_s = 20\n"), "bad", "deadline of 20 s", '"timeout": 27', id="deadline too long"
    ),
    pytest.param(lambda patient: patient.use_hooks(**{"async": True}), "bad", "is async", "async", id="async"),
    pytest.param(wrong_matcher, "warn", "'Write'", '"matcher": "Bash"', id="matcher"),
    pytest.param(
        lambda patient: patient.use_hooks("turngate-hook || true"), "warn", "other things too", "by hand", id="mixed"
    ),
    pytest.param(twice_in_two_files, "warn", "installed twice", "turngate uninstall", id="installed twice"),
    pytest.param(twice_in_one_file, "warn", "installed twice", "turngate uninstall", id="twice in one file"),
    pytest.param(
        lambda patient: patient.add(enabledPlugins={"turngate@turngate": True}),
        *("warn", "the plugin turngate@turngate", "switch off the plugin"),
        id="settings and plugin",
    ),
    pytest.param(prompt_hook, "warn", "of type prompt at Stop", "take it out", id="prompt hook"),
    pytest.param(another_hook, "warn", "another hook at Stop", "nothing, if", id="another hook"),
    pytest.param(without_key, "bad", "ANTHROPIC_API_KEY is not set", "judge.api_key_env", id="no key"),
    pytest.param(variable("ANTHROPIC_API_KEY", "a b"), "bad", "is not a key", "the key in that", id="no key, but text"),
    pytest.param(config('[judge]\nbase_url = "https://"\n'), "bad", "judge.base_url must", "address", id="no address"),
    pytest.param(
        config('[judge]\nbase_url = "http://gateway.example"\n'), "warn", "plain http", "https://", id="plain http"
    ),
    pytest.param(variable("CLAUDE_CODE_USE_BEDROCK", "1"), "bad", "USE_BEDROCK", "address", id="cloud"),
    pytest.param(
        config('[judge]\nbackend = "off"\n'), "warn", "judge.backend is off", "set judge.backend", id="no judge"
    ),
    pytest.param(config("[judge]\nmodle = 1\n"), "warn", "judge.modle is no key", "judge.model?", id="unknown key"),
    pytest.param(
        variable("TURNGATE_JUDGE_MODEL_", "x"), "warn", "no variable of ours", "TURNGATE_JUDGE_MODEL?", id="variable"
    ),
    pytest.param(variable("TURNGATE_GUARD", "1"), "bad", "TURNGATE_GUARD is set", "start files", id="guard"),
    pytest.param(config('[gate]\nmode = "hard"\n'), "bad", "gate.mode = 'hard'", "put the value right", id="bad value"),
    pytest.param(config("[gate\n"), "bad", "not TOML", "put the value right", id="no TOML"),
    pytest.param(config('[gate]\nmode = "off"\n'), "bad", "the gate is off", 'gate.mode = "block"', id="gate off"),
    pytest.param(
        variable("TURNGATE_GATE_MODE", "shadow"), "warn", "shadow, by", "unset TURNGATE_GATE_MODE", id="shadow"
    ),
    pytest.param(config("[gate]\ncontinuations = 0\n"), "warn", "continuations is 0", "2", id="no continuation"),
    pytest.param(project_file, "warn", "judge.base_url", "take it out of the project", id="project file"),
    pytest.param(project_env, "warn", "env.TURNGATE_JUDGE_BASE_URL", "take it out of the project", id="project env"),
    pytest.param(open_state, "warn", "open to others: mode 755", "chmod 700", id="state open"),
    pytest.param(state_is_a_file, "bad", "is not a folder", "TURNGATE_STATE_DIR", id="state is a file"),
    pytest.param(garbage_ledger, "bad", "not a database", "move the file away", id="ledger damaged"),
    pytest.param(open_ledger, "bad", "turngate.db is open to others", "chmod 600", id="ledger open"),
    pytest.param(open_token, "bad", "turngate.token is open to others", "chmod 600", id="token open"),
    pytest.param(paused, "warn", "from an agent's shell: everything", "turngate resume", id="paused"),
    pytest.param(damaged_pauses, "warn", "is damaged", "turngate resume", id="pauses damaged"),
    pytest.param(failed_start, "bad", "the last start failed: no memory", "turngate serve", id="service failed"),
    pytest.param(long_path, "warn", "too long for a socket", "TURNGATE_STATE_DIR", id="socket path"),
    pytest.param(
        config("[service]\nautostart = false\n"),
        "warn",
        "service.autostart is off",
        "turngate serve",
        id="no autostart",
    ),
    pytest.param(from_the_future, "bad", "yet to come", "set the clock right", id="clock"),
    pytest.param(nothing_is_judged, "bad", "none of the last 10 stops", "docs/outcomes.md", id="nothing judged"),
    pytest.param(lambda p: p.client_says("2.1.100"), "warn", "client 2.1.100", "update", id="old client"),
    pytest.param(lambda p: p.client_says("?"), "warn", "does not say its version", "client", id="strange client"),
    pytest.param(lambda p: (p.bin / "claude").unlink(), "warn", "no `claude`", "install the client", id="no client"),
    pytest.param(
        lambda p: (p.config.parent / "prices.toml").write_text("x"), "warn", "costs stay unknown", "right", id="prices"
    ),
]


@pytest.mark.parametrize(("plant", "level", "says", "fix"), FAULTS)
def test_a_planted_fault_is_found_and_its_fix_named(
    plant: Plant, level: str, says: str, fix: str, patient: Patient
) -> None:
    """
    Where all is well nothing is said but ok; each fault is one finding more, with what to do about it.
    """
    assert [finding for finding in patient.findings() if finding.level != "ok"] == []

    plant(patient)

    found = [finding for finding in patient.findings() if says in finding.text and finding.level == level]
    assert found, patient.findings()
    assert all(fix in finding.fix for finding in found)


def test_a_key_in_the_clients_own_settings_is_one(patient: Patient) -> None:
    """
    What the user's settings set under `env` is there for the hooks, so it is for the doctor; a project's is not.
    """
    key = patient.environ.pop("ANTHROPIC_API_KEY")
    patient.write({"env": {"ANTHROPIC_API_KEY": key}}, place="settings.json")
    assert "ANTHROPIC_API_KEY is not set" in " ".join(finding.text for finding in patient.findings())

    patient.write({}, place="settings.json")
    patient.add(env={"ANTHROPIC_API_KEY": key})
    assert [finding for finding in patient.findings() if finding.level != "ok"] == []


def test_a_variable_that_comes_before_the_file_is_named(patient: Patient) -> None:
    """
    Who wonders why a key of the file does nothing is told.
    """
    patient.config.write_text('[judge]\nmodel = "one"\n')
    patient.environ["TURNGATE_JUDGE_MODEL"] = "another"

    said = " ".join(finding.text for finding in patient.findings())

    assert f"TURNGATE_JUDGE_MODEL comes before judge.model of {patient.config}" in said
    assert "another (anthropic)" in said


COMMANDS = [
    pytest.param("/nowhere/turngate-hook", "exit code 127", id="mistyped path"),
    pytest.param("python3 -I -S /nowhere/turngate/stopgate/__main__.py", "exit code 2", id="file gone"),
    pytest.param(f"echo welcome; {our_command()}", "no answer", id="words before the answer"),
    pytest.param(f"cat > /dev/null; {our_command()} < /dev/null", "answers nothing", id="no input"),
    pytest.param(f"{our_command()} > /dev/null", "answers nothing", id="answer thrown away"),
    pytest.param(f"{our_command()}; exit 1", "exit code 1", id="wrong exit code"),
    pytest.param(
        'echo \'{"decision": "block", "reason": "A probe of turngate doctor."}\' # turngate-hook',
        *("must let pass",),
        id="always holds",
    ),
    pytest.param("true # turngate-hook", "answers nothing", id="does nothing"),
    pytest.param(f"TURNGATE_GATE_MODE=off {our_command()}", "answers nothing", id="switched off in the command"),
]


@pytest.mark.parametrize(("command", "says"), COMMANDS)
def test_a_command_that_cannot_hold_is_found(command: str, says: str, patient: Patient) -> None:
    """
    A configured command is run as the client runs it: what cannot hold, or holds everything, is named with the command.
    """
    patient.use_hooks(command)

    (found,) = patient.findings(PROBES)

    assert (found.level, says in found.text) == ("bad", True), found
    assert command in found.text
    assert "turngate install" in found.fix


def test_a_command_that_never_ends_is_ended(patient: Patient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """
    Whatever the command has started is ended with it.
    """
    monkeypatch.setattr("turngate.stopgate.doctor.probing.WAIT_S", 0.5)
    mark = tmp_path / "pid"
    patient.use_hooks(f"(echo $$ > {mark}; exec sleep 1000) & wait # turngate-hook")

    (found,) = patient.findings(PROBES)

    assert "does not end" in found.text
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_each_command_of_each_file_is_proved_and_the_plugin_too(patient: Patient, tmp_path: Path) -> None:
    """
    Two files and a plugin are three proofs; nothing is written where people look.
    """
    plugin = tmp_path / "plugin" / "hooks"
    plugin.mkdir(parents=True)
    (plugin / "gate").write_text(f"exec {our_command()}\n")
    patient.write(patient.read(), place="settings.json")
    patient.add(enabledPlugins={"turngate@here": True})
    installed = patient.settings.parent / "plugins" / "installed_plugins.json"
    installed.parent.mkdir()
    entry = [{"scope": "user", "installPath": str(plugin.parent)}]
    installed.write_text(json.dumps({"version": 2, "plugins": {"turngate@here": entry}}))

    found = patient.findings(PROBES)

    assert [finding.level for finding in found] == ["ok"] * 3
    assert "the plugin turngate@here" in found[-1].text
    assert not any(patient.state.iterdir())


def test_what_a_project_may_soften_fails_no_proof(patient: Patient) -> None:
    """
    The proof is of the command: a project in shadow mode that only notes claims has a sound one.
    """
    (patient.project / ".turngate.toml").write_text('[gate]\nmode = "shadow"\n[rubric.action]\nclaim = "note"\n')

    (found,) = patient.findings(PROBES)

    assert found.level == "ok", found


@pytest.mark.parametrize(("free", "level"), [(0, "bad"), (LEAST_FREE - 1, "bad"), (LEAST_FREE, "ok")])
def test_a_full_disk_is_found(free: int, level: str) -> None:
    """
    Below 100 MB it is said that what cannot be stored is not held.
    """
    (found,) = space_finding("/state", free)

    assert found.level == level
