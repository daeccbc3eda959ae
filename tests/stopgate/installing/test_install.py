from __future__ import annotations

import json
import os
import pty
import subprocess
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from turngate.stopgate.installing.our_hooks import our_command

from .installed_home import EVENTS, PROGRAM, Home

OTHERS = """{
\t"model" : "opus",
\t"hooks": {
\t\t"Stop": [
\t\t\t{"hooks": [ {"type": "command", "command": "say done"} ]}
\t\t],
\t\t"Notification": []
\t},
\t"env": {"A": "\\u00e9"}
}
"""

TEXTS = [
    pytest.param(None, id="no file"),
    pytest.param(b"", id="empty"),
    pytest.param(b" \n", id="blank"),
    pytest.param(b"{}", id="empty object"),
    pytest.param(b"{ \n }\n", id="empty object with space"),
    pytest.param(OTHERS.encode(), id="tabs and others' hooks"),
    pytest.param(OTHERS.replace("\n", "\r\n").encode(), id="CRLF"),
    pytest.param(b"\xef\xbb\xbf" + OTHERS.encode(), id="BOM"),
    pytest.param(b'{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"x"}]}]}}', id="one line"),
    pytest.param(b'{"hooks": {"Stop": []}, "z": [1, 2]}', id="empty list"),
    pytest.param('{\n    "name": "für 日本 \U0001f600"\n}\n'.encode(), id="other scripts"),
]


@pytest.mark.parametrize("content", TEXTS)
def test_install_adds_our_hooks_and_uninstall_gives_back_every_byte(content: bytes | None, home: Home) -> None:
    """
    Whatever the file looked like: our hooks come beside what is there, a second install changes nothing, and after uninstalling it is
    as it was, with nothing of ours beside it.
    """
    if content is not None:
        home.settings.write_bytes(content)
    text = (content or b"").decode("utf-8-sig")
    before = json.loads(text) if text.strip() else {}

    installed = home.run("install")
    assert installed.returncode == 0, installed.stderr
    after = json.loads(home.settings.read_bytes().decode("utf-8-sig"))
    assert {key: value for key, value in after.items() if key != "hooks"} == {
        key: value for key, value in before.items() if key != "hooks"
    }
    for event in EVENTS:
        *others, ours = after["hooks"][event]
        assert others == before.get("hooks", {}).get(event, [])
        assert ours["hooks"][0]["command"] == our_command()
        assert ours.get("matcher") == ("Bash" if event == "PreToolUse" else None)
    assert home.settings.read_bytes().startswith(b"\xef\xbb\xbf") is (content or b"").startswith(b"\xef\xbb\xbf")
    assert (b"\r\n" in home.settings.read_bytes()) is (b"\r\n" in (content or b""))
    bytes_after = home.settings.read_bytes()

    again = home.run("install")
    assert "nothing was written" in again.stdout
    assert home.settings.read_bytes() == bytes_after

    removed = home.run("uninstall")
    assert removed.returncode == 0, removed.stderr
    assert home.left() == ([] if content is None else ["settings.json"])
    if content is not None:
        assert home.settings.read_bytes() == content


def test_the_diff_is_shown_first_and_a_dry_run_writes_nothing(home: Home) -> None:
    """
    `--dry-run` prints what would change and who would be asked, and leaves every file alone.
    """
    home.environ["ANTHROPIC_API_KEY"] = "sk-ant-api03-not-a-key-not-a-key"
    home.settings.write_text(OTHERS)

    ran = home.run("install", "--dry-run")

    assert ran.returncode == 0
    assert ran.stdout.startswith(f"--- {home.settings}\n+++ {home.settings}\n@@ ")
    assert f'+{chr(9) * 6}"command": "' in ran.stdout
    assert '+backend = "anthropic"' in ran.stdout
    for part in (
        "claude-sonnet-5-5 (anthropic) at api.anthropic.com",
        "the key in ANTHROPIC_API_KEY",
        "$0.0025",
        "estimated",
    ):
        assert part in ran.stdout
    assert home.settings.read_text() == OTHERS
    assert home.left() == ["settings.json"]
    assert not home.config.exists()
    assert not home.state.exists()


