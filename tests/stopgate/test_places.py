from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from turngate.stopgate.places import config_dir, config_file, expand_home, state_dir

SYSTEM_HOME = pwd.getpwuid(os.getuid()).pw_dir


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere platformdirs itself is asked")
@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({"HOME": "/home/u"}, id="home"),
        pytest.param({"HOME": "/home/u/"}, id="home-with-slash"),
        pytest.param({"HOME": "/home/u", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, id="xdg"),
        pytest.param(
            {"HOME": "/home/u", "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "./s"}, id="relative-xdg-is-ignored"
        ),
        pytest.param({"HOME": "/home/u", "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}, id="empty-xdg"),
        pytest.param({}, id="no-home"),
        pytest.param({"HOME": ""}, id="empty-home"),
        pytest.param({"HOME": "relative"}, id="relative-home"),
        pytest.param({"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, id="xdg-without-home"),
    ],
)
def test_gives_what_platformdirs_gives(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The short rule used on Linux comes to the same directories as platformdirs.
    """
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert config_dir(environ) == platformdirs.user_config_dir("turngate", appauthor=False)
    assert state_dir(environ) == platformdirs.user_state_dir("turngate", appauthor=False)


def test_variables_name_other_places() -> None:
    """
    `TURNGATE_CONFIG` names a file and with it the directory; `TURNGATE_STATE_DIR` a directory; `~` is the home.
    """
    environ = {
        "HOME": "/home/u",
        "TURNGATE_CONFIG": "~/x/my.toml",
        "TURNGATE_STATE_DIR": "/s/../t/",
        "XDG_STATE_HOME": "/z",
    }

    assert config_file(environ) == "/home/u/x/my.toml"
    assert config_dir(environ) == "/home/u/x"
    assert state_dir(environ) == "/t"


def test_empty_variables_are_none() -> None:
    """
    A variable set to nothing is the same as no variable.
    """
    environ = {"HOME": "/home/u", "TURNGATE_CONFIG": "", "TURNGATE_STATE_DIR": ""}

    assert config_file(environ) == "/home/u/.config/turngate/config.toml"
    assert state_dir(environ) == "/home/u/.local/state/turngate"


@pytest.mark.parametrize(
    ("path", "environ", "expanded"),
    [
        ("~", {"HOME": "/home/u"}, "/home/u"),
        ("~/a", {"HOME": "/home/u"}, "/home/u/a"),
        ("~/a", {"HOME": "/"}, "/a"),
        ("~", {"HOME": "/"}, "/"),
        ("~/a", {}, f"{SYSTEM_HOME}/a"),
        ("~other/a", {"HOME": "/home/u"}, "~other/a"),
        ("/a/~", {"HOME": "/home/u"}, "/a/~"),
    ],
)
def test_a_leading_tilde_is_the_home(path: str, environ: dict[str, str], expanded: str) -> None:
    """
    `~` comes from `HOME`, else from the system's list of users; other users' homes are not looked up.
    """
    assert expand_home(path, environ) == expanded


GONE = """
import os, tempfile
from turngate.stopgate.places import state_dir
folder = tempfile.mkdtemp()
os.chdir(folder)
os.rmdir(folder)
print(state_dir({"TURNGATE_STATE_DIR": "here"}), state_dir({"TURNGATE_STATE_DIR": "/there"}))
"""


def test_a_deleted_working_directory_raises_nothing() -> None:
    """
    A relative place below a directory that is gone is no place; an absolute one does not depend on it.
    """
    assert subprocess.check_output([sys.executable, "-c", GONE], text=True).split() == ["None", "/there"]


def test_a_relative_place_is_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    What a person names relatively means what it means to every other program.
    """
    monkeypatch.chdir(tmp_path)

    assert state_dir({"TURNGATE_STATE_DIR": "here"}) == str(tmp_path / "here")


NOBODY = """
import os, pwd
from turngate.stopgate.places import config_file, state_dir
os.setuid(54321)  # a user whom no list knows, as in some containers
print(config_file({}), state_dir({}))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user whom nobody knows")
def test_where_no_home_is_known_there_is_no_place() -> None:
    """
    Without `HOME` and without an entry for the user, each place is None rather than a guess.
    """
    found = subprocess.run([sys.executable, "-c", NOBODY], capture_output=True, text=True, check=False)

    assert found.stdout.split() == ["None", "None"], found.stderr
