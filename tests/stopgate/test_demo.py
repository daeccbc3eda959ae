from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from turngate.stopgate import demo

BIN = Path(sys.executable).parent
HOOK = BIN / "turngate-hook"

INPUT, OUTPUT, CACHE_WRITE, CACHE_READ = Decimal(2), Decimal(10), Decimal("2.5"), Decimal("0.1")
"""US dollars for a million tokens of claude-sonnet-5-5, from the vendor's price list."""

FIGURES = re.compile(
    r"(?P<prompt>[\d,]+) input tokens \((?:none cached|(?:(?P<read>[\d,]+) from the cache)?(?:, )?"
    r"(?:(?P<written>[\d,]+) written to (?:it|the cache))?)\), (?P<output>[\d,]+) output; \$(?P<cost>0\.\d+)"
)


class Played:
    """
    One run of `turngate demo`, in a working directory that is gone, and with a temporary directory and a home of its own.
    """

    def __init__(
        self, folder: Path, scripts: Path = BIN, *, before: str = ":", environ: Mapping[str, str] = {}
    ) -> None:
        self.temporary = folder / "temporary"
        self.home = folder / "home-of-a-person"
        gone = folder / "gone"
        for place in (self.temporary, self.home, gone):
            place.mkdir()
        clean = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.temporary)}
        script = f'rmdir "$PWD" && {before} && exec "$0" demo'
        self.done = subprocess.run(
            ["/bin/sh", "-c", script, scripts / "turngate"],
            cwd=gone,
            env={**clean, **environ},
            capture_output=True,
            text=True,
            check=False,
        )
        self.text = self.done.stdout

    @property
    def left(self) -> list[Path]:
        """
        The files that were left behind.
        """
        return [path for place in (self.temporary, self.home) for path in place.rglob("*")]


@pytest.fixture(scope="module", name="played")
def play_once(tmp_path_factory: pytest.TempPathFactory) -> Played:
    hostile = {
        "ANTHROPIC_API_KEY": "sk-of-the-person",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "TURNGATE_GATE_MODE": "off",
        "TURNGATE_JUDGE_BACKEND": "off",
        "TURNGATE_GUARD": "1",
        "http_proxy": "http://127.0.0.1:9",
    }
    return Played(tmp_path_factory.mktemp("demo"), environ=hostile)


def figures(line: str) -> dict[str, Decimal]:
    found = FIGURES.search(line)
    assert found, line
    return {name: Decimal((count or "0").replace(",", "")) for name, count in found.groupdict().items()}


def dollars(told: Mapping[str, Decimal]) -> Decimal:
    plain = told["prompt"] - told["read"] - told["written"]
    million = Decimal(1_000_000)
    return (
        plain * INPUT + told["output"] * OUTPUT + told["written"] * CACHE_WRITE + told["read"] * CACHE_READ
    ) / million


def folded(text: str) -> str:
    return " ".join(text.split())


def test_the_demo_succeeds_wherever_it_is_run(played: Played) -> None:
    """
    The person's key, settings and proxy reach neither the demo nor its hook, and it needs no working directory.
    """
    assert (played.done.returncode, played.done.stderr) == (0, "")
    assert "sk-of-the-person" not in played.text


def test_the_false_claim_is_held_and_its_correction_passes(played: Played) -> None:
    """
    The first story: the claim, the hold with the exact reason, the correction, a silent pass.
    """
    story = folded(played.text[played.text.index("1. ") : played.text.index("2. ")])
    steps = ["Write retry.ts", "Done. All tests pass.", "held (block_verdict", demo.GAP]
    steps += ["Correction: no tests ran; the repo has none.", "passed silently (pass_clean"]
    places = [story.index(step) for step in steps]

    assert places == sorted(places)
    assert story.count("call 1 ") == story.count("call 2 ") == 1


def test_running_background_work_is_held_without_a_model_call(played: Played) -> None:
    """
    The second story: the hold names the task and costs nothing, and after the notification the stop passes.
    """
    story = folded(played.text[played.text.index("2. ") : played.text.index("Total")])
    held, passed = story.index("held (block_background"), story.index("passed silently (pass_clean")

    assert "Background work of this turn is still running: - b7build01" in story[held:passed]
    assert "no model call: no tokens, no cost" in story[held:passed]
    assert "notifies" in story[held:passed]
    assert "call" not in story[held : story.index("no model call")]
    assert "call 3 " in story[passed:]


def test_each_call_is_priced_as_the_vendor_does(played: Played) -> None:
    """
    A call's cost is its tokens by the vendor's price list; it is shown with four decimals, or with two digits that count.
    """
    calls = [line for line in played.text.splitlines() if line.startswith("call ")]

    assert len(calls) == 3
    for line in calls:
        told = figures(line)
        assert told["prompt"] <= 2_500
        assert abs(told["cost"] - dollars(told)) <= Decimal("0.00005")
        assert re.search(r"; \$0\.00\d{2,3}; answered in [\d,]+ ms$", line)