def test_secrets_of_the_settings_are_not_shown(home: Home) -> None:
    """
    A key that stands near our hooks is masked in the diff, and stays in the file.
    """
    secret = "sk-ant-api03-" + "Ab1" * 30
    home.settings.write_text(json.dumps({"env": {"MY_API_KEY": secret}}, indent=2))

    ran = home.run("install")

    assert secret not in ran.stdout + ran.stderr
    assert secret in home.settings.read_text()


def test_the_choice_of_the_judge_goes_into_the_users_settings(home: Home) -> None:
    """
    The back end that answers is written down, beside whatever else the file has, comments included.
    """
    home.environ["ANTHROPIC_API_KEY"] = "sk-ant-api03-not-a-key-not-a-key"
    home.config.parent.mkdir(parents=True)
    home.config.write_text('# mine\n[gate]\nmessage = false # quiet\n\n[judge]\nmodel = "m" # this one\n')

    assert home.run("install", "--shadow").returncode == 0

    text = home.config.read_text()
    assert tomllib.loads(text) == {
        "gate": {"message": False, "mode": "shadow"},
        "judge": {"model": "m", "backend": "anthropic"},
    }
    assert {"# mine", "message = false # quiet", 'model = "m" # this one'} <= set(text.splitlines())


@pytest.mark.parametrize(
    ("config", "environ"),
    [
        pytest.param('[judge]\nbackend = "off"\n', {}, id="chosen already"),
        pytest.param("", {"TURNGATE_JUDGE_BACKEND": "anthropic"}, id="by a variable"),
        pytest.param("", {"ANTHROPIC_API_KEY": ""}, id="nobody to ask"),
    ],
)
def test_what_somebody_chose_stays(config: str, environ: dict[str, str], home: Home) -> None:
    """
    No choice is written where there is one, or nobody to choose; it is said who will answer.
    """
    home.environ |= {"ANTHROPIC_API_KEY": "sk-ant-api03-not-a-key-not-a-key", **environ}
    home.config.parent.mkdir(parents=True)
    home.config.write_text(config)

    ran = home.run("install")

    assert ran.returncode == 0
    assert "judge: " in ran.stdout
    assert home.config.read_text() == config


OLD = "~/.turngate/bin/python -I -S ~/.turngate/lib/python3*/site-packages/turngate/stopgate/__main__.py"


def test_an_older_hook_of_ours_is_replaced_in_its_place(home: Home) -> None:
    """
    Hooks from another path or version become this one, doubles go, variables before the command stay, and others keep their order.
    """
    ours = [{"type": "command", "command": f"A=1 {OLD}", "timeout": 15000}, {"type": "command", "command": "say hi"}]
    double = {"hooks": [{"type": "command", "command": "/x/turngate-hook"}]}
    star = {"matcher": "*", "hooks": [{"type": "command", "command": "turngate-hook"}]}
    gone = [{"hooks": [{"type": "command", "command": "turngate-hook"}]}]
    hooks = {"Stop": [{"hooks": ours}, double], "PreToolUse": [star], "UserPromptSubmit": gone}
    home.settings.write_text(json.dumps({"hooks": hooks}, indent=2))

    assert home.run("install").returncode == 0

    after = home.hooks()
    (stop,) = after["Stop"]
    command = stop["hooks"][0]["command"]
    assert command.startswith("A=1 /")
    assert command.endswith(" -I -S " + command.split()[-1])
    assert (stop["hooks"][0]["timeout"], stop["hooks"][1]) == (15, ours[1])
    (tool,) = after["PreToolUse"]
    assert tool["matcher"] == "Bash"
    assert "UserPromptSubmit" not in after


def test_only_the_events_that_are_asked_for_stay(home: Home) -> None:
    """
    `--events` names all that there will be.
    """
    assert home.run("install").returncode == 0
    assert home.run("install", "--events", "Stop,SubagentStop").returncode == 0
    assert sorted(home.hooks()) == ["Stop", "SubagentStop"]

    refused = home.run("install", "--events", "Stop,Start")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "SessionStart" in refused.stderr


