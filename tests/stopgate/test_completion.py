"""
Completion in the shells.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from turngate.stopgate.cli import whole_parser
from turngate.stopgate.completion import Shell, completion_script

COMPLETE = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_shtab_turngate
printf '%s\\n' "${COMPREPLY[@]}"
"""
"""What bash does when somebody types the words and presses the key."""


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param(["sta"], {"status"}, id="a command"),
        pytest.param(
            ["cost", "--"], {"--by", "--json", "--csv", "--since", "--until", "--tz", "--help"}, id="an option"
        ),
        pytest.param(["cost", "--by", "m"], {"model"}, id="a value"),
        pytest.param(["lab", "rep"], {"replay", "report"}, id="a command of the lab"),
        pytest.param(["lab", "replay", "--si"], {"--since"}, id="an option in the lab"),
        pytest.param(["wrong", "--no"], {"--note"}, id="an option of an added command"),
    ],
)
def test_bash_completes(words: list[str], offered: set[str], tmp_path: Path) -> None:
    """
    A real bash that has read the script offers what fits.
    """
    script = tmp_path / "turngate"
    script.write_text(completion_script(whole_parser(), "bash"))

    ran = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", script, "turngate", *words],
        capture_output=True,
        text=True,
        check=True,
    )

    assert (set(ran.stdout.split()), ran.stderr) == (offered, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_takes_its_script(shell: Shell, tmp_path: Path) -> None:
    """
    It has no mistake of syntax.
    """
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    script = tmp_path / "turngate"
    script.write_text(completion_script(whole_parser(), shell))

    ran = subprocess.run([shell, "-n", script], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_has_every_command(shell: Shell) -> None:
    """
    Those of other folders too.
    """
    script = completion_script(whole_parser(), shell)

    assert all(name in script for name in ("status", "would-hold", "export-requests", "wrong", "completion"))


def test_the_script_needs_no_extra() -> None:
    """
    It is printed where the lab's extra is not installed.
    """
    program = (
        "import sys\n"
        "for name in ('numpy', 'scipy', 'plotly'): sys.modules[name] = None\n"
        "from turngate.stopgate.cli import main\n"
        "sys.exit(main(['completion', 'bash'], {}))\n"
    )

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "_shtab_turngate" in ran.stdout