def test_the_cache_is_written_by_the_second_call_and_read_by_the_third(played: Played) -> None:
    """
    Writing pays only when the next call comes soon, so the first call leaves it.
    """
    first, second, third = (figures(line) for line in played.text.splitlines() if line.startswith("call "))

    assert (first["written"], first["read"], second["read"], third["written"]) == (0, 0, 0, 0)
    assert second["written"] == third["read"] > 0


def test_the_total_is_the_sum_of_the_calls(played: Played) -> None:
    """
    Tokens add up exactly, dollars up to rounding.
    """
    (line,) = [line for line in played.text.splitlines() if line.startswith("Total:")]
    calls = [figures(line) for line in played.text.splitlines() if line.startswith("call ")]
    told = figures(line)

    assert "4 stops, 3 model calls" in line
    for name in ("prompt", "read", "written", "output"):
        assert told[name] == sum(call[name] for call in calls)
    assert abs(told["cost"] - sum(dollars(call) for call in calls)) <= Decimal("0.00005")


def test_the_timeline_is_plain_text(played: Played) -> None:
    """
    No colour, no control character, nothing beyond ASCII, and never the key, not even the fake one.
    """
    assert played.text.isascii()
    assert played.text.replace("\n", "").isprintable()
    assert demo.FAKE_KEY not in played.text
    assert str(HOOK) in played.text


def test_nothing_is_left_behind(played: Played) -> None:
    """
    Project, transcript, state and home of the demo lie in one temporary directory, and it is gone.
    """
    assert played.left == []


@pytest.fixture(name="installation")
def install_aside(tmp_path: Path) -> Path:
    """
    The scripts' folder of an installation that is ours but for its hook.
    """
    scripts = tmp_path / "venv" / BIN.name
    scripts.mkdir(parents=True)
    (scripts / "python").symlink_to(sys.executable)
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), scripts.parent)
    library = Path(sysconfig.get_path("purelib")).relative_to(sys.prefix).parts[0]
    (scripts.parent / library).symlink_to(Path(sys.prefix, library))
    program = (BIN / "turngate").read_text().partition("\n")[2]
    (scripts / "turngate").write_text(f"#!{scripts / 'python'}\n{program}")
    (scripts / "turngate").chmod(0o755)
    return scripts


CHANGED = json.dumps({"decision": "block", "reason": "Another reason."})


@pytest.mark.parametrize(
    ("hook", "told"),
    [
        pytest.param("exit 0", "stop 1: decisions in the ledger: expected 1, and there is 0", id="does-nothing"),
        pytest.param(f"{HOOK} >/dev/null", "stop 1: the stop is held: expected True, and there is False", id="mute"),
        pytest.param(f"{HOOK} >/dev/null; echo '{CHANGED}'", "stop 1: the reason: expected", id="changes-the-reason"),
        pytest.param("echo Hello", "stop 1: the hook gave no answer", id="prints-something-else"),
        pytest.param("exit 2", "stop 1: exit code of the hook: expected 0, and there is 2", id="exit-code"),
        pytest.param("echo oh >&2", "stop 1: standard error of the hook: expected ''", id="standard-error"),
        pytest.param(
            f"TURNGATE_JUDGE_BACKEND=off {HOOK}",
            "stop 1: outcome (judge.backend is off): expected 'block_verdict', and there is 'pass_no_judge'",
            id="asks-nobody",
        ),
        pytest.param(None, "there is no turngate-hook in", id="missing"),
    ],
)
def test_a_hook_that_does_not_behave_as_told_ends_the_demo(
    installation: Path, tmp_path: Path, hook: str | None, told: str
) -> None:
    """
    The demo is a check: one line says what was expected, the exit code is not 0, and nothing is left behind.
    """
    if hook is not None:
        (installation / "turngate-hook").write_text(f"#!/bin/sh\n{hook}\n")
        (installation / "turngate-hook").chmod(0o755)
    played = Played(tmp_path, installation)

    assert played.done.returncode == 2
    assert played.done.stderr.startswith(f"turngate: the demo went wrong: {told}")
    assert played.done.stderr.count("\n") == 1
    assert "Total" not in played.text
    assert played.left == []


def test_no_room_for_a_temporary_directory_is_one_line(tmp_path: Path) -> None:
    """
    Where no temporary directory can be made, the demo says so without a traceback.
    """
    # Python tries a directory by writing a file there.
    played = Played(tmp_path, before="ulimit -f 0")

    assert played.done.returncode == 2
    assert played.done.stderr.startswith("turngate: the demo went wrong: ")
    assert played.done.stderr.count("\n") == 1