@pytest.mark.parametrize(
    ("scope", "name"), [("user", ""), ("project", "settings.json"), ("local", "settings.local.json")]
)
def test_the_scope_says_which_file(scope: str, name: str, home: Home) -> None:
    """
    The user's file, the project's, or the user's own in the project; the folder is made where it is missing.
    """
    assert home.run("install", "--scope", scope).returncode == 0

    file = home.project / ".claude" / name if name else home.settings
    assert sorted(json.loads(file.read_text())["hooks"]) == sorted(EVENTS)
    assert home.run("uninstall", "--scope", scope).returncode == 0
    assert not file.exists()


def test_the_clients_own_folder_is_honoured(home: Home, tmp_path: Path) -> None:
    """
    `CLAUDE_CONFIG_DIR` names where the user's settings lie.
    """
    home.environ["CLAUDE_CONFIG_DIR"] = str(tmp_path / "elsewhere")

    assert home.run("install").returncode == 0

    assert (tmp_path / "elsewhere" / "settings.json").exists()
    assert not home.settings.exists()


def test_a_link_is_written_through(home: Home, tmp_path: Path) -> None:
    """
    Settings that are a link stay one; what it leads to gets the hooks, its mode stays, and the backup lies beside it.
    """
    real = tmp_path / "dotfiles.json"
    real.write_text(OTHERS)
    real.chmod(0o640)
    home.settings.symlink_to(real)

    assert home.run("install").returncode == 0

    assert home.settings.is_symlink()
    assert "SubagentStop" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640
    assert Path(f"{real}.turngate-backup").read_text() == OTHERS
    assert home.run("uninstall").returncode == 0
    assert (real.read_text(), home.settings.is_symlink()) == (OTHERS, True)
    assert not Path(f"{real}.turngate-backup").exists()


Plant = Callable[[Home], None]


def directory(home: Home) -> None:
    home.settings.mkdir()


def loop(home: Home) -> None:
    home.settings.symlink_to(home.settings)


def pipe(home: Home) -> None:
    os.mkfifo(home.settings)


def read_only(home: Home) -> None:
    home.settings.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "turngate-hook"}]}]}}')
    home.settings.chmod(0o444)


def writes(content: bytes) -> Plant:
    def write(home: Home) -> None:
        home.settings.write_bytes(content)

    return write


REFUSED = [
    pytest.param(directory, "is a directory", id="directory"),
    pytest.param(loop, "symbolic links", id="link to itself"),
    pytest.param(pipe, "not a plain file", id="pipe"),
    pytest.param(read_only, "read-only", id="read-only"),
    pytest.param(writes(b'{"a": "\xff"}'), "line 1: not UTF-8", id="not UTF-8"),
    pytest.param(writes("{}".encode("utf-16")), "not UTF-8", id="UTF-16"),
    pytest.param(writes(b'{\n "a": 1, // mine\n}'), "line 2, column 10: a comment", id="comment"),
    pytest.param(writes(b'{\n "a": 1\n "b": 2}'), "line 3, column 2", id="no comma"),
    pytest.param(writes(b"[]"), "not a JSON object", id="a list"),
    pytest.param(writes(b'{"hooks": []}'), '"hooks" is not an object', id="hooks are a list"),
    pytest.param(writes(b'{"hooks": {}, "hooks": {}}'), "twice", id="hooks twice"),
    pytest.param(writes(b'{"hooks": {"Stop": {}}}'), "hooks.Stop is not a list", id="event is no list"),
    pytest.param(writes(b'{"hooks": {"Stop": ["x"]}}'), "an entry of hooks.Stop", id="malformed entry"),
    pytest.param(writes(b'{"hooks": {"X": [{"hooks": [{}]}]}}'), "a hook of hooks.X", id="malformed hook"),
    pytest.param(writes(b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"), "deep", id="bottomless"),
]


@pytest.mark.parametrize(("plant", "says"), REFUSED)
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_what_cannot_be_edited_safely_is_refused_in_one_line(command: str, plant: Plant, says: str, home: Home) -> None:
    """
    The file is named with line and column where there is one, nothing is written, and the exit code is 2.
    """
    plant(home)
    before = home.settings.read_bytes() if home.settings.is_file() else None

    ran = home.run(command)

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"turngate: {home.settings}: ")
    assert says in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert home.settings.is_file() is (before is not None)
    assert before is None or home.settings.read_bytes() == before
    assert home.left() == ["settings.json"]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        pytest.param('[judge\nbackend = "auto"\n', "not TOML", id="not TOML"),
        pytest.param("judge = 3\n", "judge is not a table", id="no table"),
        pytest.param('[gate]\nmode = "hard"\n', "gate.mode", id="bad value"),
    ],
)
def test_settings_of_ours_that_cannot_be_used_stop_the_install(config: str, says: str, home: Home) -> None:
    """
    A gate that would pass every stop is not installed: the file is named, and neither file is written.
    """
    home.environ["ANTHROPIC_API_KEY"] = "sk-ant-api03-not-a-key-not-a-key"
    home.config.parent.mkdir(parents=True)
    home.config.write_text(config)

    ran = home.run("install")

    assert (ran.returncode, ran.stdout) == (2, "")
    assert str(home.config) in ran.stderr
    assert says in ran.stderr
    assert home.config.read_text() == config
    assert home.left() == []


