"""
Which service a hook speaks to: the user's, and never one that the project leads it to.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from turngate.stopgate import service_folder as service_folder_module
from turngate.stopgate.places import state_dir
from turngate.stopgate.service_folder import service_folder
from turngate.stopgate.trust import CLIENT_FILES, trusted

from .hook_runner import HELD, PYTHON, Hook
from .raw_service import RawService, response

OURS = b'{"decision": "block", "reason": "ours"}'
PLANTED = b'{"decision": "block", "reason": "planted"}'


OF_A_USER = """
import pwd, types
pwd.getpwuid = lambda _: types.SimpleNamespace(pw_dir={home!r})
from turngate.stopgate.hook import main
main()
"""
"""The hook, on a system that knows another home of the user than the real one."""


class Place(NamedTuple):
    """
    A variable of those that name the state directory, and where below its value the directory lies.
    """

    variable: str
    below: str


PLACES = [
    Place("TURNGATE_STATE_DIR", ""),
    Place("XDG_STATE_HOME", "turngate"),
    Place("HOME", ".local/state/turngate"),
]


class Repository(NamedTuple):
    """
    A project that plants a socket, and sets a variable that leads there.
    """

    hook: Hook
    folder: Path
    place: Place

    @property
    def evil(self) -> Path:
        """
        The value that the project sets.
        """
        return self.folder / "evil"

    @property
    def planted(self) -> Path:
        """
        The state directory that it leads to.
        """
        return self.evil / self.place.below

    def settings(self, name: str = "settings.json", *, folder: Path | None = None, text: str = "") -> None:
        """
        Write the project's client settings.
        """
        target = (folder or self.folder) / ".claude" / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(text or json.dumps({"env": {self.place.variable: str(self.evil)}}))

    def answers(self, cwd: Path, **environ: str) -> bytes:
        """
        What a hook in this directory answers, with the variable as the client would have set it.
        """
        command = (PYTHON, "-I", "-c", OF_A_USER.format(home=str(self.hook.home)))
        self.planted.mkdir(parents=True)
        with RawService(self.planted, response(200, PLANTED)) as planted:
            ran = self.hook.run(HELD, command, cwd=cwd, environ={self.place.variable: str(self.evil), **environ})
            assert (planted.connections > 0) == (ran.out == PLANTED)
        return ran.out


@pytest.fixture(name="hook")
def make_hook(short_path: Path) -> Hook:
    """
    A user whose state directory has a path that is short enough for a socket.
    """
    return Hook(short_path)


@pytest.fixture(name="repository", params=range(3), ids=lambda number: PLACES[number].variable)
def make_repository(hook: Hook, short_path: Path, request: pytest.FixtureRequest) -> Repository:
    """
    Without the variable that the project sets, the next rule names the directory that has the user's service.
    """
    del hook.environ["TURNGATE_STATE_DIR"]
    del hook.environ["HOME"]
    next_place = PLACES[min(request.param + 1, 2)]
    if request.param < 2:
        hook.environ[next_place.variable] = str(hook.home)
    hook.state = hook.home / next_place.below
    hook.state.mkdir(parents=True)
    (short_path / "repository").mkdir()
    return Repository(hook, short_path / "repository", PLACES[request.param])


def assert_not_led_astray(repository: Repository, cwd: Path, **environ: str) -> None:
    """
    The planted service is not spoken to; the user's own is.
    """
    with RawService(repository.hook.state, response(200, OURS)):
        assert repository.answers(cwd, **environ) == OURS


@pytest.mark.parametrize("named", [True, False], ids=["by-the-client", "by-the-working-directory"])
@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_the_projects_settings_do_not_lead_to_its_own_socket(repository: Repository, name: str, named: bool) -> None:
    """
    A cloned repository could else have the user's key sent to a process of its own.
    """
    repository.settings(name)
    cwd = repository.hook.work if named else repository.folder
    environ = {"CLAUDE_PROJECT_DIR": str(repository.folder)} if named else {}

    assert_not_led_astray(repository, cwd, **environ)


def escaped(repository: Repository) -> str:
    """
    The settings with the variable's name written in escapes.
    """
    name = "".join(f"\\u{ord(letter):04x}" for letter in repository.place.variable)
    return f'{{"env": {{"{name}": "{repository.evil}"}}}}'


@pytest.mark.parametrize("holder", ["a/b", "a", "."])
def test_no_folder_up_to_the_repositorys_root_leads_there(repository: Repository, holder: str) -> None:
    """
    The one that the client was started in, the root, and those between.
    """
    (repository.folder / "a" / "b").mkdir(parents=True)
    (repository.folder / ".git").mkdir()
    repository.settings(folder=repository.folder / holder)

    assert_not_led_astray(repository, repository.folder / "a" / "b")


@pytest.mark.parametrize("spoil", ["escaped", "large", "commented", "single-quoted"])
def test_odd_settings_do_not_lead_there_either(repository: Repository, spoil: str) -> None:
    """
    What we do not understand the client may.
    """
    plain = json.dumps({"env": {repository.place.variable: str(repository.evil)}})
    text = {
        "escaped": escaped(repository),
        "large": "{" + " " * 200_000 + plain[1:],
        "commented": plain + " // a comment",
        "single-quoted": plain.replace('"', "'"),
    }[spoil]
    repository.settings(text=text)

    assert_not_led_astray(repository, repository.folder)


def test_settings_of_the_repositorys_root_do_not_lead_there(repository: Repository) -> None:
    """
    Also from further down, and by a link into the repository.
    """
    below = repository.folder / "a" / "b"
    below.mkdir(parents=True)
    (repository.folder / ".git").mkdir()
    repository.settings("settings.local.json")
    link = repository.hook.home / "link"
    link.symlink_to(below)

    assert_not_led_astray(repository, repository.hook.work, CLAUDE_PROJECT_DIR=str(link))


def test_settings_of_a_worktrees_main_checkout_do_not_lead_there(repository: Repository, short_path: Path) -> None:
    """
    A worktree's `.git` is a file that leads to the main checkout.
    """
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(repository.folder)]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "--detach", str(short_path / "worktree")], check=True)
    repository.settings("settings.local.json")

    assert_not_led_astray(repository, short_path / "worktree")


HARMLESS = {
    "no-settings": "",
    "other-variables": '{"env": {"JAVA_HOME": "/x", "TURNGATE_GATE_MODE": "block"}}',
    "used-in-a-command": '{"hooks": {"Stop": [{"command": "$HOME/x ${HOME}/y"}]}}',
    "only-mentioned": '{"note": "HOME TURNGATE_STATE_DIR XDG_STATE_HOME"}',
    "nonsense": "{",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.variable)
def test_the_users_own_variable_leads_to_the_users_service(hook: Hook, place: Place, text: str) -> None:
    """
    Whatever else the project's settings say.
    """
    del hook.environ["TURNGATE_STATE_DIR"]
    hook.environ[place.variable] = str(hook.home)
    (hook.home / place.below).mkdir(parents=True, exist_ok=True)
    if text:
        (hook.work / ".claude").mkdir()
        (hook.work / ".claude" / "settings.json").write_text(text)
    with RawService(hook.home / place.below, response(200, OURS)):
        assert hook.run(HELD).out == OURS


ENVIRONS: dict[str, dict[str, str]] = {
    "state-dir": {"TURNGATE_STATE_DIR": "/s", "XDG_STATE_HOME": "/x", "HOME": "/h"},
    "state-dir-empty": {"TURNGATE_STATE_DIR": "", "XDG_STATE_HOME": "/x", "HOME": "/h"},
    "state-dir-relative": {"TURNGATE_STATE_DIR": "s", "HOME": "/h"},
    "state-dir-in-home": {"TURNGATE_STATE_DIR": "~/s", "HOME": "/h"},
    "state-dir-going-up": {"TURNGATE_STATE_DIR": "/a/../b"},
    "xdg": {"XDG_STATE_HOME": "/x", "HOME": "/h"},
    "xdg-relative": {"XDG_STATE_HOME": "x", "HOME": "/h"},
    "home": {"HOME": "/h"},
    "home-with-slashes": {"HOME": "/h//"},
    "home-relative": {"HOME": "h"},
    "home-empty": {"HOME": ""},
    "nothing": {},
    "odd-bytes": {"TURNGATE_STATE_DIR": os.fsdecode(b"/s\xff")},
}


@pytest.mark.parametrize("environ", ENVIRONS.values(), ids=ENVIRONS)
def test_the_directory_is_the_one_of_the_gate_itself(
    environ: Mapping[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Found in a quick way or in full, it is where the same stop's lines would go without a service.
    """
    monkeypatch.chdir(tmp_path)
    for place in PLACES:
        monkeypatch.delenv(place.variable, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    expected = state_dir(trusted(os.environ, [str(tmp_path)]).environ)

    found = service_folder({os.fsencode(name): os.fsencode(value) for name, value in os.environ.items()})

    assert found
    assert expected
    assert os.path.normpath(os.fsdecode(found)) == expected


def test_the_quick_look_knows_all_files_that_are_not_trusted() -> None:
    """
    A file that `trust` learns of is one to look into here.
    """
    quick = service_folder_module._CLIENT_FILES  # pyright: ignore[reportPrivateUsage]

    assert [os.fsdecode(name) for name in quick] == [f"/{name}" for name in CLIENT_FILES]


def test_a_disk_that_does_not_answer_traps_no_turn(hook: Hook) -> None:
    """
    Before a service may be spoken to, files of the project are read: where that takes too long the process ends in silence.
    """
    hanging = (
        "import time; from turngate.stopgate import hook, relay, service_folder; relay.LOOKING_S = 0.2; "
        "service_folder.service_folder = lambda environ: time.sleep(3600); hook.main()"
    )

    assert hook.run(HELD, (PYTHON, "-I", "-c", hanging)) == (0, b"", b"")