def test_two_installs_at_once_leave_one_set_of_hooks(home: Home) -> None:
    """
    Of several at once one writes, and the others find that it is done.
    """
    home.settings.write_text(OTHERS)
    running = [home.start("install") for _ in range(4)]
    said = [process.communicate(timeout=60) for process in running]

    assert [process.returncode for process in running] == [0] * 4, said
    assert [len(home.hooks()[event]) for event in EVENTS] == [2, 1, 1, 1]
    assert sum("installed in" in out for out, _ in said) == 1
    assert home.run("uninstall").returncode == 0
    assert home.settings.read_text() == OTHERS


def test_what_changed_since_the_install_stays(home: Home) -> None:
    """
    Uninstalling takes out our hooks alone where somebody else has changed the file meanwhile.
    """
    home.settings.write_text("{ }")
    assert home.run("install").returncode == 0
    text = home.settings.read_text()
    home.settings.write_text(text[:-1].rstrip() + ',\n  "theme": "dark"\n}\n')

    assert home.run("uninstall").returncode == 0

    assert json.loads(home.settings.read_text()) == {"theme": "dark"}
    assert home.left() == ["settings.json"]


def test_a_hook_that_runs_more_than_turngate_is_left_and_named(home: Home) -> None:
    """
    Somebody's own command around turngate is not ours to change.
    """
    mixed = {"hooks": [{"type": "command", "command": "turngate-hook || true"}]}
    home.settings.write_text(json.dumps({"hooks": {"Stop": [mixed]}}))

    ran = home.run("install")

    assert "runs turngate among other things" in ran.stdout
    assert home.hooks()["Stop"][0] == mixed
    assert home.run("uninstall").returncode == 0
    assert home.hooks() == {"Stop": [mixed]}


def test_an_install_in_another_file_is_named(home: Home) -> None:
    """
    Who installs twice learns of it, and how to undo one.
    """
    assert home.run("install").returncode == 0

    ran = home.run("install", "--scope", "local")

    assert f"{home.settings}: has our hooks too: `turngate uninstall --scope user`" in ran.stdout
    assert home.run("uninstall").stdout.count("taken out of") == 2
    assert home.run("uninstall").stdout == "no hook of ours is there\n"


@pytest.mark.parametrize(
    ("answer", "more", "written"),
    [
        pytest.param(b"n\n", (), False, id="no"),
        pytest.param(b"\n", (), True, id="enter"),
        pytest.param(b"yes\n", (), True, id="yes"),
        pytest.param(b"", ("--yes",), True, id="not asked"),
    ],
)
def test_at_a_terminal_one_is_asked_first(answer: bytes, more: tuple[str, ...], written: bool, home: Home) -> None:
    """
    The diff is on the screen before the question; without a yes nothing is written.
    """
    ours, theirs = pty.openpty()
    command = [PROGRAM, "install", *more]
    with subprocess.Popen(command, cwd=home.project, env=home.environ, stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        shown = b""
        if answer:
            while b"[Y/n]" not in shown:
                shown += os.read(ours, 65536)
            os.write(ours, answer)
        with suppress(OSError):  # how Linux says that the other side is closed
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)

    assert process.returncode == 0
    assert b"+++ " in shown.partition(b"[Y/n]")[0]
    assert (b"[Y/n]" in shown) is bool(answer)
    assert home.settings.exists() is written
    assert (b"nothing was written" in shown) is not written
